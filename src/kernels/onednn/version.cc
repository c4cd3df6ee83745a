#include "kernels/onednn/onednn.h"
#include "kernels/versions.h"

namespace lamina {

std::string onednn_version() {
  const auto* v = dnnl_version();
  const char* threads = v->cpu_runtime == DNNL_RUNTIME_TBB   ? "TBB"
                        : v->cpu_runtime == DNNL_RUNTIME_OMP ? "OpenMP"
                                                             : "other threads";
  return fmt::format("{}.{}.{} ({}, {:.8})", v->major, v->minor, v->patch, threads, v->hash);
}

}  // namespace lamina
