/// Gather along one axis, and mean-variance normalisation.
#include "ops/gathering.h"

#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/native/strided.h"
#include "ops/normalization.h"

namespace lamina {

void offer_gather(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<Gather>();
  const auto bytes = whole_bytes(v.element(0));
  const auto* axis_tensor = v.constant(2);
  if (op.batch_dims != 0) return answers.refuse("native", "batch_dims {}", op.batch_dims);
  if (!axis_tensor || bytes == 0)
    return answers.refuse("native", "the axis is not constant, or packed elements");
  const bool wide = v.element(1) == ElementType::i64;
  if (!wide && v.element(1) != ElementType::i32)
    return answers.refuse("native", "indices of {}", name_of(v.element(1)));
  const auto x = v.dims(0);
  const auto axis = normalize_axis(to_ints(*axis_tensor).at(0), x.size(), "axis");
  std::int64_t outer = 1, inner = static_cast<std::int64_t>(bytes);
  for (std::size_t i = 0; i < axis; ++i) outer *= x[i];
  for (std::size_t i = axis + 1; i < x.size(); ++i) inner *= x[i];
  const auto size = x[axis], count = static_cast<std::int64_t>(element_count(v.dims(1)));
  if (element_count(v.out_dims()) == 0) return answers.refuse("native", "empty tensors");
  Offer o;
  o.label = "native_gather";
  o.inputs.assign(v.inputs(), Layout::plain);
  o.outputs = {Layout::plain};
  o.consumed = {2};
  o.cost = move_cost(2.0 * static_cast<double>(outer * count * inner));
  o.make = [=](MakeContext&) {
    return executable([=](const RunArgs& args) {
      const auto* data = static_cast<const std::byte*>(args.in[0]);
      auto* out = static_cast<std::byte*>(args.out[0]);
      parallel_for(outer * count, std::max<std::int64_t>(1, 65536 / inner),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (auto i = begin; i < end; ++i) {
                       const auto k = i % count;
                       auto index = wide ? static_cast<const std::int64_t*>(args.in[1])[k]
                                         : static_cast<const std::int32_t*>(args.in[1])[k];
                       if (index < 0) index += size;
                       if (index < 0 || index >= size)
                         fail(ErrorCode::bad_input, "Gather: index {} for an axis of {}", index, size);
                       std::memcpy(out + i * inner, data + (i / count * size + index) * inner,
                                   static_cast<std::size_t>(inner));
                     }
                   });
    });
  };
  answers.offers.push_back(std::move(o));
}

void offer_mvn(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<MVN>();
  const auto* axes_tensor = v.constant(1);
  if (!v.constant(1) || v.element(0) != ElementType::f32)
    return answers.refuse("native", "axes not constant, or not f32");
  const auto x = v.dims(0);
  std::vector<bool> flags(x.size(), false);
  for (auto a : to_ints(*axes_tensor)) flags[normalize_axis(a, x.size(), "axis")] = true;
  std::size_t first = x.size();
  while (first > 0 && flags[first - 1]) --first;
  std::int64_t rows = 1, columns = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i < first && flags[i]) return answers.refuse("native", "normalises other than the last axes");
    (i < first ? rows : columns) *= x[i];
  }
  if (rows * columns == 0) return answers.refuse("native", "empty tensors");
  Offer o;
  o.label = "native_mvn_f32";
  o.stages = 0;
  o.inputs.assign(v.inputs(), Layout::plain);
  o.outputs = {Layout::plain};
  o.consumed = {1};
  o.in_place = {{0, 0}};
  o.cost = 3 * move_cost(8.0 * static_cast<double>(rows * columns));
  o.make = [=](MakeContext&) {
    return executable([=](const RunArgs& args) {
      const auto* in = static_cast<const float*>(args.in[0]);
      auto* out = static_cast<float*>(args.out[0]);
      parallel_for(rows, std::max<std::int64_t>(1, 16384 / columns),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (auto r = begin; r < end; ++r) {
                       const float* a = in + r * columns;
                       float* b = out + r * columns;
                       double sum = 0, squares = 0;
                       for (std::int64_t i = 0; i < columns; ++i) sum += a[i];
                       const double mean = sum / static_cast<double>(columns);
                       for (std::int64_t i = 0; i < columns; ++i) squares += (a[i] - mean) * (a[i] - mean);
                       const double variance = squares / static_cast<double>(columns);
                       double scale = 1;
                       if (op.normalize_variance)
                         scale = op.eps_mode == MvnEpsMode::inside_sqrt ? 1 / std::sqrt(variance + op.eps)
                                                                        : 1 / (std::sqrt(variance) + op.eps);
                       for (std::int64_t i = 0; i < columns; ++i)
                         b[i] = static_cast<float>((a[i] - mean) * scale);
                     }
                   });
    });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
