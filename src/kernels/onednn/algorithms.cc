#include "kernels/onednn/algorithms.h"

#include <limits>

#include "ops/activation.h"
#include "ops/elementwise.h"

namespace lamina::onednn {

using dnnl::algorithm;

namespace {

/// Log and SoftPlus are left out. oneDNN's logarithm of numbers near 1, which is near 0, is off by 3e-6. Its
/// SoftPlus is a sum of two terms that nearly cancel far below 0: results near 0 are off by up to 8e-6.
std::optional<algorithm> plain_algorithm(const Op& op) {
  if (op.is<Relu>()) return algorithm::eltwise_relu;
  if (op.is<Sigmoid>()) return algorithm::eltwise_logistic;
  if (op.is<Tanh>()) return algorithm::eltwise_tanh;
  if (op.is<Abs>()) return algorithm::eltwise_abs;
  if (op.is<Sqrt>()) return algorithm::eltwise_sqrt;
  if (op.is<Exp>()) return algorithm::eltwise_exp;
  if (op.is<Mish>()) return algorithm::eltwise_mish;
  return std::nullopt;
}

}  // namespace

std::optional<Eltwise> eltwise_of(const Node& node,
                                  const std::function<const Tensor*(std::size_t)>& constant) {
  const Op& op = node.op;
  if (const auto a = plain_algorithm(op)) return Eltwise{*a};
  if (op.is<Negative>()) return Eltwise{algorithm::eltwise_linear, -1, 0};
  if (op.is<HSigmoid>()) return Eltwise{algorithm::eltwise_hardsigmoid, 1.f / 6, 0.5f};
  if (op.is<HSwish>()) return Eltwise{algorithm::eltwise_hardswish, 1.f / 6, 0.5f};
  if (const auto* c = op.as<Clamp>())
    return Eltwise{algorithm::eltwise_clip, static_cast<float>(c->min), static_cast<float>(c->max)};
  if (const auto* e = op.as<Elu>()) return Eltwise{algorithm::eltwise_elu, static_cast<float>(e->alpha)};
  if (const auto* g = op.as<Gelu>())
    return Eltwise{g->approximation_mode == GeluMode::erf ? algorithm::eltwise_gelu_erf
                                                          : algorithm::eltwise_gelu_tanh};
  if (const auto* r = op.as<Round>(); r && r->mode == RoundMode::half_to_even)
    return Eltwise{algorithm::eltwise_round};
  if (op.is<Swish>()) {
    if (node.inputs.size() < 2 || !node.inputs[1].valid()) return Eltwise{algorithm::eltwise_swish, 1};
    if (const auto beta = single_number(constant(1))) return Eltwise{algorithm::eltwise_swish, *beta};
  }
  if (op.is<HardSigmoid>()) {
    const auto a = single_number(constant(1)), b = single_number(constant(2));
    if (a && b) return Eltwise{algorithm::eltwise_hardsigmoid, *a, *b};
  }
  if (op.is<PRelu>())
    if (const auto slope = single_number(constant(1))) return Eltwise{algorithm::eltwise_relu, *slope};
  return std::nullopt;
}

bool loses_nan(const Eltwise& e) {
  return (e.algorithm == algorithm::eltwise_relu && e.alpha == 0) || e.algorithm == algorithm::eltwise_clip ||
         e.algorithm == algorithm::eltwise_exp || e.algorithm == algorithm::eltwise_hardsigmoid;
}

std::optional<Eltwise> scalar_binary(const Op& op, std::size_t running, float c) {
  if (op.is<Add>()) return Eltwise{algorithm::eltwise_linear, 1, c};
  if (op.is<Multiply>()) return Eltwise{algorithm::eltwise_linear, c, 0};
  if (op.is<Subtract>())
    return running == 0 ? Eltwise{algorithm::eltwise_linear, 1, -c}
                        : Eltwise{algorithm::eltwise_linear, -1, c};
  const float infinity = std::numeric_limits<float>::infinity();
  if (op.is<Maximum>()) return Eltwise{algorithm::eltwise_clip, c, infinity};
  if (op.is<Minimum>()) return Eltwise{algorithm::eltwise_clip, -infinity, c};
  return std::nullopt;
}

std::optional<algorithm> binary_of(const Op& op, std::size_t running) {
  if (op.is<Add>()) return algorithm::binary_add;
  if (op.is<Multiply>()) return algorithm::binary_mul;
  if (op.is<Maximum>()) return algorithm::binary_max;
  if (op.is<Minimum>()) return algorithm::binary_min;
  if (op.is<Subtract>() && running == 0) return algorithm::binary_sub;
  if (op.is<Divide>() && running == 0) return algorithm::binary_div;
  return std::nullopt;
}

}  // namespace lamina::onednn
