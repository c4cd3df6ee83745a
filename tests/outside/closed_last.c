/* A library that knows nothing of lamina. exit() destroys a library's static objects before those of the
   libraries that were loaded after it: with this one loaded last, threads run for a while when all static objects
   of lamina would be gone. */
#include <time.h>

int sleeps_at_end = 0;

__attribute__((destructor)) static void sleep_at_end(void) {
  const struct timespec time = {0, 50 * 1000 * 1000};
  if (sleeps_at_end) nanosleep(&time, 0);
}
