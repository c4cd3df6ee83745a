#include "ops/operators.h"

#include "base/no_destructor.h"
#include "ops/check_sizes.h"

namespace lamina {

const Registry& operators() {
  static const ProcessLifetime all([] {
    Registry r;
    for (auto* add : {register_convolution,   register_convolution_depthwise,
                      register_matmul,        register_pooling,
                      register_normalization, register_reduction,
                      register_recurrent,     register_resize,
                      register_elementwise,   register_activation,
                      register_quantization,  register_shaping,
                      register_movement,      register_slice,
                      register_gathering,     register_sorting,
                      register_generation,    register_detection,
                      register_control,       register_attention,
                      register_trees,         register_check_sizes})
      add(r);
    return r;
  });
  return *all;
}

}  // namespace lamina
