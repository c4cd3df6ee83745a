#include "rules/rules.h"

namespace lamina {
namespace {

Rules& registered() {
  static Rules all = [] {
    Rules rules;
    for (auto* add : {add_remove_unused,      add_fold_constants,
                      add_fold_shapes,        add_remove_identity,
                      add_merge_reshapes,     add_common_subexpressions,
                      add_inline_if,          add_decompose_batch_norm,
                      add_decompose_einsum,   add_recognise_activations,
                      add_recognise_gelu,     add_recognise_prelu,
                      add_recognise_norms,    add_recognise_attention,
                      add_recognise_shuffles, add_recognise_binary,
                      add_binary_signs,       add_eliminate_transpose,
                      add_shrink_constants,   add_fold_scale,
                      add_fold_scale_before,  add_remove_power,
                      add_fuse_pad,           add_merge_fake_quantize,
                      add_fuse_group_conv,    add_fuse_bias,
                      add_hoist_activation,   add_fuse_simple,
                      add_fuse_sum,           add_fuse_conv_depthwise,
                      add_fuse_elementwise})
      add(rules);
    return rules;
  }();
  return all;
}

}  // namespace

const std::vector<Rule>& all_rules() { return registered(); }

PlantedRule::PlantedRule(Rule rule) { registered().insert(registered().begin(), std::move(rule)); }
PlantedRule::~PlantedRule() { registered().erase(registered().begin()); }

}  // namespace lamina
