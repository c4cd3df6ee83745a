#include "tests/support/onednn_graph.h"

#include <gtest/gtest.h>

#include "interpreter/interpreter.h"
#include "lamina/error.h"
#include "ops/eval.h"
#include "rules/widen_half.h"
#include "tests/support/kept_models.h"

namespace lamina::testing {
namespace {

std::shared_ptr<const MappedFile> in_memory(std::string_view bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return MappedFile::in_memory("graph.json", std::as_bytes(std::span(*owner)), owner);
}

std::string dtype_of(ElementType type) {
  switch (type) {
    case ElementType::i8:
      return "s8";
    case ElementType::i32:
      return "s32";
    case ElementType::i4:
      return "s4";
    default:
      return std::string(name_of(type));
  }
}

}  // namespace

std::string logical(int id, const std::string& dtype, const Dims& shape) {
  return fmt::format(
      R"({{"id": {}, "dtype": "{}", "shape": [{}], "stride": [], "layout_type": "undef", "property_type": "undef"}})",
      id, dtype, fmt::join(shape, ", "));
}

std::string attribute(const std::string& name, const std::string& type, const std::string& value) {
  return fmt::format(R"("{}": {{"type": "{}", "value": {}}})", name, type, value);
}

OneDnnGraph& OneDnnGraph::op(const std::string& kind, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs,
                             const std::vector<std::string>& attributes) {
  ops_ += fmt::format(
      R"({}{{"id": {}, "name": "op{}", "kind": "{}", "attrs": {{{}}}, "inputs": [{}], "outputs": [{}]}})",
      ops_.empty() ? "" : ",\n", next_, next_, kind, fmt::join(attributes, ", "), fmt::join(inputs, ", "),
      fmt::join(outputs, ", "));
  ++next_;
  return *this;
}

OneDnnGraph& OneDnnGraph::field(const std::string& text) {
  fields_ += text + ", ";
  return *this;
}

std::string OneDnnGraph::text() const {
  return fmt::format(R"({{"version": "3.5.0", "engine_kind": "cpu", {}"graph": [
{}]}})",
                     fields_, ops_);
}

Loaded read_onednn_text(std::string_view text, const ReadSettings& settings) {
  auto loaded = read(MemorySource(in_memory(text), nullptr, {}), settings);
  keep_model("json", text);
  return loaded;
}

std::vector<Tensor> run_onednn(std::string_view text, const std::vector<Tensor>& inputs) {
  auto loaded = read_onednn_text(text);
  for (const auto& u : loaded.unsupported) ADD_FAILURE() << u.type << ": " << u.reason;
  for (const auto& w : loaded.warnings) ADD_FAILURE() << w;
  const auto literal = interpret(loaded.graph, inputs);
  widen_half(loaded.graph);
  const auto outputs = interpret(loaded.graph, inputs);
  EXPECT_EQ(outputs.size(), literal.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(outputs[i].element_type(), literal[i].element_type());
    EXPECT_EQ(outputs[i].shape(), literal[i].shape());
    EXPECT_EQ(fmt::format("{}", fmt::join(to_doubles(outputs[i]), " ")),
              fmt::format("{}", fmt::join(to_doubles(literal[i]), " ")));
  }
  return outputs;
}

std::vector<Tensor> run_onednn_op(const std::string& kind, const std::vector<Tensor>& inputs,
                                  const std::vector<std::string>& outputs,
                                  const std::vector<std::string>& attributes) {
  std::vector<std::string> tensors;
  for (const auto& t : inputs)
    tensors.push_back(logical(static_cast<int>(tensors.size()), dtype_of(t.element_type()), t.shape()));
  return run_onednn(OneDnnGraph().op(kind, tensors, outputs, attributes).text(), inputs);
}

std::string onednn_refusal(std::string_view text) {
  try {
    read_onednn_text(text);
    return {};
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file) << e.what();
    const std::string_view what = e.what();
    EXPECT_TRUE(what.starts_with("graph.json: ")) << what;
    EXPECT_EQ(what.find('\n'), std::string_view::npos);
    return std::string(what.substr(std::min<std::size_t>(12, what.size())));
  }
}

}  // namespace lamina::testing
