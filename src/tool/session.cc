#include "tool/session.h"

#include <algorithm>

#include "base/error.h"
#include "exec/variable_memory.h"
#include "lamina/benchmark.h"
#include "lamina/reference.h"

namespace lamina::tool {

Model read_model(const Common& common) {
  Model model(common.model, common.reading());
  if (common.shape.empty() || !is_made_for_sizes(model)) return model;
  const auto& ports = model.inputs();
  std::vector<std::string> names;
  for (const auto& port : ports) names.push_back(port.name);
  LoadedModel::Shapes shapes;
  for (const auto& [name, dims] : common.shapes(names))
    if (ports[*model.find_input(name)].shape != dims) shapes[name] = Shape::of(dims);
  if (shapes.empty()) return model;
  return Inside::read(common.model, common.reading(), shapes);
}

Model open_model(const Common& common) {
  Model model([&] {
    Progress progress("reading " + common.model, common);
    return read_model(common);
  }());
  const auto log = common.options().log;
  for (const auto& warning : model.warnings()) log(LogLevel::warning, warning);
  return model;
}

Options tuned_options(const Common& common, const Model& model, const Options& options,
                      const std::vector<Tensor>& inputs) {
  Progress progress("measuring kernels of " + common.model, common);
  return tuned(model, options, inputs, [&](const std::string& text) { common.note({"--tune: " + text}); });
}

Session::Session(const Common& common, const InputOptions& input_options, Options options,
                 const Machine* machine, const Look& look)
    : model([&] {
        auto opened = open_model(common);
        if (look) look(opened);
        return opened;
      }()),
      inputs(gather_inputs(model, input_options, common, notes)),
      compiled([&] {
        if (common.tune) options = tuned_options(common, model, std::move(options), inputs);
        Progress progress("compiling " + common.model, common);
        options.progress = progress.callback();
        return machine ? Inside::compile_for(*machine, model, options) : CompiledModel(model, options);
      }()),
      request(compiled.create_request()),
      within(std::make_unique<const Within>(&impl().bounds())) {
  for (std::size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
  inputs = with_variables(impl().program(), std::move(inputs));
}

std::vector<Tensor> Session::model_inputs() const {
  return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(model.inputs().size())};
}

void Session::advance(int steps) {
  const auto given = model_inputs();
  const auto values = run_reference(model, given, {.steps = steps}).variables;
  for (const auto& [name, value] : values) request.set_variable(name, value);
  inputs = with_variables(impl().program(), given, values);
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

Model with_shapes(const Model& model, const Common& common) {
  if (common.shape.empty()) return model;
  return Inside::changed(model, with_shapes(Inside::of(model).loaded().graph, common));
}

}  // namespace lamina::tool
