#include "tool/session.h"

#include <algorithm>

#include "base/error.h"
#include "lamina/benchmark.h"

namespace lamina::tool {

namespace {

std::vector<std::string> input_names(const Model& model) {
  std::vector<std::string> out;
  for (const auto& port : model.inputs()) out.push_back(port.name);
  return out;
}

/// The model has such data already, or may have.
bool admits(const Port& port, const Dims& dims) {
  return !port.ranked || std::equal(dims.begin(), dims.end(), port.shape.begin(), port.shape.end(),
                                    [](auto size, auto own) { return own < 0 || own == size; });
}

}  // namespace

Model read_model(const Common& common) {
  Model model(common.model, common.reading());
  if (common.shape.empty() || !is_made_for_sizes(model)) return model;
  auto reading = common.reading();
  for (const auto& [name, dims] : common.shapes(input_names(model)))
    if (model.inputs()[*model.find_input(name)].shape != dims)
      reading.input_shapes[name] = PartialShape(dims.begin(), dims.end());
  return reading.input_shapes.empty() ? model : Model(common.model, reading);
}

Model with_shapes(const Model& model, const Common& common) {
  if (common.shape.empty()) return model;
  auto reading = common.reading();
  for (const auto& [name, dims] : common.shapes(input_names(model))) {
    const auto& port = model.inputs()[*model.find_input(name)];
    if (!admits(port, dims)) fail(ErrorCode::bad_input, "--shape: input \"{}\" is {}", name, to_string(port));
    reading.input_shapes[name] = PartialShape(dims.begin(), dims.end());
  }
  return reading.input_shapes.empty() ? model : Model(common.model, reading);
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

Session::Session(const Common& common, const InputOptions& input_options, Options options)
    : model(open_model(common)),
      inputs(gather_inputs(model, input_options, common, notes)),
      compiled([&] {
        if (common.tune) options = tuned_options(common, model, std::move(options), inputs);
        Progress progress("compiling " + common.model, common);
        options.progress = progress.callback();
        return CompiledModel(model, options);
      }()),
      request(compiled.create_request()) {
  for (std::size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
}

}  // namespace lamina::tool
