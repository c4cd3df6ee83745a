/* Exports functions that other engines look for. */
#define SHOWN __attribute__((visibility("default")))
SHOWN int lamina_extensions(void);
SHOWN int RegisterCustomOps(void);
SHOWN int unrelated(void);
int lamina_extensions(void) { return 0; }
int RegisterCustomOps(void) { return 0; }
int unrelated(void) { return 0; }
