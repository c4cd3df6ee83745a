#pragma once
/// The process's memory by kind, as the operating system reports it.
#include <string>

namespace lamina {

/// Resident bytes by kind of mapping.
struct ProcessMemory {
  double model = 0;      ///< of the model's files
  double libraries = 0;  ///< programs, libraries and other files
  double code = 0;       ///< generated machine code
  double rest = 0;       ///< heap and stacks
  double whole() const { return model + libraries + code + rest; }
};

/// `model`: path of the model; its weights beside it (.bin, external data) count as its files.
ProcessMemory process_memory(const std::string& model);

}  // namespace lamina
