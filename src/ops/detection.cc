#include "ops/detection.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/cancellation.h"
#include "graph/op_model.h"
#include "ops/ctc_loss.h"
#include "ops/detectron.h"
#include "ops/multiclass.h"
#include "ops/operators.h"
#include "ops/packed.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void softmax(double* x, std::int64_t count, std::int64_t stride) {
  double most = x[0], sum = 0;
  for (std::int64_t i = 0; i < count; ++i) most = std::max(most, x[i * stride]);
  for (std::int64_t i = 0; i < count; ++i) sum += x[i * stride] = std::exp(x[i * stride] - most);
  for (std::int64_t i = 0; i < count; ++i) x[i * stride] /= sum;
}

}  // namespace

void RegionYolo::infer(InferContext& c) const {
  const auto limited = [&](std::int64_t v, std::int64_t low, std::string_view what) {
    c.require(v >= low && v <= 1 << 20, "{} is {}, wanted {}..{}", what, v, low, 1 << 20);
  };
  limited(coords, 2, "coords");
  limited(classes, 1, "classes");
  limited(num, 1, "num");
  require_rank(c, 0, 4, "x");
  const auto& x = c.shape(0);
  const auto first = normalize_axis(axis, 4, "axis"), last = normalize_axis(end_axis, 4, "end_axis");
  c.require(first <= last, "axis is {}, end_axis {}, wanted axis first", axis, end_axis);
  const Dim regions = do_softmax ? Dim(num) : Dim(static_cast<std::int64_t>(mask.size()));
  const auto channels = regions * Dim(coords + classes + 1);
  if (!x.ranked()) return c.set(0, c.element(0), do_softmax ? Shape() : Shape::of_rank(4));
  c.require(x[1].fits(channels), "x has shape {}, wanted {} channels", to_string(x), to_string(channels));
  if (!do_softmax) return c.set(0, c.element(0), Shape{x[0], channels, x[2], x[3]});
  Dim flat = 1;
  for (auto a = first; a <= last; ++a) flat = flat * x[a];
  std::vector<Dim> out(x.dims().begin(), x.dims().begin() + static_cast<std::ptrdiff_t>(first));
  out.push_back(flat);
  out.insert(out.end(), x.dims().begin() + static_cast<std::ptrdiff_t>(last) + 1, x.dims().end());
  c.set(0, c.element(0), std::move(out));
}

void RegionYolo::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto area = dims[2] * dims[3], entries = coords + classes + 1;
  const auto regions = area == 0 ? 0 : dims[0] * (do_softmax ? num : static_cast<std::int64_t>(mask.size()));
  auto x = c.doubles(0);
  for (std::int64_t r = 0; r < regions; ++r) {
    double* region = x.data() + r * entries * area;
    for (std::int64_t i = 0; i < 2 * area; ++i) region[i] = sigmoid(region[i]);
    double* object = region + coords * area;
    for (std::int64_t i = 0; i < area * (do_softmax ? 1 : classes + 1); ++i) object[i] = sigmoid(object[i]);
    for (std::int64_t i = 0; i < area && do_softmax; ++i) softmax(object + area + i, classes, area);
  }
  c.store(0, x);
}

void ReorgYolo::infer(InferContext& c) const {
  c.require(!stride.empty() && stride[0] >= 1 && stride[0] <= 1 << 15 &&
                std::all_of(stride.begin(), stride.end(), [&](auto s) { return s == stride[0]; }),
            "stride is {}, wanted one number from 1 on", to_string(stride));
  require_rank(c, 0, 4, "x");
  const auto& x = c.shape(0);
  if (!x.ranked()) return c.set(0, c.element(0), Shape::of_rank(4));
  const auto s = stride[0];
  c.require((!x[1].known() || (x[1].size() % (s * s) == 0 && x[1].size() > 0)) &&
                (!x[2].known() || x[2].size() % s == 0) && (!x[3].known() || x[3].size() % s == 0),
            "x has shape {}, wanted channels in multiples of {} and sizes of {}", to_string(x), s * s, s);
  c.set(0, c.element(0), Shape{x[0], x[1] * Dim(s * s), floor_div(x[2], s), floor_div(x[3], s)});
}

void ReorgYolo::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto& dims = c.dims(0);
  const auto s = stride[0], channels = dims[1], height = dims[2], width = dims[3],
             planes = channels / (s * s);
  const auto bytes = element_bytes(c.in(0).element_type());
  std::size_t to = 0;
  for (std::int64_t n = 0; n < dims[0] && c.out().size() > 0; ++n)
    for (std::int64_t k = 0; k < channels; ++k)
      for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x, ++to) {
          const auto part = k / planes;
          const auto from_y = y * s + part / s, from_x = x * s + part % s;
          const auto from = ((n * planes + k % planes) * height * s + from_y) * width * s + from_x;
          std::memcpy(c.out().raw() + to * bytes, c.in(0).raw() + static_cast<std::size_t>(from) * bytes,
                      bytes);
        }
}

namespace {

/// Index of the largest; the first of equal ones.
std::int64_t best_class(const double* scores, std::int64_t count) {
  return std::max_element(scores, scores + count) - scores;
}

}  // namespace

void CTCGreedyDecoder::infer(InferContext& c) const {
  require_rank(c, 0, 3, "probabilities");
  require_rank(c, 1, 2, "mask");
  const auto &x = c.shape(0), &mask = c.shape(1);
  Dim steps = mask.ranked() ? mask[0] : Dim(), batch = mask.ranked() ? mask[1] : Dim();
  if (x.ranked()) {
    c.require(x[0].fits(steps) && x[1].fits(batch), "probabilities {} and mask {} do not fit", to_string(x),
              to_string(mask));
    c.require(x[2].high() >= 1, "probabilities have shape {}, wanted classes", to_string(x));
    steps = x[0];
    batch = x[1];
  }
  c.set(0, c.element(0), Shape{batch, steps, Dim(1), Dim(1)});
}

void CTCGreedyDecoder::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto steps = dims[0], batch = dims[1], classes = dims[2];
  const auto x = c.doubles(0), mask = c.doubles(1);
  std::vector<double> out(c.out().size(), -1.0);
  for (std::int64_t n = 0; n < batch && steps > 0; ++n) {
    std::int64_t before = -1, to = n * steps;
    for (std::int64_t t = 0; t < steps && mask[static_cast<std::size_t>(t * batch + n)] != 0; ++t) {
      const auto best = best_class(x.data() + (t * batch + n) * classes, classes);
      if (best != classes - 1 && !(ctc_merge_repeated && best == before))
        out[static_cast<std::size_t>(to++)] = static_cast<double>(best);
      before = best;
    }
  }
  c.store(0, out);
}

void CTCGreedyDecoderSeqLen::infer(InferContext& c) const {
  for (const auto type : {classes_index_type, sequence_length_type})
    c.require(type == ElementType::i32 || type == ElementType::i64, "an output type is {}, wanted i32 or i64",
              name_of(type));
  require_rank(c, 0, 3, "probabilities");
  require_rank(c, 1, 1, "lengths");
  require_integer(c, 1, "lengths");
  const auto blank = c.has(2) ? known_int(c, 2, "blank").value_or(0) : 0;
  const auto& x = c.shape(0);
  Dim batch = c.shape(1).ranked() ? c.shape(1)[0] : Dim(), steps;
  if (x.ranked()) {
    c.require(x[0].fits(batch), "probabilities {} and lengths {} do not fit", to_string(x),
              to_string(c.shape(1)));
    c.require(x[2].high() >= 1, "probabilities have shape {}, wanted classes", to_string(x));
    c.require(blank >= 0 && blank < x[2].high(), "blank is {}, wanted one of {} classes", blank,
              to_string(x[2]));
    batch = x[0];
    steps = x[1];
  }
  c.set(0, classes_index_type, Shape{batch, steps});
  if (c.outputs() > 1) c.set(1, sequence_length_type, Shape{batch});
}

void CTCGreedyDecoderSeqLen::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto steps = dims[1], classes = dims[2], blank = c.has(2) ? c.ints(2).at(0) : classes - 1;
  const auto x = c.doubles(0);
  const auto lengths = c.ints(1);
  Ints out(c.out(0).size(), -1), found(lengths.size(), 0);
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    if (lengths[n] < 0 || lengths[n] > steps)
      fail(ErrorCode::bad_input, "a sequence has length {}, wanted 0..{}", lengths[n], steps);
    std::int64_t before = -1;
    for (std::int64_t t = 0; t < lengths[n]; ++t) {
      const auto row = static_cast<std::int64_t>(n) * steps;
      const auto best = best_class(x.data() + (row + t) * classes, classes);
      if (best != blank && !(merge_repeated && best == before))
        out[static_cast<std::size_t>(row + found[n]++)] = best;
      before = best;
    }
  }
  c.store(0, out);
  if (c.outputs() > 1) c.store(1, found);
}

namespace {

/// Padding before the picture, and the number of windows.
struct PatchAxis {
  std::int64_t before = 0;
  Dim count;
};

PatchAxis patch_axis(const Dim& size, std::int64_t kernel, std::int64_t stride, std::int64_t rate,
                     AutoPad pad) {
  const auto span = (kernel - 1) * rate + 1;
  if (pad == AutoPad::valid || pad == AutoPad::explicit_)
    return {0, size.low() < span ? (size.known() ? Dim(0) : Dim())
                                 : floor_div(size - Dim(span), stride) + Dim(1)};
  PatchAxis out{0, floor_div(size + Dim(stride - 1), stride)};
  if (!size.known()) return out;
  const auto padding = std::max<std::int64_t>((out.count.size() - 1) * stride + span - size.size(), 0);
  out.before = pad == AutoPad::same_upper ? padding / 2 : padding - padding / 2;
  return out;
}

}  // namespace

void ExtractImagePatches::infer(InferContext& c) const {
  for (const auto* list : {&sizes, &strides, &rates})
    c.require(list->size() == 2 &&
                  std::all_of(list->begin(), list->end(), [](auto v) { return v >= 1 && v <= 1 << 15; }),
              "sizes {}, strides {}, rates {}, wanted two numbers from 1 on each", to_string(sizes),
              to_string(strides), to_string(rates));
  require_rank(c, 0, 4, "x");
  const auto& x = c.shape(0);
  if (!x.ranked()) return c.set(0, c.element(0), Shape::of_rank(4));
  c.set(0, c.element(0),
        Shape{x[0], x[1] * Dim(sizes[0] * sizes[1]),
              patch_axis(x[2], sizes[0], strides[0], rates[0], auto_pad).count,
              patch_axis(x[3], sizes[1], strides[1], rates[1], auto_pad).count});
}

void ExtractImagePatches::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto &dims = c.dims(0), &to_dims = c.out_dims();
  const auto channels = dims[1], height = dims[2], width = dims[3];
  const auto top = patch_axis(height, sizes[0], strides[0], rates[0], auto_pad).before;
  const auto left = patch_axis(width, sizes[1], strides[1], rates[1], auto_pad).before;
  const auto bytes = element_bytes(c.in(0).element_type());
  std::size_t to = 0;
  StopPoints points;
  for (std::int64_t n = 0; n < dims[0] && c.out().size() > 0; ++n)
    for (std::int64_t k = 0; k < to_dims[1]; ++k)
      for (std::int64_t oy = 0; oy < to_dims[2]; points(8 * to_dims[3]), ++oy)
        for (std::int64_t ox = 0; ox < to_dims[3]; ++ox, ++to) {
          const auto tap = k / channels;
          const auto y = oy * strides[0] - top + tap / sizes[1] * rates[0],
                     x = ox * strides[1] - left + tap % sizes[1] * rates[1];
          if (y < 0 || y >= height || x < 0 || x >= width) continue;
          const auto from = ((n * channels + k % channels) * height + y) * width + x;
          std::memcpy(c.out().raw() + to * bytes, c.in(0).raw() + static_cast<std::size_t>(from) * bytes,
                      bytes);
        }
}

void register_detection(Registry& r) {
  r.add<PriorBox>();
  r.add<PriorBoxClustered>();
  r.add<DetectionOutput>();
  r.add<NonMaxSuppression>();
  r.add<MulticlassNms>();
  r.add<MatrixNms>();
  r.add<ROIPooling>();
  r.add<ROIAlign>();
  r.add<PSROIPooling>();
  r.add<DeformablePSROIPooling>();
  r.add<DeformableConvolution>();
  r.add<RegionYolo>();
  r.add<ReorgYolo>();
  r.add<Proposal>();
  r.add<GenerateProposals>();
  r.add<ExperimentalDetectronGenerateProposalsSingleImage>();
  r.add<ExperimentalDetectronDetectionOutput>();
  r.add<ExperimentalDetectronROIFeatureExtractor>();
  r.add<CTCGreedyDecoder>();
  r.add<CTCGreedyDecoderSeqLen>();
  r.add<CTCLoss>();
  r.add<ExtractImagePatches>();
}

}  // namespace lamina
