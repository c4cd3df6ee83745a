#include "kernels/onednn/post_ops.h"

#include <algorithm>
#include <cmath>

#include "kernels/onednn/algorithms.h"
#include "kernels/onednn/integers.h"
#include "kernels/onednn_isa.h"
#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"

namespace lamina::onednn {
namespace {

using dnnl::algorithm;

/// NaN must stay NaN. ReLU and Clamp are exceptions, since most convolutions end with one of them and would
/// be slower without; but for SSE4.1, with which our own convolutions are as fast.
Verdict keeps_nan(const Machine& machine, const Op& op, const Eltwise& e) {
  if (!loses_nan(e) || ((op.is<Relu>() || op.is<Clamp>()) && machine.library != Isa::sse41))
    return Verdict::yes();
  return Verdict::no("{} turns NaN into a number there", op.name());
}

/// Refuses tanh without AVX-512: oneDNN looks up its coefficients lane by lane then, and takes four times as
/// long as our stages.
Verdict is_fast(const Machine& machine, const Op& op, const Eltwise& e) {
  const bool has_tanh = e.algorithm == algorithm::eltwise_tanh || e.algorithm == algorithm::eltwise_gelu_tanh;
  if (!has_tanh || machine.library == Isa::avx512) return Verdict::yes();
  return Verdict::no("oneDNN computes {} slowly without AVX-512", op.name());
}

constexpr std::size_t kMostPostOps = 32;  // oneDNN's own limit

bool is_finite(const std::vector<float>& list) {
  return std::all_of(list.begin(), list.end(), [](float f) { return std::isfinite(f); });
}

bool inverse_is_exact(float f) {
  int exponent = 0;
  return std::frexp(f, &exponent) == 0.5f;
}

class Translator {
 public:
  Translator(const NodeView& view, const Dims& out, Layout layout, std::size_t channel_axis, int weights_mask)
      : view_(view), out_(out), layout_(layout), channel_(channel_axis), weights_mask_(weights_mask) {
    result_.attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto type = multiplied(view);
    integers_ = is_byte(type);
    stores_bf16_ = type == ElementType::bf16 || (integers_ && multiplies_bf16(view.machine()));
  }

  PostOps run() {
    const auto stages = chain_of(view_.node());
    if (!stages) {
      result_.refusal = "the epilogue is not a chain";
    } else {
      std::size_t i = integers_ ? begin(*stages) : 0;
      while (i < stages->size() && result_.refusal.empty()) {
        const auto taken = take(*stages, i);
        for (const auto end = i + taken; i < end; ++i) {
          result_.stages = (*stages)[i].end;
          result_.cost += cost_of_taken((*stages)[i]);
        }
      }
    }
    result_.attr.set_post_ops(ops_);
    set_scaling();
    return std::move(result_);
  }

 private:
  bool stop(std::string why) {
    result_.refusal = std::move(why);
    return false;
  }

  Cost cost_of_taken(const Stage& stage) const {
    const auto count = element_count(out_);
    if (stage.node->op.is<Quantize>() && inverse_is_exact(to_floats(*stage.constant)[0]))
      return cost_of(view_.machine(), Family::vector_light, 0.3 * static_cast<double>(count), 0, 0);
    return stage_cost(view_.machine(), stage.node->op, count);
  }

  /// What integer sums begin with: to f32, then scales and a bias that are constant. Returns how many stages
  /// that are.
  std::size_t begin(const std::vector<Stage>& stages) {
    result_.result = ElementType::i32;
    if (stages.empty()) return 0;
    const auto& body = *epilogue(view_.node());
    const auto type_behind = [&](const Stage& s) { return body.type(s.node->outputs[0]).element; };
    if (!stages[0].node->op.is<Convert>() || type_behind(stages[0]) != ElementType::f32) {
      stop(fmt::format("int8: {} of i32 sums", stages[0].node->op.name()));
      return 0;
    }
    result_.result = ElementType::f32;
    std::size_t taken = 1;
    const auto numbers = [&](auto is_it, std::vector<float>& to) {
      if (taken >= stages.size() || !is_it(stages[taken].node->op)) return;
      const auto& stage = stages[taken];
      if (!stage.constant || !per_channel(stage) || type_behind(stage) != ElementType::f32) return;
      to = to_floats(*stage.constant);
      finite_ = finite_ && is_finite(to);
      ++taken;
      result_.cost += stage_cost(view_.machine(), stage.node->op, element_count(out_));
    };
    numbers([](const Op& op) { return op.is<Multiply>(); }, scaling_.scales);
    numbers([](const Op& op) { return op.is<Add>(); }, scaling_.bias);
    result_.stages = stages[taken - 1].end;
    return taken;
  }

  void set_scaling() {
    if (const auto count = static_cast<std::int64_t>(scaling_.scales.size()); count != 0) {
      result_.attr.set_scales_mask(DNNL_ARG_WEIGHTS, count == 1 ? 0 : weights_mask_);
      result_.args.push_back({DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
                              desc({count}, ElementType::f32, Layout::plain), Arg::From::constant, 0,
                              Tensor::of({count}, scaling_.scales)});
    }
    result_.bias = scaling_.bias_of_channels(out_[channel_]);
  }

  bool has_room(std::size_t more) { return static_cast<std::size_t>(ops_.len()) + more <= kMostPostOps; }

  /// Takes stage i, or with it the one that makes floats of its integers again; how many were taken.
  std::size_t take(const std::vector<Stage>& stages, std::size_t i) {
    const auto& body = *epilogue(view_.node());
    if (!stages[i].node->op.is<Quantize>() || body.is_result(stages[i].node->outputs[0]))
      return take(stages[i]) ? 1 : 0;
    if (i + 1 < stages.size() && stages[i + 1].node->op.is<Dequantize>())
      return quantize_and_back(stages[i], stages[i + 1]) ? 2 : 0;
    stop("int8: Quantize in the midst of stages");
    return 0;
  }

  bool take(const Stage& stage) {
    const auto& op = stage.node->op;
    if (!has_room(1)) return stop("oneDNN takes 32 stages");
    if (stage.constant) finite_ = finite_ && is_finite(to_floats(*stage.constant));
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
      if (v.valid() && body.type(v).element != ElementType::f32 && !op.is<Quantize>())
        return stop(fmt::format("{} of {}", op.name(), name_of(body.type(v).element)));
    if (body.type(stage.node->outputs[0]).element != ElementType::f32)
      return op.is<Quantize>() ? quantize(stage) : stop(op.name() + " changes the element type");
    if (stage.running == 0)
      if (const auto e = eltwise_of(*stage.node, constant)) return eltwise(op, *e);
    if (op.has(Trait::binary_elementwise)) return binary(stage);
    if (op.is<PRelu>()) return prelu(stage);
    return stop(fmt::format("oneDNN has no post-op for {}", op.name()));
  }

  bool eltwise(const Op& op, const Eltwise& e) {
    if (const auto verdict = keeps_nan(view_.machine(), op, e); !verdict && !no_nan())
      return stop(verdict.reason());
    if (const auto verdict = is_fast(view_.machine(), op, e); !verdict && !integers_)
      return stop(verdict.reason());
    if (op.is<Sqrt>() || op.is<Log>() || op.is<Exp>()) finite_ = false;
    if (op.is<Relu>() || op.is<Clamp>()) finite_ = true;
    ops_.append_eltwise(e.algorithm, e.alpha, e.beta);
    return true;
  }

  /// Sums of integers, scales and operands that are numbers give none else.
  bool no_nan() const { return integers_ && finite_; }

  void linear(float factor, float added) { ops_.append_eltwise(algorithm::eltwise_linear, factor, added); }

  /// One scale and zero point of Quantize or Dequantize, which are constant.
  std::optional<Dequantized> levels(const Stage& stage) {
    const auto steps = steps_of(*epilogue(view_.node()), *stage.node);
    if (steps && std::isfinite(1 / steps->scale)) return steps;
    const auto& name = stage.node->op.name();
    stop(steps ? fmt::format("int8: {} by a scale of {}", name, steps->scale)
               : fmt::format("int8: {} by scales or zero points that are several, or not constant", name));
    return std::nullopt;
  }

  /// What both ways of Quantize begin with: the value in steps, of which NaN is none.
  std::optional<Dequantized> in_steps(const Stage& stage) {
    const auto& op = *stage.node->op.as<Quantize>();
    if (!integers_ || !is_byte(op.destination_type)) {
      stop(fmt::format("Quantize to {}{}", name_of(op.destination_type), integers_ ? "" : " behind floats"));
      return std::nullopt;
    }
    const bool transposed = view_.op<ConvolutionBackpropData>() != nullptr;
    if ((transposed || op.destination_type == ElementType::i8) && !finite_) {
      stop("int8: oneDNN makes bounds of what is not a number");
      return std::nullopt;
    }
    const auto to = levels(stage);
    if (!to) return std::nullopt;
    if (constexpr float kMostSteps = 1 << 10; added_zero_ > kMostSteps * std::fabs(to->scale)) {
      stop(fmt::format("int8: steps of {} are lost beside the zero point of a second tensor", to->scale));
      return std::nullopt;
    }
    if (!has_room(5)) {
      stop("oneDNN takes 32 stages");
      return std::nullopt;
    }
    if (!inverse_is_exact(to->scale))
      divide(*stage.constant);
    else if (to->scale != 1)
      linear(1 / to->scale, 0);
    return to;
  }

  void round() { ops_.append_eltwise(algorithm::eltwise_round, 0, 0); }

  /// x / scale, rounded, + zero point, saturated as it is stored. Storing rounds, too: too late behind a zero
  /// point, as sums with it lose bits, and ties go to even numbers before an odd one is added.
  bool quantize(const Stage& stage) {
    const auto to = in_steps(stage);
    if (!to) return false;
    if (to->zero_point != 0) {
      round();
      linear(1, to->zero_point);
    }
    result_.result = stage.node->op.as<Quantize>()->destination_type;
    return true;
  }

  bool quantize_and_back(const Stage& there, const Stage& back) {
    const auto from = levels(back);
    const auto to = from ? in_steps(there) : std::nullopt;
    if (!to) return false;
    const bool is_signed = there.node->op.as<Quantize>()->destination_type == ElementType::i8;
    const float low = is_signed ? -128 : 0;
    round();
    ops_.append_eltwise(algorithm::eltwise_clip, low - to->zero_point, low + 255 - to->zero_point);
    if (from->scale != 1 || from->zero_point != to->zero_point)
      linear(from->scale, (to->zero_point - from->zero_point) * from->scale);
    finite_ = true;
    return true;
  }

  /// Divides all results by one number.
  void divide(const Tensor& by) {
    const auto d = desc(Dims(out_.size(), 1), ElementType::f32, Layout::plain);
    result_.args.push_back(
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops_.len()) | DNNL_ARG_SRC_1, d, Arg::From::constant, 0, by});
    result_.operands = true;
    ops_.append_binary(algorithm::binary_div, d);
  }

  /// An operator with a tensor of 8 bits: Add and Subtract in steps of that tensor, Multiply with its steps.
  bool dequantized(const Stage& stage, algorithm how) {
    const auto& steps = *stage.dequantized;
    const bool product = how == algorithm::binary_mul;
    if ((!product && how != algorithm::binary_add && how != algorithm::binary_sub) ||
        (product && steps.zero_point != 0))
      return stop(fmt::format("int8: {} with a tensor of 8 bits", stage.node->op.name()));
    // The value in such steps is a number, and so is a number of them.
    const auto size = std::fabs(steps.scale);
    if (!(size >= 1e-20F && size <= 1e20F) || !has_room(3))
      return stop(fmt::format("int8: a second tensor with steps of {}", steps.scale));
    if (const auto verdict = reads(stage); !verdict) return stop(verdict.reason());
    if (!product) {
      added_zero_ = std::max(added_zero_, std::fabs(steps.zero_point) * size);
      auto from = steps;
      if (how == algorithm::binary_sub) from.zero_point = -from.zero_point;
      if (integers_ && ops_.len() == 0) {
        scaling_.count_in(from);
      } else if (steps.scale != 1 || steps.zero_point != 0) {
        linear(1 / from.scale, -from.zero_point);
      }
    }
    operand(
        stage, [&](const Desc& d) { ops_.append_binary(how, d); }, DNNL_ARG_SRC_1);
    if (steps.scale != 1) linear(steps.scale, 0);
    return true;
  }

  bool binary(const Stage& stage) {
    const auto& op = stage.node->op;
    if (stage.constant)
      if (const auto c = single_number(stage.constant))
        if (const auto e = scalar_binary(op, stage.running, *c)) return eltwise(op, *e);
    const auto algorithm = binary_of(op, stage.running);
    if (!algorithm)
      return stop(fmt::format("oneDNN has no post-op for {} with the value on the right", op.name()));
    if ((op.is<Maximum>() || op.is<Minimum>()) && !(stage.constant && no_nan()))
      return stop(op.name() + " makes a number of NaN there");
    if (stage.dequantized) return dequantized(stage, *algorithm);
    return operand(
        stage, [&](const Desc& d) { ops_.append_binary(*algorithm, d); }, DNNL_ARG_SRC_1);
  }

  /// The operand's dims with all axes of the result, and no others where those are 1.
  Dims whole_dims(const Stage& stage) const {
    Dims dims = stage.operand_dims;
    while (dims.size() > out_.size() && dims.front() == 1) dims.erase(dims.begin());
    dims.insert(dims.begin(), out_.size() - std::min(out_.size(), dims.size()), 1);
    return dims;
  }

  /// Per channel or one element: other broadcasts make a convolution a reference.
  bool per_channel(const Stage& stage) const {
    const auto dims = whole_dims(stage);
    if (dims.size() > out_.size()) return false;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != 1 && i != channel_) return false;
    return true;
  }

  static ElementType element_of(const Stage& stage) {
    return stage.operand_element == ElementType::undefined ? ElementType::f32 : stage.operand_element;
  }

  Verdict reads(const Stage& stage) const {
    const bool channel = per_channel(stage);
    if (!channel && whole_dims(stage) != out_)
      return Verdict::no("operand {} of {} is neither per channel nor of the result's shape {}",
                         to_string(stage.operand_dims), stage.node->op.name(), to_string(out_));
    if (!channel && layout_ != Layout::plain && stage.operand_dims.size() != out_.size())
      return Verdict::no("an operand of fewer axes, whose channels are others");
    const auto type = element_of(stage);
    if (type != ElementType::f32 && !(type == ElementType::bf16 && stores_bf16_) &&
        !(is_byte(type) && integers_))
      return Verdict::no("an operand of {}", name_of(type));
    return Verdict::yes();
  }

  template <class Append>
  bool operand(const Stage& stage, Append append, int id) {
    if (const auto verdict = reads(stage); !verdict) return stop(verdict.reason());
    const int slot = DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops_.len()) | id;
    const bool channel = per_channel(stage);
    const auto d = desc(whole_dims(stage), element_of(stage), channel ? Layout::plain : layout_);
    if (stage.constant) {
      result_.args.push_back(
          {slot, d, Arg::From::constant, 0, *stage.constant, channel ? Layout::plain : layout_});
      result_.whole_constant = result_.whole_constant || !channel;
    } else {
      result_.args.push_back({slot, d, Arg::From::input, *stage.extra, {}});
      finite_ = finite_ && is_byte(element_of(stage));
      if (!channel) result_.same_layout_inputs.push_back(*stage.extra);
    }
    append(d);
    result_.operands = true;
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
    if (!per_channel(slope)) return stop("PRelu whose slope is not per channel");
    Dims dims(out_.size(), 1);
    dims[channel_] = static_cast<std::int64_t>(stage.constant->size());
    if (dims[channel_] != channels) return stop("PRelu slope of another size");
    const int slot = DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops_.len()) | DNNL_ARG_WEIGHTS;
    result_.args.push_back(
        {slot, desc(dims, ElementType::f32, Layout::plain), Arg::From::constant, 0, *stage.constant});
    ops_.append_prelu(1 << channel_);
    result_.operands = true;
    return true;
  }

  const NodeView& view_;
  const Dims& out_;
  Layout layout_;
  std::size_t channel_;
  int weights_mask_;
  bool integers_, stores_bf16_;
  bool finite_ = true;  ///< no result so far is infinite or not a number
  float added_zero_ =
      0;  ///< a second tensor's zero point times its scale, beside which small numbers are lost
  Scaling scaling_;
  dnnl::post_ops ops_;
  PostOps result_;
};

}  // namespace

PostOps post_ops(const NodeView& view, const Dims& out, Layout layout, std::size_t channel_axis,
                 int weights_mask) {
  return Translator(view, out, layout, channel_axis, weights_mask).run();
}

}  // namespace lamina::onednn
