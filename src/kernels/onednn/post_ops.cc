/// Epilogue stages as oneDNN post-ops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/epilogue.h"
#include "kernels/onednn/onednn.h"
#include "kernels/onednn_isa.h"
#include "ops/activation.h"
#include "ops/elementwise.h"

namespace lamina::onednn {
namespace {

std::optional<float> scalar(const Tensor* t) {
  if (!t || t->size() != 1) return std::nullopt;
  return to_floats(*t)[0];
}

using dnnl::algorithm;

std::optional<algorithm> plain_algorithm(const Op& op) {
  if (op.is<Relu>()) return algorithm::eltwise_relu;
  if (op.is<Sigmoid>()) return algorithm::eltwise_logistic;
  if (op.is<Tanh>()) return algorithm::eltwise_tanh;
  if (op.is<Abs>()) return algorithm::eltwise_abs;
  if (op.is<Sqrt>()) return algorithm::eltwise_sqrt;
  if (op.is<Exp>()) return algorithm::eltwise_exp;
  if (op.is<Log>()) return algorithm::eltwise_log;
  if (op.is<Mish>()) return algorithm::eltwise_mish;
  return std::nullopt;
}

}  // namespace

std::optional<Eltwise> eltwise_of(const Node& node,
                                  const std::function<const Tensor*(std::size_t)>& constant) {
  const Op& op = node.op;
  if (const auto a = plain_algorithm(op)) return Eltwise{*a};
  if (op.is<SoftPlus>()) return Eltwise{algorithm::eltwise_soft_relu, 1};
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
    if (const auto beta = scalar(constant(1))) return Eltwise{algorithm::eltwise_swish, *beta};
  }
  if (op.is<HardSigmoid>()) {
    const auto a = scalar(constant(1)), b = scalar(constant(2));
    if (a && b) return Eltwise{algorithm::eltwise_hardsigmoid, *a, *b};
  }
  if (op.is<PRelu>())
    if (const auto slope = scalar(constant(1))) return Eltwise{algorithm::eltwise_relu, *slope};
  return std::nullopt;
}

bool loses_nan(const Eltwise& e) {
  return (e.algorithm == algorithm::eltwise_relu && e.alpha == 0) || e.algorithm == algorithm::eltwise_clip ||
         e.algorithm == algorithm::eltwise_exp || e.algorithm == algorithm::eltwise_hardsigmoid;
}

namespace {

/// NaN stays NaN but for ReLU and Clamp, on which too much depends: only where our convolutions are as fast.
Verdict keeps_nan(const Machine& machine, const Op& op, const Eltwise& e) {
  if (!loses_nan(e) || ((op.is<Relu>() || op.is<Clamp>()) && machine.library != Isa::sse41))
    return Verdict::yes();
  return Verdict::no("{} makes a number of NaN there", op.name());
}

constexpr std::size_t kMostPostOps = 32;  // oneDNN's own limit

/// Binary operators with a scalar are eltwise: exact for Add, Multiply, Maximum, Minimum and Subtract.
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

class Translator {
 public:
  Translator(const NodeView& view, const Dims& out, Layout layout, std::size_t channel_axis, bool stores_bf16)
      : view_(view), out_(out), layout_(layout), channel_(channel_axis), stores_bf16_(stores_bf16) {
    result_.attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  PostOps run() {
    const auto stages = chain_of(view_.node());
    if (!stages) {
      result_.refusal = "the epilogue is not a chain";
    } else {
      for (const auto& stage : *stages) {
        if (!take(stage)) break;
        result_.stages = stage.end;
        result_.cost += stage_cost(view_.machine(), stage.node->op, element_count(out_));
      }
    }
    result_.attr.set_post_ops(ops_);
    return std::move(result_);
  }

 private:
  bool stop(std::string why) {
    result_.refusal = std::move(why);
    return false;
  }

  bool take(const Stage& stage) {
    const auto& op = stage.node->op;
    if (static_cast<std::size_t>(ops_.len()) >= kMostPostOps) return stop("oneDNN takes 32 stages");
    const auto& body = *epilogue(view_.node());
    if (stores_bf16_ && op.is<Convert>() && body.type(stage.node->inputs[0]).element == ElementType::f32 &&
        body.type(stage.node->outputs[0]).element == ElementType::bf16 &&
        body.is_result(stage.node->outputs[0])) {
      result_.result = ElementType::bf16;
      return true;
    }
    const auto constant = [&](std::size_t i) {
      return i < stage.node->inputs.size() ? body.constant(stage.node->inputs[i]) : nullptr;
    };
    for (auto v : stage.node->inputs)
      if (v.valid() && body.type(v).element != ElementType::f32)
        return stop(fmt::format("{} of {}", op.name(), name_of(body.type(v).element)));
    if (body.type(stage.node->outputs[0]).element != ElementType::f32)
      return stop(op.name() + " changes the element type");
    if (stage.running == 0)
      if (const auto e = eltwise_of(*stage.node, constant)) return eltwise(op, *e);
    if (op.has(Trait::binary_elementwise)) return binary(stage);
    if (op.is<PRelu>()) return prelu(stage);
    return stop(fmt::format("oneDNN has no post-op for {}", op.name()));
  }

  bool eltwise(const Op& op, const Eltwise& e) {
    if (const auto verdict = keeps_nan(view_.machine(), op, e); !verdict) return stop(verdict.reason());
    ops_.append_eltwise(e.algorithm, e.alpha, e.beta);
    return true;
  }

  bool binary(const Stage& stage) {
    const auto& op = stage.node->op;
    if (stage.constant)
      if (const auto c = scalar(stage.constant))
        if (const auto e = scalar_binary(op, stage.running, *c)) return eltwise(op, *e);
    const auto algorithm = binary_of(op, stage.running);
    if (!algorithm)
      return stop(fmt::format("oneDNN has no post-op for {} with the value on the right", op.name()));
    if (op.is<Maximum>() || op.is<Minimum>()) return stop(op.name() + " makes a number of NaN there");
    return operand(
        stage, [&](const Desc& d) { ops_.append_binary(*algorithm, d); }, DNNL_ARG_SRC_1);
  }

  /// Per channel or one element: other broadcasts make a convolution a reference.
  bool per_channel(const Dims& dims) const {
    if (dims.size() > out_.size()) return false;
    const std::size_t shift = out_.size() - dims.size();
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != 1 && i + shift != channel_) return false;
    return true;
  }

  template <class Append>
  bool operand(const Stage& stage, Append append, int id) {
    Dims dims(out_.size() - std::min(out_.size(), stage.operand_dims.size()), 1);
    dims.insert(dims.end(), stage.operand_dims.begin(), stage.operand_dims.end());
    const int slot = DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops_.len()) | id;
    const bool channel = per_channel(stage.operand_dims);
    if (!channel && dims != out_)
      return stop(fmt::format("operand {} of {} is neither per channel nor of the result's shape {}",
                              to_string(stage.operand_dims), stage.node->op.name(), to_string(out_)));
    if (!channel && layout_ != Layout::plain && stage.operand_dims.size() != out_.size())
      return stop("an operand of fewer axes, whose channels are others");
    const auto type =
        stage.operand_element == ElementType::undefined ? ElementType::f32 : stage.operand_element;
    if (type != ElementType::f32 && (type != ElementType::bf16 || !stores_bf16_))
      return stop(fmt::format("an operand of {}", name_of(type)));
    const auto d = desc(dims, type, channel ? Layout::plain : layout_);
    if (stage.constant) {
      if (!channel && layout_ != Layout::plain)
        return stop("a constant of the result's shape in channels-last");
      result_.args.push_back({slot, d, Arg::From::constant, 0, *stage.constant});
    } else {
      result_.args.push_back({slot, d, Arg::From::input, *stage.extra, {}});
      if (!channel) result_.same_layout_inputs.push_back(*stage.extra);
    }
    append(d);
    return true;
  }

  bool prelu(const Stage& stage) {
    if (stage.running != 0 || !stage.constant) return stop("PRelu whose slope is not constant");
    Stage slope = stage;
    const auto channels = out_[channel_];
    if (slope.operand_dims.size() == 1 && slope.operand_dims[0] == channels &&
        out_.size() > 1) {  // OpenVINO: [C] lies on axis 1
      if (channel_ != 1 && out_.size() != 2) return stop("PRelu by axis 1");
      slope.operand_dims = Dims(out_.size(), 1);
      slope.operand_dims[1] = channels;
      if (channel_ != 1) return stop("PRelu by axis 1");
    }
    if (!per_channel(slope.operand_dims)) return stop("PRelu whose slope is not per channel");
    Dims dims(out_.size(), 1);
    dims[channel_] = static_cast<std::int64_t>(stage.constant->size());
    if (dims[channel_] != channels) return stop("PRelu slope of another size");
    const int slot = DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops_.len()) | DNNL_ARG_WEIGHTS;
    result_.args.push_back(
        {slot, desc(dims, ElementType::f32, Layout::plain), Arg::From::constant, 0, *stage.constant});
    ops_.append_prelu(1 << channel_);
    return true;
  }

  const NodeView& view_;
  const Dims& out_;
  Layout layout_;
  std::size_t channel_;
  bool stores_bf16_;
  dnnl::post_ops ops_;
  PostOps result_;
};

}  // namespace

double filled_lanes(const Machine& machine, std::int64_t count) {
  const double lanes = machine.library == Isa::avx512 ? 16 : machine.library == Isa::avx2 ? 8 : 4;
  const auto channels = static_cast<double>(count);
  return std::ceil(channels / lanes) * lanes / channels;
}

std::vector<Arg> aligned(std::vector<Arg> args, MakeContext& context) {
  for (auto& arg : args)
    if (arg.from == Arg::From::constant && !arg.constant.aligned())
      arg.constant =
          context.weights.moved(arg.constant, "aligned", [](const Tensor& t) { return t.to_aligned(); });
  return args;
}

PostOps post_ops(const NodeView& view, const Dims& out, Layout layout, std::size_t channel_axis,
                 bool stores_bf16) {
  return Translator(view, out, layout, channel_axis, stores_bf16).run();
}

}  // namespace lamina::onednn
