#include "base/thread_number.h"

#include <unistd.h>

#include <fstream>

namespace lamina {

int thread_number() noexcept {
  thread_local const int number = ::gettid();
  return number;
}

std::string thread_name(int number) {
  std::ifstream file("/proc/self/task/" + std::to_string(number) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace lamina
