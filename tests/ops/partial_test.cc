/// Random nodes of the element-wise and shape-changing families: nonsense gives an Error, and what is
/// inferred from less knowledge agrees with what is computed.
#include <random>

#include "op_testing.h"
#include "ops/operators.h"

namespace lamina::testing {
namespace {

class RandomNode {
 public:
  RandomNode(const AnyOp& prototype, std::uint32_t seed) : random_(seed) {
    std::shared_ptr<AnyOp> op = prototype.copy();
    for (const auto& a : prototype.attributes()) {
      if (pick(2) == 0) continue;
      if (std::holds_alternative<std::int64_t>(a.value)) op->set(a.name, number());
      if (std::holds_alternative<bool>(a.value)) op->set(a.name, pick(2) == 0);
      if (std::holds_alternative<Ints>(a.value)) op->set(a.name, mask());
    }
    op_ = Op(std::shared_ptr<const AnyOp>(op));
    const auto& info = op_.info();
    const int most = std::min(info.max_inputs, info.min_inputs + 2);
    const int count = info.min_inputs + pick(most - info.min_inputs + 1);
    const int style = pick(3);
    const Tensor first = operand(), second = partner(first);
    for (int i = 0; i < count; ++i)
      inputs_.push_back(
          i == 0       ? (style == 2 && pick(4) == 0 ? filled(ElementType::boolean, first.shape(), 1) : first)
          : style == 0 ? list(first)
          : style == 1 ? partner(first)
                       : (pick(2) == 0 ? second : operand()));
    outputs_ = info.outputs == kMany ? 1 + pick(3) : info.outputs;
  }

  const Op& op() const { return op_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  int outputs() const { return outputs_; }

  /// The inputs, some of them less well known.
  std::vector<Known> loosened() {
    std::vector<Known> out;
    for (const auto& t : inputs_) {
      if (pick(2) == 0) {
        out.push_back(t);
        continue;
      }
      Shape shape = Shape::of(t.shape());
      for (std::size_t i = 0; i < shape.rank(); ++i) {
        const auto size = t.shape()[i];
        if (pick(3) == 0) shape[i] = Dim();
        if (pick(5) == 0) shape[i] = Dim(std::max<std::int64_t>(size - pick(3), 0), size + pick(3));
        if (pick(5) == 0) shape[i] = dim("d" + std::to_string(size));  // one name per size
      }
      out.push_back(TensorType{t.element_type(), pick(8) == 0 ? Shape() : shape});
    }
    return out;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  std::int64_t number() {
    constexpr std::int64_t extreme[] = {INT64_MAX, INT64_MIN, INT64_MAX - 1, 20, -20};
    return pick(12) == 0 ? extreme[pick(5)] : pick(7) - 2;
  }
  Ints mask() {
    Ints out(static_cast<std::size_t>(pick(4)));
    for (auto& v : out) v = pick(3) == 0;
    return out;
  }
  /// An operand of any shape and type.
  Tensor operand() {
    constexpr ElementType types[] = {ElementType::f32, ElementType::f32, ElementType::i64, ElementType::u8,
                                     ElementType::boolean};
    Dims shape(static_cast<std::size_t>(pick(4)));
    for (auto& d : shape) d = pick(8) == 0 ? 0 : 1 + pick(4);
    return filled(types[pick(5)], shape, 0);
  }
  /// Axes, pads, patterns, ...: mostly one value per axis.
  Tensor list(const Tensor& first) {
    Dims shape;
    if (pick(4) != 0) shape = {pick(3) == 0 ? pick(4) : static_cast<std::int64_t>(first.rank())};
    return filled(ElementType::i64, shape, pick(4));
  }
  /// An operand that goes with the first one.
  Tensor partner(const Tensor& first) {
    Dims shape = first.shape();
    for (auto& d : shape)
      if (pick(3) == 0) d = 1;
    if (pick(2) == 0) shape.assign(static_cast<std::size_t>(pick(2)), 1);
    return filled(pick(6) == 0 ? ElementType::boolean : first.element_type(), shape, 0);
  }
  Tensor filled(ElementType type, const Dims& shape, int kind) {
    Ints values(element_count(shape));
    for (auto& v : values) v = kind == 0 ? number() : kind == 1 ? pick(2) : kind == 2;
    return of_type(type, shape, values);
  }

  std::mt19937 random_;
  Op op_;
  std::vector<Tensor> inputs_;
  int outputs_ = 1;
};

std::string described(const RandomNode& n) {
  std::string out = n.op().name();
  for (const auto& a : n.op()->changed_attributes()) out += " " + a.name + "=" + to_string(a.value);
  for (const auto& t : n.inputs()) {
    out += fmt::format(" {}{}", name_of(t.element_type()), to_string(t.shape()));
    if (t.element_type() == ElementType::i64) out += "=" + to_string(to_ints(t));
  }
  return out;
}

TEST(RandomNodes, AreEvaluatedOrRefusedAndInferredSoundly) {
  Registry family;
  for (auto* add : {register_elementwise, register_activation, register_quantization, register_shaping,
                    register_movement})
    add(family);
  std::map<std::string, int> evaluated;
  for (const auto& name : family.names()) {
    for (std::uint32_t seed = 0; seed < 1000; ++seed) {
      RandomNode n(*family.find(name), seed);
      SCOPED_TRACE(described(n));
      std::vector<Tensor> results;
      try {
        results = evaluate_all(n.op(), n.inputs(), static_cast<std::size_t>(n.outputs()));
      } catch (const Error& e) {
        ASSERT_NE(e.code(), ErrorCode::internal) << e.what();
        continue;
      }
      ++evaluated[name];
      for (int round = 0; round < 3; ++round) {
        const auto inputs = n.loosened();
        std::string known;
        for (const auto& k : inputs)
          known += std::holds_alternative<Tensor>(k) ? " constant" : " " + to_string(std::get<TensorType>(k));
        SCOPED_TRACE("known:" + known);
        std::vector<TensorType> types;
        ASSERT_NO_THROW(types = infer_all(n.op(), inputs, n.outputs()));
        for (std::size_t i = 0; i < results.size(); ++i) {
          ASSERT_TRUE(types[i].shape.fits(Shape::of(results[i].shape())))
              << to_string(types[i]) << " but " << to_string(results[i].shape());
          ASSERT_EQ(types[i].element, results[i].element_type());
        }
      }
    }
  }
  for (const auto& name : family.names()) EXPECT_GT(evaluated[name], 0) << name;
}

}  // namespace
}  // namespace lamina::testing
