/// Operators that read indices and boxes, on random attributes and inputs: an Error is fine, anything else is
/// not.
#include <random>

#include "ops/operators.h"
#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

class Chance {
 public:
  explicit Chance(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<std::int64_t>(list.size()))];
  }
  std::int64_t integer() {
    return below(4) != 0 ? below(4) : one_of<std::int64_t>({-1, -2, 5, 8, 100, -100, INT64_MAX, INT64_MIN});
  }
  double number() {
    return below(4) != 0 ? static_cast<double>(below(40)) / 8 - 1
                         : one_of<double>({0, NAN, INFINITY, -INFINITY, 1e30, -1e30, 1e-30});
  }

 private:
  std::mt19937_64 engine_;
};

Attribute random_like(const Attribute& old, Chance& chance) {
  if (std::holds_alternative<bool>(old)) return chance.below(2) == 0;
  if (std::holds_alternative<std::int64_t>(old)) return chance.integer();
  if (std::holds_alternative<double>(old)) return chance.number();
  if (std::holds_alternative<Ints>(old)) {
    Ints out(static_cast<std::size_t>(chance.below(4)));
    for (auto& v : out) v = chance.integer();
    return out;
  }
  if (std::holds_alternative<Floats>(old)) {
    Floats out(static_cast<std::size_t>(chance.below(4)));
    for (auto& v : out) v = chance.number();
    return out;
  }
  if (std::holds_alternative<std::string>(old))
    return std::string(chance.one_of({"none",
                                      "max",
                                      "min",
                                      "sum",
                                      "sub",
                                      "prod",
                                      "mean",
                                      "index",
                                      "nearest",
                                      "bicubic",
                                      "bilinear",
                                      "border",
                                      "reflection",
                                      "avg",
                                      "half_pixel",
                                      "half_pixel_for_nn",
                                      "center",
                                      "same_upper",
                                      "same_lower",
                                      "average",
                                      "normalize",
                                      "tensorflow",
                                      "caffe.PriorBoxParameter.CENTER_SIZE",
                                      "ij,jk->ik",
                                      "...i->...",
                                      "ii->i"}));
  return old;
}

Op random_op(const AnyOp& prototype, Chance& chance) {
  std::shared_ptr<AnyOp> op = prototype.copy();
  for (const auto& a : prototype.attributes()) {
    if (chance.below(3) != 0) continue;
    try {
      op->set(a.name, random_like(a.value, chance));
    } catch (const Error&) {  // not a value of this enumeration
    }
  }
  return Op(std::shared_ptr<const AnyOp>(std::move(op)));
}

Tensor random_tensor(Chance& chance) {
  Dims dims(static_cast<std::size_t>(chance.below(5)));
  for (auto& d : dims) d = chance.one_of<std::int64_t>({0, 1, 1, 2, 2, 3, 4, 5, 8});
  std::vector<double> values(element_count(dims));
  const auto type = chance.one_of(
      {ElementType::f32, ElementType::i64, ElementType::f32, ElementType::i32, ElementType::f16});
  for (auto& v : values) v = is_float(type) ? chance.number() : static_cast<double>(chance.integer());
  return from_doubles(type, dims, values);
}

/// Runs the operator once where its outputs are small; true when it gave a result.
bool survives(const AnyOp& prototype, Chance& chance) {
  const auto& info = prototype.info();
  Node node;
  node.op = random_op(prototype, chance);
  std::vector<Tensor> inputs;
  const auto count = info.min_inputs + (info.max_inputs > info.min_inputs
                                            ? chance.below(std::min(info.max_inputs - info.min_inputs, 3) + 1)
                                            : 0);
  for (std::int64_t i = 0; i < count; ++i) inputs.push_back(random_tensor(chance));
  for (std::uint32_t i = 0; i < inputs.size(); ++i) node.inputs.push_back(ValueId{i});
  node.outputs.resize(static_cast<std::size_t>(info.outputs));
  try {
    InferContext types(node, inputs);
    node.op->infer(types);
    for (const auto& t : types.result())
      if (t.shape.known() && (t.shape.count().size() > 100000 || t.element == ElementType::undefined))
        return false;
    const auto results = evaluate_node(node, inputs, {});
    for (std::size_t i = 0; i < results.size(); ++i) {
      const TensorType found{results[i].element_type(), Shape::of(results[i].shape())};
      EXPECT_EQ(found.element, types.result()[i].element) << info.name;
      EXPECT_TRUE(types.result()[i].shape.fits(found.shape)) << info.name << ": " << to_string(found);
    }
    return true;
  } catch (const Error& e) {
    EXPECT_NE(e.code(), ErrorCode::internal) << info.name << ": " << e.what();
    return false;
  }
}

TEST(RandomOperators, give_results_or_errors) {
  for (const auto* name : {"Gather",
                           "GatherElements",
                           "GatherND",
                           "GatherTree",
                           "ScatterUpdate",
                           "ScatterElementsUpdate",
                           "ScatterNDUpdate",
                           "TopK",
                           "NonZero",
                           "Unique",
                           "SearchSorted",
                           "Bucketize",
                           "Range",
                           "OneHot",
                           "CumSum",
                           "Eye",
                           "Trilu",
                           "RandomUniform",
                           "RandomNormal",
                           "Einsum",
                           "GridSample",
                           "DFT",
                           "IDFT",
                           "RDFT",
                           "IRDFT",
                           "STFT",
                           "PriorBox",
                           "PriorBoxClustered",
                           "DetectionOutput",
                           "NonMaxSuppression",
                           "ROIPooling",
                           "ROIAlign",
                           "PSROIPooling",
                           "DeformableConvolution",
                           "RegionYolo",
                           "ReorgYolo",
                           "Proposal",
                           "CTCGreedyDecoder",
                           "CTCGreedyDecoderSeqLen",
                           "ExtractImagePatches"}) {
    const auto* prototype = operators().find(name);
    ASSERT_NE(prototype, nullptr) << name;
    Chance chance(1);
    for (int i = 0; i < 3000; ++i) survives(*prototype, chance);
  }
}

}  // namespace
}  // namespace lamina::testing
