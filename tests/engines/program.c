/* A program without symbols of lamina: opens an engine with RTLD_LOCAL, which opens a library of custom layers, and
 * closes it, several times. Arguments: ENGINE.so LIBRARY.so */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  static const float wanted[8] = {2, 2, 4, 4, 6, 6, 8, 8};
  float got[8];
  int round;
  for (round = 0; count == 3 && round < 5; ++round) {
    int (*open_engine)(const char*);
    int (*run_engine)(float*);
    void (*close_engine)(void);
    void* const handle = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!handle) return fprintf(stderr, "%s\n", dlerror()), 1;
    *(void**)&open_engine = dlsym(handle, "engine_open");
    *(void**)&run_engine = dlsym(handle, "engine_run");
    *(void**)&close_engine = dlsym(handle, "engine_close");
    if (!open_engine || !run_engine || !close_engine) return 2;
    if (open_engine(arguments[2]) || run_engine(got)) return 3;
    if (memcmp(got, wanted, sizeof(got)) != 0) return 4;
    close_engine();
    if (dlclose(handle)) return 5;
  }
  printf("%d rounds\n", round);
  return round == 5 ? 0 : 6;
}
