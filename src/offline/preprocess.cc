/// preprocessed(): steps in front of a model and behind it.
#include "lamina/preprocess.h"

#include <algorithm>
#include <cmath>

#include "api/at_work.h"
#include "api/inside.h"
#include "base/guard.h"
#include "offline/preprocessing_options.h"

namespace lamina {
namespace {

using Types = std::map<std::string, ElementType, std::less<>>;

void require_ports(const Types& types, const std::vector<Port>& ports, const char* what) {
  for (const auto& [name, type] : types) {
    if (type == ElementType::undefined)
      fail(ErrorCode::bad_option, "{} \"{}\": wanted an element type", what, name);
    const auto same = [&](const Port& port) { return port.name == name; };
    const auto port = std::find_if(ports.begin(), ports.end(), same);
    if (port == ports.end()) fail(ErrorCode::bad_input, "there is no {} \"{}\"", what, name);
    if (port->value.valid() && port->type != type)
      fail(ErrorCode::bad_option, "{} \"{}\" has a value in the model: its type stays", what, name);
  }
}

PreprocessingRequest request_of(const Preprocessing& steps) {
  PreprocessingRequest out;
  out.types = steps.input_types;
  out.result_types = steps.output_types;
  out.layouts = layout_requests("layout", steps.layout);
  out.means = numbers_of("mean_values", steps.mean_values);
  out.scales = numbers_of("scale_values", steps.scale_values);
  if (steps.scale && (*steps.scale == 0 || !std::isfinite(*steps.scale)))
    fail(ErrorCode::bad_option, "scale {}: wanted a number to divide by", *steps.scale);
  if (steps.scale && !steps.scale_values.empty())
    fail(ErrorCode::bad_option, "both scale and scale_values, wanted one of them");
  out.scale = steps.scale;
  out.reverse_channels = steps.reverse_input_channels;
  return out;
}

/// A value that the model gives an input is in the model's own type, layout and scale.
void spare_values(const std::vector<Port>& inputs, PreprocessingRequest& request) {
  const auto refuse = [](const std::string& name) {
    fail(ErrorCode::bad_option, "input \"{}\" has a value in the model: it is not preprocessed", name);
  };
  for (const auto& port : inputs) {
    if (!port.value.valid()) continue;
    request.unscaled.push_back(port.name);
    for (const auto* list : {&request.means, &request.scales})
      for (const auto& one : *list)
        if (one.name.empty() || one.name == port.name) refuse(port.name);
    for (const auto& layout : request.layouts)
      if (!layout.target.empty() && (layout.name.empty() || layout.name == port.name)) refuse(port.name);
    if (request.reverse_channels) refuse(port.name);
  }
}

}  // namespace

Model preprocessed(const Model& model, const Preprocessing& steps) {
  return guarded("preprocessed", [&] {
    const AtWork here;
    const auto& loaded = Inside::of(model);
    loaded.require_supported();
    const Within within(&loaded.bounds());
    require_ports(steps.input_types, model.inputs(), "input");
    require_ports(steps.output_types, model.outputs(), "output");
    auto graph = loaded.loaded().graph;
    auto request = request_of(steps);
    spare_values(model.inputs(), request);
    for (const auto& port : model.inputs())
      for (const auto& layout : request.layouts)
        if (!port.ranked && layout.name == port.name && !layout.target.empty())
          fail(ErrorCode::bad_option, "layout {}->{}: input \"{}\" is {}", layout.source, layout.target,
               port.name, to_string(port));
    if (!add_preprocessing(graph, request).empty())
      fail(ErrorCode::bad_option, "reverse_input_channels: no input has 3 channels, nothing is reversed");
    return Inside::changed(model, std::move(graph));
  });
}

}  // namespace lamina
