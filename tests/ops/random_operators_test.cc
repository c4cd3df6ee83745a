/// Operators that read indices and boxes, on random attributes and inputs: an Error is fine, anything else is
/// not.
#include <random>

#include "ops/ctc_loss.h"
#include "ops/detection.h"
#include "ops/detectron.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/matmul.h"
#include "ops/multiclass.h"
#include "ops/sorting.h"
#include "ops/yuv.h"
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

/// The operator with some attributes changed.
Op changed(const Op& from, Chance& chance) {
  std::shared_ptr<AnyOp> op = from->copy();
  for (const auto& a : from->attributes()) {
    if (chance.below(8) != 0) continue;
    try {
      op->set(a.name, random_like(a.value, chance));
    } catch (const Error&) {  // not a value of this enumeration
    }
  }
  return Op(std::shared_ptr<const AnyOp>(std::move(op)));
}

/// The tensor with some values, rarely a dimension or its type, changed.
Tensor changed(const Tensor& from, Chance& chance) {
  auto dims = from.shape();
  auto type = from.element_type();
  if (!dims.empty() && chance.below(12) == 0)
    dims[static_cast<std::size_t>(chance.below(static_cast<std::int64_t>(dims.size())))] = chance.below(5);
  if (chance.below(40) == 0) dims.push_back(1);
  if (chance.below(40) == 0)
    type = chance.one_of({ElementType::f16, ElementType::i32, ElementType::u8, ElementType::i64});
  const auto old = to_doubles(from);
  std::vector<double> values(element_count(dims));
  const bool keep = chance.below(2) == 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = old.empty() ? 0 : old[i % old.size()];
    if (!keep && chance.below(3) == 0)
      values[i] = is_float(type) ? chance.number() : static_cast<double>(chance.integer());
  }
  return from_doubles(type, dims, values);
}

struct Example {
  Op op;
  std::vector<Tensor> inputs;
};

/// Runs a changed example where its outputs are small; true when it gave a result.
bool survives(const Example& example, Chance& chance) {
  Node node;
  node.op = changed(example.op, chance);
  const auto& info = node.op.info();
  std::vector<Tensor> inputs;
  for (const auto& t : example.inputs) inputs.push_back(changed(t, chance));
  for (std::uint32_t i = 0; i < inputs.size(); ++i) node.inputs.push_back(ValueId{i});
  node.outputs.resize(static_cast<std::size_t>(info.outputs));
  try {
    InferContext types(node, inputs);
    node.op->infer(types);
    for (const auto& t : types.result())
      if (t.shape.known() && t.shape.count().size() > 100000) return false;
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

void expect_survival(const std::vector<Example>& examples) {
  for (const auto& example : examples) {
    Chance chance(1);
    int results = 0;
    for (int i = 0; i < 2000; ++i) results += survives(example, chance) ? 1 : 0;
    EXPECT_GT(results, 20) << example.op.name();  // else nothing has been tried
  }
}

Tensor i64(Dims dims, const Ints& values) { return of_type(ElementType::i64, std::move(dims), values); }

TEST(RandomOperators, gather_and_scatter) {
  const auto places = i64({2, 2}, {0, 1, 1, 0});
  expect_survival(
      {{Gather{}, {counting({3, 2}), places, ints({0})}},
       {Gather{1}, {counting({2, 3}), places, ints({1})}},
       {GatherElements{1}, {counting({2, 3}), places}},
       {GatherND{}, {counting({2, 2, 3}), places}},
       {GatherTree{}, {i64({2, 1, 2}, {1, 2, 3, 4}), i64({2, 1, 2}, {0, 0, 1, 0}), ints({2}), ints({9})}},
       {ScatterUpdate{}, {counting({3, 2}), ints({0, 2}), counting({2, 2}), ints({0})}},
       {ScatterElementsUpdate{}, {counting({2, 3}), places, counting({2, 2}), ints({1})}},
       {ScatterNDUpdate{}, {counting({2, 2, 3}), places, counting({2, 3})}}});
}

TEST(RandomOperators, sort_and_search) {
  expect_survival({{TopK{}, {counting({2, 4}), ints({2})}},
                   {NonZero{}, {counting({2, 2})}},
                   {Unique{}, {counting({2, 3})}},
                   {Unique{}, {counting({2, 3}), ints({1})}},
                   {SearchSorted{}, {counting({2, 3}), counting({2, 2})}},
                   {Bucketize{}, {counting({2, 3}), counting({4})}}});
}

TEST(RandomOperators, generate) {
  const auto one = Tensor::scalar(1.0f);
  expect_survival({{Range{}, {Tensor::scalar(0.0f), Tensor::scalar(9.0f), one}},
                   {Range{ElementType::i64}, {ints({0}), ints({9}), ints({2})}},
                   {OneHot{}, {ints({0, 2}), ints({3}), one, one}},
                   {CumSum{}, {counting({2, 3}), ints({1})}},
                   {Determinant{}, {counting({2, 3, 3})}},
                   {CumProd{}, {counting({2, 3}), ints({1})}},
                   {Eye{}, {ints({3}), ints({2}), ints({1}), ints({2})}},
                   {Trilu{}, {counting({2, 3}), ints({1})}},
                   {RandomUniform{}, {ints({2, 3}), Tensor::scalar(0.0f), one}},
                   {RandomNormal{}, {ints({2, 3}), Tensor::scalar(0.0f), one}},
                   {Einsum{"ij,jk->ik"}, {counting({2, 3}), counting({3, 2})}},
                   {GridSample{}, {counting({1, 2, 3, 3}), counting({1, 2, 2, 2})}},
                   {DFT{}, {counting({2, 3, 2}), ints({0, 1}), ints({2, -1})}},
                   {RDFT{}, {counting({2, 3}), ints({0, 1})}},
                   {IRDFT{}, {counting({2, 3, 2}), ints({0, 1}), ints({2, 5})}},
                   {STFT{}, {counting({2, 9}), counting({3}), ints({4}), ints({2})}}});
}

TEST(RandomOperators, detect) {
  PriorBox priors;
  priors.min_size = {4, 5};
  priors.max_size = {6};
  priors.aspect_ratio = {2};
  priors.fixed_size = {3};
  priors.density = {2};
  PriorBoxClustered clustered;
  clustered.width = clustered.height = {2, 3};
  DetectionOutput output;
  output.normalized = true;
  Proposal proposal;
  proposal.post_nms_topn = 3;
  proposal.ratio = proposal.scale = {1};
  RegionYolo yolo;
  const auto boxes = counting({1, 3, 4}), one = floats({0.5f});
  expect_survival(
      {{priors, {ints({2, 2}), ints({8, 8})}},
       {clustered, {ints({2, 2}), ints({8, 8})}},
       {output, {counting({2, 12}), counting({2, 9}), counting({1, 2, 12})}},
       {output,
        {counting({2, 12}), counting({2, 9}), counting({2, 2, 12}), counting({2, 6}), counting({2, 12})}},
       {NonMaxSuppression{}, {boxes, counting({1, 2, 3}), ints({2}), one, one, one}},
       {MulticlassNms{}, {boxes, counting({1, 2, 3})}},
       {MulticlassNms{}, {counting({2, 3, 4}), counting({2, 3}), ints({1, 2})}},
       {MatrixNms{}, {boxes, counting({1, 2, 3})}},
       {proposal, {counting({2, 2, 2, 2}), counting({2, 4, 2, 2}), floats({8, 8, 1})}},
       {yolo, {counting({1, 6, 2, 2})}},
       {ReorgYolo{{2}}, {counting({1, 4, 4, 2})}},
       {CTCGreedyDecoder{}, {counting({3, 2, 3}), counting({3, 2})}},
       {CTCGreedyDecoderSeqLen{}, {counting({2, 3, 3}), ints({2, 3}), ints({1})}},
       {CTCLoss{},
        {counting({2, 3, 3}), ints({2, 3}), i64({2, 3}, {0, 1, 0, 1, 1, 1}), ints({2, 1}), ints({2})}},
       {ExtractImagePatches{{2, 2}, {1, 1}, {1, 1}}, {counting({1, 2, 4, 4})}}});
}

TEST(RandomOperators, detect_as_a_detectron) {
  ExperimentalDetectronDetectionOutput output;
  output.num_classes = 2;
  output.max_detections_per_image = 3;
  ExperimentalDetectronGenerateProposalsSingleImage one;
  one.post_nms_count = 3;
  ExperimentalDetectronROIFeatureExtractor extractor;
  extractor.pyramid_scales = {1, 2};
  const auto regions = floats({2, 4}, {0, 0, 2, 3, 1, 1, 2, 2}), map = counting({1, 2, 4, 4});
  expect_survival({{GenerateProposals{},
                    {floats({2, 3}, {8, 8, 1, 6, 6, 2}), counting({2, 2, 1, 4}), counting({2, 4, 2, 2}),
                     counting({2, 1, 2, 2})}},
                   {one, {floats({8, 8, 1}), counting({4, 4}), counting({4, 2, 2}), counting({1, 2, 2})}},
                   {output, {regions, counting({2, 8}), counting({2, 2}), floats({1, 3}, {8, 8, 1})}},
                   {extractor, {regions, map, map}}});
}

TEST(RandomOperators, pool_regions) {
  const auto x = counting({2, 4, 4, 4}), rois = floats({2, 5}, {0, 0, 0, 2, 3, 1, 1, 1, 2, 2});
  PSROIPooling bilinear{2, 2};
  bilinear.mode = PsroiMode::bilinear;
  bilinear.spatial_bins_x = 2;
  expect_survival(
      {{ROIPooling{2, 2}, {x, rois}},
       {ROIPooling{2, 2, 1, RoiPoolingMethod::bilinear}, {x, rois}},
       {ROIAlign{2, 2}, {x, floats({2, 4}, {0, 0, 2, 3, 1, 1, 2, 2}), ints({0, 1})}},
       {PSROIPooling{1, 2}, {x, rois}},
       {DeformablePSROIPooling{1, 2}, {x, rois, counting({2, 2, 1, 1})}},
       {bilinear, {x, rois}},
       {YuvToRgb{}, {counting({2, 6, 4, 1})}},
       {YuvToRgb{YuvFormat::i420}, {counting({1, 4, 2, 1}), counting({1, 2, 1, 1}), counting({1, 2, 1, 1})}},
       {DeformableConvolution{},
        {counting({1, 2, 4, 4}), counting({1, 8, 3, 3}), counting({2, 2, 2, 2}), counting({1, 4, 3, 3})}}});
}

}  // namespace
}  // namespace lamina::testing
