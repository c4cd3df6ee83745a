#pragma once
/// Errors of what the user gives to a compiled model, in the user's words.
#include "base/error.h"
#include "base/text.h"
#include "lamina/model.h"

namespace lamina {

/// Errors of `body` say which port they are about.
template <class F>
auto naming_port(std::string_view what, const Port& port, F&& body) {
  try {
    return body();
  } catch (const Error& e) {
    fail(e.code(), "{} \"{}\": {}", what, port.name, e.what());
  }
}

/// A compiled model was readable, so what `body` finds wrong with it is the fault of these inputs.
template <class F>
auto on_shapes(const std::vector<Port>& ports, const std::vector<Tensor>& inputs, F&& body) {
  try {
    return body();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::bad_file) throw;
    std::string text;
    for (std::size_t i = 0; i < ports.size(); ++i)
      text += fmt::format("{}\"{}\" {}[{}]", i ? ", " : "", clipped(ports[i].name, 40),
                          name_of(inputs[i].element_type()), fmt::join(inputs[i].shape(), ","));
    fail(ErrorCode::bad_input, "the model cannot run on {}: {}", clipped(text, 150), e.what());
  }
}

}  // namespace lamina
