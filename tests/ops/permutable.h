#pragma once
/// Random instances of the operators that say how they look with their axes permuted. Values are small
/// integers, so that sums do not depend on their order.
#include <map>
#include <numeric>

#include "base/random.h"
#include "graph/permute.h"
#include "ops/activation.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/normalization.h"
#include "ops/operators.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/resize.h"
#include "ops/shaping.h"
#include "tests/ops/op_testing.h"

namespace lamina::testing {

struct Instance {
  Op op;
  std::vector<Tensor> inputs;
};

class RandomInstance {
 public:
  explicit RandomInstance(std::uint64_t seed) : random_(seed) {
    shape_.resize(1 + below(4));
    for (auto& d : shape_) d = 1 + static_cast<std::int64_t>(below(4));
  }

  /// An instance of the operator of that name; one without inputs when there is no recipe for it.
  Instance operator()(const std::string& name) {
    const auto recipe = recipes().find(name);
    if (recipe != recipes().end()) return (this->*recipe->second)();
    const Op op(std::shared_ptr<const AnyOp>(operators().find(name)->copy()));
    return op.has(Trait::elementwise) ? elementwise(op) : Instance{op, {}};
  }

 private:
  using Recipe = Instance (RandomInstance::*)();
  static const std::map<std::string, Recipe>& recipes() {
    using R = RandomInstance;
    static const std::map<std::string, Recipe> all{{"PRelu", &R::prelu},
                                                   {"FakeQuantize", &R::fake_quantize},
                                                   {"Quantize", &R::quantize},
                                                   {"Dequantize", &R::dequantize},
                                                   {"Softmax", &R::along_axis<Softmax>},
                                                   {"LogSoftmax", &R::along_axis<LogSoftmax>},
                                                   {"ShuffleChannels", &R::shuffle},
                                                   {"ReduceSum", &R::reduce<ReduceSum>},
                                                   {"ReduceMean", &R::reduce<ReduceMean>},
                                                   {"ReduceMax", &R::reduce<ReduceMax>},
                                                   {"ReduceMin", &R::reduce<ReduceMin>},
                                                   {"ReduceProd", &R::reduce<ReduceProd>},
                                                   {"ReduceL1", &R::reduce<ReduceL1>},
                                                   {"ReduceL2", &R::reduce<ReduceL2>},
                                                   {"ReduceLogicalAnd", &R::reduce<ReduceLogicalAnd>},
                                                   {"ReduceLogicalOr", &R::reduce<ReduceLogicalOr>},
                                                   {"Concat", &R::concat},
                                                   {"Slice", &R::slice},
                                                   {"StridedSlice", &R::strided_slice},
                                                   {"Split", &R::split},
                                                   {"SpaceToBatch", &R::space_to_batch},
                                                   {"BatchToSpace", &R::batch_to_space},
                                                   {"VariadicSplit", &R::variadic_split},
                                                   {"MVN", &R::over_axes<MVN>},
                                                   {"NormalizeL2", &R::over_axes<NormalizeL2>},
                                                   {"Interpolate", &R::interpolate},
                                                   {"Pad", &R::pad},
                                                   {"Roll", &R::roll},
                                                   {"Identity", &R::identity},
                                                   {"Tile", &R::tile},
                                                   {"Gather", &R::gather},
                                                   {"CumSum", &R::cum_sum}};
    return all;
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.below(n)); }
  std::size_t rank() const { return shape_.size(); }
  /// An axis, now and then counted from the end.
  std::int64_t axis() {
    const auto a = static_cast<std::int64_t>(below(rank()));
    return below(3) == 0 ? a - static_cast<std::int64_t>(rank()) : a;
  }
  std::size_t at(std::int64_t axis) const { return normalize_axis(axis, rank(), "axis"); }
  Tensor filled(const Dims& shape, std::int64_t low, std::int64_t high, ElementType type = ElementType::f32) {
    Ints values(element_count(shape));
    for (auto& v : values)
      v = low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low + 1)));
    return from_doubles(type, shape, std::vector<double>(values.begin(), values.end()));
  }
  Tensor x(ElementType type = ElementType::f32) { return filled(shape_, -4, 4, type); }
  /// A shape that broadcasts to x's, perhaps of a lower rank.
  Dims operand_shape() {
    Dims out(shape_.begin() + static_cast<std::ptrdiff_t>(below(rank() + 1)), shape_.end());
    for (auto& d : out)
      if (below(3) == 0) d = 1;
    return out;
  }
  /// Some axes, each once, in any order.
  Ints some_axes() {
    Ints all(rank());
    std::iota(all.begin(), all.end(), 0);
    for (auto i = all.size(); i > 1; --i) std::swap(all[i - 1], all[below(i)]);
    all.resize(below(rank() + 1));
    return all;
  }

  Instance elementwise(const Op& op) {
    const auto count = static_cast<std::size_t>(op.info().min_inputs);
    for (const auto type : {ElementType::f32, ElementType::i32, ElementType::boolean}) {
      std::vector<Tensor> inputs{x(type)};
      for (std::size_t i = 1; i < count; ++i) {
        const bool parameter = op.has(Trait::unary_elementwise);
        inputs.push_back(filled(parameter ? Dims{1} : operand_shape(), 0, 3, type));
      }
      if (op.name() == "Select") inputs[0] = x(ElementType::boolean);
      try {
        (void)evaluate(op, inputs);
        return {op, inputs};
      } catch (const Error&) {  // takes another type
      }
    }
    return {op, {}};
  }
  Instance prelu() {
    const bool channels = rank() > 1 && below(2) == 0;
    return {PRelu{}, {x(), filled(channels ? Dims{shape_[1]} : operand_shape(), -3, 3)}};
  }
  Instance fake_quantize() {
    const auto low = operand_shape(), high = operand_shape();
    return {FakeQuantize{5},
            {x(), filled(low, -4, -1), filled(high, 1, 4), filled(low, -4, -1), filled(high, 1, 4)}};
  }
  template <class T>
  std::vector<Tensor> parameters(T& op, Tensor data, ElementType zero_type) {
    op.axis = axis();
    Dims dims;
    switch (below(4)) {
      case 0:
        break;
      case 1:
        dims = {1};
        break;
      case 2:
        dims = {shape_[at(op.axis)]};
        break;
      default:
        op.block_size = 1 + static_cast<std::int64_t>(below(3));
        dims = shape_;
        dims[at(op.axis)] = (dims[at(op.axis)] + op.block_size - 1) / op.block_size;
    }
    std::vector<Tensor> inputs{std::move(data), filled(dims, 1, 3)};
    if (below(2) == 0) inputs.push_back(filled(dims, 0, 5, zero_type));
    return inputs;
  }
  Instance quantize() {
    Quantize op;
    auto inputs = parameters(op, x(), op.destination_type);
    return {op, std::move(inputs)};
  }
  Instance dequantize() {
    Dequantize op;
    auto inputs = parameters(op, x(ElementType::i8), ElementType::i8);
    return {op, std::move(inputs)};
  }
  template <class T>
  Instance along_axis() {
    return {T{axis()}, {x()}};
  }
  Instance shuffle() {
    const auto a = axis();
    const auto size = shape_[at(a)];
    return {ShuffleChannels{a, size % 2 == 0 ? 2 : size}, {x()}};
  }
  template <class T>
  Instance reduce() {
    constexpr bool logical = std::is_same_v<T, ReduceLogicalAnd> || std::is_same_v<T, ReduceLogicalOr>;
    T op;
    op.keep_dims = below(2) == 0;
    return {op, {x(logical ? ElementType::boolean : ElementType::f32), ints(some_axes())}};
  }
  Instance concat() {
    const auto a = axis();
    std::vector<Tensor> parts;
    for (auto n = 1 + below(3); n-- > 0;) {
      auto part = shape_;
      part[at(a)] = 1 + static_cast<std::int64_t>(below(3));
      parts.push_back(filled(part, -4, 4));
    }
    return {Concat{a}, std::move(parts)};
  }
  Instance slice() {
    const bool listed = below(2) == 0;
    Ints axes = some_axes(), start, stop, step;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto size = shape_[listed ? static_cast<std::size_t>(axes[i]) : i];
      const bool back = below(4) == 0;
      const auto from = static_cast<std::int64_t>(below(static_cast<std::size_t>(size)));
      start.push_back(back ? -1 : from);
      stop.push_back(back ? INT64_MIN : size);
      step.push_back(back ? -1 : 1 + static_cast<std::int64_t>(below(2)));
    }
    std::vector<Tensor> inputs{x(), ints(start), ints(stop), ints(step)};
    if (listed) inputs.push_back(ints(axes));
    return {Slice{}, std::move(inputs)};
  }
  Instance strided_slice() {
    StridedSlice op;
    Ints begin, end, strides;
    for (std::size_t i = 0, bounds = below(rank() + 1); i < bounds; ++i) {
      const auto size = shape_[i];
      const bool back = below(4) == 0;
      begin.push_back(back ? -1 : static_cast<std::int64_t>(below(static_cast<std::size_t>(size))));
      end.push_back(back ? -size - 1 : size);
      strides.push_back(back ? -1 : 1 + static_cast<std::int64_t>(below(2)));
      op.begin_mask.push_back(below(3) == 0);
      op.end_mask.push_back(below(3) == 0);
      op.shrink_axis_mask.push_back(below(3) == 0);
    }
    std::vector<Tensor> inputs{x(), ints(begin), ints(end)};
    if (below(2) == 0) inputs.push_back(ints(strides));
    return {op, std::move(inputs)};
  }
  /// Into one part: what there is to test lies in the axis.
  Instance split() { return {Split{}, {x(), Tensor::scalar(axis())}}; }
  Instance variadic_split() { return {VariadicSplit{}, {x(), Tensor::scalar(axis()), ints({-1})}}; }
  Instance space_to_batch() {
    Ints block(rank(), 1), begin(rank(), 0), end(rank(), 0);
    for (std::size_t i = 1; i < rank(); ++i) {
      block[i] = 1 + static_cast<std::int64_t>(below(3));
      begin[i] = static_cast<std::int64_t>(below(3));
      end[i] = (block[i] - (shape_[i] + begin[i]) % block[i]) % block[i];
    }
    return {SpaceToBatch{}, {x(), ints(block), ints(begin), ints(end)}};
  }
  Instance batch_to_space() {
    Ints block(rank(), 1), begin(rank(), 0), end(rank(), 0);
    for (std::size_t i = 1; i < rank(); ++i) {
      block[i] = 1 + static_cast<std::int64_t>(below(2));
      shape_[0] *= block[i];
      begin[i] = block[i] > 1 ? static_cast<std::int64_t>(below(2)) : 0;
    }
    return {BatchToSpace{}, {x(), ints(block), ints(begin), ints(end)}};
  }
  template <class T>
  Instance over_axes() {
    return {T{}, {x(), ints(some_axes())}};
  }
  /// By halves and doubles: no sum is rounded.
  Instance interpolate() {
    Interpolate op;
    op.mode = below(2) == 0 ? InterpolateMode::nearest : InterpolateMode::linear_onnx;
    const bool listed = below(2) == 0;
    Ints axes = some_axes(), sizes;
    if (!listed) {
      axes.resize(rank());
      std::iota(axes.begin(), axes.end(), 0);
    }
    if (axes.empty()) axes = {0};
    for (const auto a : axes) sizes.push_back(shape_[static_cast<std::size_t>(a)] * (below(2) == 0 ? 1 : 2));
    std::vector<Tensor> inputs{x(), ints(sizes)};
    if (listed) inputs.push_back(ints(axes));
    return {op, std::move(inputs)};
  }
  Instance pad() {
    constexpr PadMode modes[] = {PadMode::constant, PadMode::edge, PadMode::symmetric};
    const auto mode = modes[below(3)];
    const auto some = [&] {
      Ints out(rank());
      for (auto& v : out) v = static_cast<std::int64_t>(below(2));
      return ints(out);
    };
    std::vector<Tensor> inputs{x(), some(), some()};
    if (mode == PadMode::constant && below(2) == 0) inputs.push_back(Tensor::scalar(7.0f));
    return {Pad{mode}, std::move(inputs)};
  }
  Instance roll() {
    const Ints axes = some_axes();
    Ints shift(axes.size());
    for (auto& s : shift) s = static_cast<std::int64_t>(below(9)) - 4;
    return {Roll{}, {x(), ints(shift), ints(axes)}};
  }
  Instance identity() { return {Identity{}, {x()}}; }
  Instance tile() {
    Ints repeats(1 + below(rank()));
    for (auto& r : repeats) r = 1 + static_cast<std::int64_t>(below(2));
    return {Tile{}, {x(), ints(repeats)}};
  }
  Instance gather() {
    const auto a = axis();
    Dims indices(below(3));
    for (auto& d : indices) d = 1 + static_cast<std::int64_t>(below(3));
    return {Gather{}, {x(), filled(indices, 0, shape_[at(a)] - 1, ElementType::i64), Tensor::scalar(a)}};
  }
  Instance cum_sum() {
    std::vector<Tensor> inputs{x()};
    if (below(2) == 0) inputs.push_back(Tensor::scalar(axis()));
    return {CumSum{below(2) == 0, below(2) == 0}, std::move(inputs)};
  }

  SplitMix random_;
  Dims shape_;
};

/// All orders of `rank` axes.
inline std::vector<Ints> all_orders(std::size_t rank) {
  Ints order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::vector<Ints> out;
  do {
    out.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return out;
}

inline Ints inverse_order(const Ints& order) {
  Ints out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    out[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return out;
}

/// Other orders than those of the spatial axes and the channels are nothing for them.
inline bool keeps_batch_first(const std::string& name) {
  return name == "SpaceToBatch" || name == "BatchToSpace";
}

/// Names of the operators that have the hook `permute`.
inline std::vector<std::string> permutable_operators() {
  std::vector<std::string> out;
  const Tensor x = counting({2, 2});
  for (const auto& name : operators().names()) {
    Node node;
    node.op = Op(std::shared_ptr<const AnyOp>(operators().find(name)->copy()));
    node.inputs.resize(1);
    node.outputs.resize(1);
    const std::vector<Tensor> inputs{x};
    const InferContext types(node, inputs);
    PermuteContext context(types, {0, 1});
    bool has_hook = true;
    try {
      const auto verdict = node.op->permute(context);
      has_hook = verdict || verdict.reason().find("depends on the order of its axes") == std::string::npos;
    } catch (const Error&) {  // it looks at inputs that are not there
    }
    if (has_hook) out.push_back(name);
  }
  return out;
}

}  // namespace lamina::testing
