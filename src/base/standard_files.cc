#include "base/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

namespace lamina {

void occupy_standard_files() {
  for (const int i : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(i, F_GETFD) < 0 && ::open("/dev/null", i == STDOUT_FILENO ? O_RDONLY : O_RDWR) < 0) return;
}

}  // namespace lamina
