#include "saved/engine.h"

#include <fmt/format.h>

#include "base/no_destructor.h"
#include "kernels/versions.h"

namespace lamina {

extern const char* const build_id;  // cmake/BuildId.cmake

const std::string& engine_name() {
  static const ProcessLifetime name(
      [] { return fmt::format("{}, build {}, oneDNN {}", LAMINA_VERSION, build_id, onednn_version()); });
  return *name;
}

}  // namespace lamina
