#pragma once
/// The list of all operators.
#include "graph/op.h"

namespace lamina {

/// Every operator that lamina knows; built on first use.
const Registry& operators();

// One function per file that registers operators; operators.cc calls them all.
void register_convolution(Registry& r);
void register_convolution_depthwise(Registry& r);
void register_matmul(Registry& r);
void register_pooling(Registry& r);
void register_normalization(Registry& r);
void register_reduction(Registry& r);
void register_recurrent(Registry& r);
void register_resize(Registry& r);
void register_elementwise(Registry& r);
void register_activation(Registry& r);
void register_quantization(Registry& r);
void register_shaping(Registry& r);
void register_movement(Registry& r);
void register_slice(Registry& r);
void register_gathering(Registry& r);
void register_sorting(Registry& r);
void register_generation(Registry& r);
void register_detection(Registry& r);
void register_control(Registry& r);
void register_attention(Registry& r);
void register_trees(Registry& r);

}  // namespace lamina
