#include "rules/rules.h"

#include "base/no_destructor.h"

namespace lamina {
namespace {

Rules& registered() {
  static ProcessLifetime all([] {
    Rules rules;
    add_remove_unused(rules);
    add_fold_constants(rules);
    add_fold_shapes(rules);
    add_remove_identity(rules);
    add_merge_reshapes(rules);
    add_merge_slices(rules);
    add_merge_concats(rules);
    add_common_subexpressions(rules);
    add_inline_if(rules);
    add_decompose_batch_norm(rules);
    add_decompose_einsum(rules);
    add_recognise_activations(rules);
    add_recognise_gelu(rules);
    add_recognise_prelu(rules);
    add_recognise_norms(rules);
    add_recognise_l2(rules);
    add_recognise_group_norm(rules);
    add_recognise_attention(rules);
    add_recognise_shuffles(rules);
    add_recognise_dilation(rules);
    add_recognise_binary(rules);
    add_binary_signs(rules);
    add_eliminate_transpose(rules);
    add_sink_transposes(rules);
    add_shrink_constants(rules);
    add_channel_order(rules);
    add_fuse_linear(rules);
    add_merge_linear(rules);
    add_remove_power(rules);
    add_fuse_pad(rules);
    add_move_strides(rules);
    add_merge_fake_quantize(rules);
    add_recognise_dequantize(rules);
    add_compress_weights(rules);
    add_move_stored_weights(rules);
    add_int8_levels(rules);
    add_int8_products(rules);
    add_int8_concat(rules);
    add_int8_moves(rules);
    add_int8_means(rules);
    add_int8_scales(rules);
    add_fuse_group_conv(rules);
    add_hoist_arithmetic(rules);
    add_hoist_activation(rules);
    add_fuse_simple(rules);
    add_fuse_sum(rules);
    add_fuse_conv_depthwise(rules);
    add_fuse_elementwise(rules);
    add_int8_values(rules);
    add_bf16_products(rules);
    add_bf16_values(rules);
    return rules;
  });
  return *all;
}

}  // namespace

const std::vector<Rule>& all_rules() { return registered(); }

PlantedRule::PlantedRule(Rule rule) { registered().insert(registered().begin(), std::move(rule)); }
PlantedRule::~PlantedRule() { registered().erase(registered().begin()); }

}  // namespace lamina
