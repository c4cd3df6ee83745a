#pragma once
/// ONNX models of one node, run by the interpreter and by the kernels.
#include <string>
#include <vector>

#include "ops/eval.h"
#include "tests/support/onnx_model.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {

using List = std::vector<float>;

struct Given {
  std::string name;
  Tensor value{};
  Texts dims{};  ///< as the file says; empty: the value's
};

struct OneNode {
  std::string type;
  std::vector<Given> inputs;  ///< a value that is not valid is left out
  Texts attributes{};
  int opset = 25;
  Texts outputs{"y"};
  std::string domain{};

  std::string model() const {
    OnnxGraph g;
    Texts names;
    for (const auto& i : inputs) {
      names.push_back(i.value.valid() ? i.name : "");
      if (!i.value.valid()) continue;
      auto dims = i.dims;
      for (auto d : dims.empty() ? i.value.shape() : Dims{}) dims.push_back(std::to_string(d));
      g.input(i.name, i.value.element_type(), dims);
    }
    g.node(type, names, outputs, attributes, "n", domain);
    for (const auto& o : outputs)
      if (!o.empty()) g.output(o);
    return onnx_model(g, opset);
  }
  std::vector<Tensor> values() const {
    std::vector<Tensor> out;
    for (const auto& i : inputs)
      if (i.value.valid()) out.push_back(i.value);
    return out;
  }
};

/// By the interpreter and by the kernels.
inline std::vector<Tensor> run(const OneNode& n) {
  const auto loaded = read_onnx_bytes(n.model());
  if (!loaded.unsupported.empty()) throw std::runtime_error(loaded.unsupported[0].reason);
  const auto wanted = interpret(loaded.graph, n.values());
  const auto got = run_graph(loaded.graph, n.values()).outputs;
  for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(got[i], wanted[i], n.type);
  return wanted;
}

inline std::string refused(const OneNode& n) {
  const auto text = onnx_refusal(n.model());
  if (text.empty()) return read_onnx_bytes(n.model()).unsupported.at(0).reason;
  return text.substr(text.find("): ") + 3);
}

inline Tensor longs(Dims shape, const std::vector<std::int64_t>& v) { return integers(std::move(shape), v); }
inline Tensor flags(Dims shape, const std::vector<std::int64_t>& v) {
  return convert(integers(std::move(shape), v), ElementType::boolean);
}
inline Tensor filled(Dims shape, float value) {
  return floats(shape, List(static_cast<std::size_t>(element_count(shape)), value));
}

}  // namespace lamina::testing
