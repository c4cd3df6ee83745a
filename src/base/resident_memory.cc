#include "base/resident_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace lamina {
namespace {

double status_mb(const std::string& key) {
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line))
    if (line.rfind(key, 0) == 0) return std::atof(line.c_str() + key.size()) / 1024;
  return 0;
}

}  // namespace

double resident_mb() { return status_mb("VmRSS:"); }
double peak_resident_mb() { return status_mb("VmHWM:"); }

}  // namespace lamina
