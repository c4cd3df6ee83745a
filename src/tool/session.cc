#include "tool/session.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/eval.h"

namespace lamina::tool {

Model open_model(const Common& common) {
  Model model([&] {
    Progress progress("reading " + common.model, common.quiet);
    return Model(common.model);
  }());
  const auto log = common.options().log;
  for (const auto& warning : model.warnings()) log(LogLevel::warning, warning);
  return model;
}

Session::Session(const Common& common, const InputOptions& input_options, Options options)
    : model(open_model(common)),
      inputs(gather_inputs(model.inputs(), input_options, common, notes)),
      compiled([&] {
        Progress progress("compiling " + common.model, common.quiet);
        return CompiledModel(model, options);
      }()),
      request(compiled.create_request()) {
  for (std::size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
}

Graph with_shapes(const Graph& graph, const Common& c) {
  std::vector<std::string> names;
  for (const auto v : graph.inputs()) names.push_back(graph.value(v).name);
  const auto shapes = c.shapes(names);
  if (shapes.empty()) return graph;
  Graph g = graph;
  for (const auto& [name, dims] : shapes) {
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    const auto v = g.inputs()[static_cast<std::size_t>(at)];
    const auto type = g.type(v);
    if (!type.shape.fits(Shape::of(dims)))
      fail(ErrorCode::bad_input, "--shape: input \"{}\" is {}", name, to_string(type));
    g.set_type(v, {type.element, Shape::of(dims)});
  }
  g.infer_types();
  return g;
}

Difference difference(const Tensor& got, const Tensor& wanted, bool half) {
  Difference d;
  if (!got.valid() || !wanted.valid() || got.shape() != wanted.shape() ||
      is_float(got.element_type()) != is_float(wanted.element_type())) {
    d.comparable = d.within = false;
    return d;
  }
  if (!is_float(wanted.element_type())) {
    with_number_type(wanted.element_type(), [&]<class T>() {
      const auto a = to_numbers<T>(got), b = to_numbers<T>(wanted);
      for (std::size_t i = 0; i < a.size(); ++i) {
        d.mismatches += a[i] != b[i];
        d.max = std::max(d.max, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
      }
    });
    d.within = d.mismatches == 0;
    return d;
  }
  const auto a = to_doubles(got.to_aligned()), b = to_doubles(wanted.to_aligned());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same_odd = (std::isnan(a[i]) && std::isnan(b[i])) || (std::isinf(b[i]) && a[i] == b[i]);
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      d.mismatches += !same_odd;
      continue;
    }
    d.max = std::max(d.max, std::fabs(a[i] - b[i]));
    d.mean += std::fabs(a[i] - b[i]);
    d.largest = std::max(d.largest, std::fabs(b[i]));
  }
  if (!a.empty()) d.mean /= static_cast<double>(a.size());
  half = half || wanted.element_type() == ElementType::f16 || wanted.element_type() == ElementType::bf16;
  d.limit = half ? 1e-3 + 1e-2 * d.largest : 1e-4 + 1e-3 * d.largest;
  d.within = d.mismatches == 0 && d.max <= d.limit;
  return d;
}

std::string to_string(const Difference& d) {
  if (!d.comparable) return "other shape or type";
  if (d.undecided)
    return fmt::format("max {:.3g}, {} values a level off where one rounding decides", d.max, d.undecided);
  if (d.limit == 0) return fmt::format("{} values differ", d.mismatches);
  if (d.mismatches) return fmt::format("{} values not finite in one only", d.mismatches);
  return fmt::format("max {:.3g} of {:.3g} allowed, mean {:.2g}", d.max, d.limit, d.mean);
}

}  // namespace lamina::tool
