#include "tool/session.h"

#include <algorithm>

#include "base/error.h"

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
        options.progress = progress.callback();
        return CompiledModel(model, options);
      }()),
      request(compiled.create_request()) {
  for (std::size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
}

Graph with_shapes(const Graph& graph, const Common& c) {
  const auto shapes = c.shapes();
  if (shapes.empty()) return graph;
  Graph g = graph;
  for (const auto& [name, dims] : shapes) {
    const auto& inputs = g.inputs();
    const auto it =
        std::find_if(inputs.begin(), inputs.end(), [&, n = name](ValueId v) { return g.value(v).name == n; });
    if (it == inputs.end()) fail(ErrorCode::bad_input, "--shape: there is no input \"{}\"", name);
    const auto type = g.type(*it);
    if (!type.shape.fits(Shape::of(dims)))
      fail(ErrorCode::bad_input, "--shape: input \"{}\" is {}", name, to_string(type));
    g.set_type(*it, {type.element, Shape::of(dims)});
  }
  g.infer_types();
  return g;
}

}  // namespace lamina::tool
