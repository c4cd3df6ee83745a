#include "tests/quantise/onnx_case.h"

#include "tests/support/run_graph.h"

namespace lamina::testing {

QuantiseRequest quantise_request(const std::string& input) {
  QuantiseRequest r;
  r.samples.count = 6;
  r.samples.get = [input](std::size_t i) {
    return random_inputs(parse(fmt::format("graph (x: {}) -> (y) {{\n  y = Relu(x)\n}}", input)), 100 + i);
  };
  r.held_out = r.samples;
  r.running.options.threads = 1;
  return r;
}

QuantisedModel quantised(const std::string& bytes, const QuantiseRequest& r) {
  const auto model = Model::from_memory({.model = std::as_bytes(std::span(bytes)), .name = "model"});
  return quantise_onnx(model, *TextSource(bytes), r);
}

}  // namespace lamina::testing
