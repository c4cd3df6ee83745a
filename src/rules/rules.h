#pragma once
/// The list of all rules. One file per optimisation; rules.cc calls them all.
#include "rewrite/rule.h"

namespace lamina {

/// Every rule, in the order in which they are tried at a node. Which one fires first must not matter.
const std::vector<Rule>& all_rules();

using Rules = std::vector<Rule>;

/// For tests: while the object lives, the rule is the first of all_rules(). Not while a graph is rewritten.
class PlantedRule {
 public:
  explicit PlantedRule(Rule rule);
  ~PlantedRule();
  PlantedRule(const PlantedRule&) = delete;
  PlantedRule& operator=(const PlantedRule&) = delete;
};

void add_remove_unused(Rules& rules);
void add_fold_constants(Rules& rules);
void add_fold_shapes(Rules& rules);
void add_remove_identity(Rules& rules);
void add_merge_reshapes(Rules& rules);
void add_merge_slices(Rules& rules);
void add_merge_concats(Rules& rules);
void add_common_subexpressions(Rules& rules);
void add_inline_if(Rules& rules);
void add_decompose_batch_norm(Rules& rules);
void add_decompose_einsum(Rules& rules);
void add_recognise_activations(Rules& rules);
void add_recognise_gelu(Rules& rules);
void add_recognise_prelu(Rules& rules);
void add_recognise_norms(Rules& rules);
void add_recognise_l2(Rules& rules);
void add_recognise_group_norm(Rules& rules);
void add_recognise_attention(Rules& rules);
void add_recognise_shuffles(Rules& rules);
void add_recognise_dilation(Rules& rules);
void add_recognise_binary(Rules& rules);
void add_binary_signs(Rules& rules);
void add_eliminate_transpose(Rules& rules);
void add_sink_transposes(Rules& rules);
void add_shrink_constants(Rules& rules);
void add_channel_order(Rules& rules);
void add_fuse_linear(Rules& rules);
void add_merge_linear(Rules& rules);
void add_remove_power(Rules& rules);
void add_fuse_pad(Rules& rules);
void add_move_strides(Rules& rules);
void add_merge_fake_quantize(Rules& rules);
void add_recognise_dequantize(Rules& rules);
void add_compress_weights(Rules& rules);
void add_move_stored_weights(Rules& rules);
void add_int8_levels(Rules& rules);
void add_int8_products(Rules& rules);
void add_int8_concat(Rules& rules);
void add_int8_moves(Rules& rules);
void add_int8_means(Rules& rules);
void add_int8_scales(Rules& rules);
void add_int8_values(Rules& rules);
void add_fuse_group_conv(Rules& rules);
void add_hoist_arithmetic(Rules& rules);
void add_hoist_activation(Rules& rules);
void add_fuse_simple(Rules& rules);
void add_fuse_sum(Rules& rules);
void add_fuse_conv_depthwise(Rules& rules);
void add_fuse_elementwise(Rules& rules);
void add_bf16_products(Rules& rules);
void add_bf16_values(Rules& rules);

}  // namespace lamina
