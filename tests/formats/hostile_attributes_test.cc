// Attributes and constant operands with hostile values in files: a one-line error, or the graph that the same
// attributes make elsewhere.
#include <gtest/gtest.h>

#include "graph/verify.h"
#include "tests/ops/hostile_values.h"
#include "tests/ops/operator_examples.h"
#include "tests/support/onnx_model.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// How IR spells it.
std::string ir_text(const Attribute& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* list = std::get_if<Strings>(&value)) return fmt::format("{}", fmt::join(*list, ","));
  std::string out = to_string(value);
  std::erase_if(out, [](char c) { return c == '[' || c == ']' || c == '"'; });
  return out;
}

/// Attributes that IR does not have, or has by way of other inputs.
bool is_own(const std::string& name) {
  return name == "groups" || name == "storage_order" || name == "exclude_outside" ||
         name == "extrapolation_value" || name == "variable_shape";
}

/// The graph as IR, changed; nothing where IR has no word for it.
std::optional<IrText> as_ir(const Graph& g, const Change& change) {
  IrText ir;
  std::vector<From> from(g.value_slots());
  for (auto v : g.inputs()) {
    const auto& type = g.type(v);
    from[v.index] = {
        ir.parameter(g.value(v).name, ir_text(Ints(type.shape.sizes())), std::string(name_of(type.element)))};
  }
  for (std::uint32_t i = 0; i < g.value_slots(); ++i)
    if (const auto* given = g.constant({i})) {
      const Tensor t = (ValueId{i} == change.value ? change.constant : *given).to_aligned();
      if (bits_of(t.element_type()) < 8) return std::nullopt;
      from[i] = {ir.constant(std::string(name_of(t.element_type())), ir_text(Ints(t.shape())),
                             {reinterpret_cast<const char*>(t.raw()), t.bytes()})};
    }
  for (auto id : g.order()) {
    const Node& n = g.node(id);
    if (n.op.info().opset == 0 || !n.bodies.empty()) return std::nullopt;
    for (const auto& a : n.op->changed_attributes())
      if (is_own(a.name)) return std::nullopt;
    std::string data;
    for (const auto& a : n.op->attributes()) {
      const bool here = id == change.node && a.name == change.attribute.name;
      if (is_own(a.name) && here) return std::nullopt;
      if (is_own(a.name)) continue;
      data += fmt::format(" {}=\"{}\"", a.name, ir_text(here ? change.attribute.value : a.value));
    }
    std::vector<From> inputs;
    for (auto v : n.inputs) {
      if (!v.valid()) return std::nullopt;
      inputs.push_back(from[v.index]);
    }
    const int layer = ir.layer(n.op.name(), "opset16", data, inputs, static_cast<int>(n.outputs.size()));
    for (std::size_t o = 0; o < n.outputs.size(); ++o)
      from[n.outputs[o].index] = {layer, static_cast<int>(inputs.size() + o)};
  }
  for (const auto& r : g.results()) ir.result(from[r.value.index]);
  return ir;
}

void expect_ordinary(const Error& e) {
  EXPECT_NE(e.code(), ErrorCode::internal) << e.what();
  EXPECT_EQ(std::string_view(e.what()).find('\n'), std::string_view::npos) << e.what();
  EXPECT_LT(std::string_view(e.what()).size(), 2000U);
}

std::vector<Tensor> inputs_of(const Graph& g) {
  std::vector<Tensor> inputs;
  for (auto v : g.inputs())
    inputs.push_back(seeded_tensor(g.type(v).element, g.type(v).shape.sizes(), v.index));
  return inputs;
}

/// Results, or none when there is an error.
std::optional<std::vector<Tensor>> results_of(const Graph& g) {
  try {
    return interpret(g, inputs_of(g));
  } catch (const Error& e) {
    expect_ordinary(e);
    return std::nullopt;
  }
}

void expect_same_results(const Graph& a, const Graph& b) {
  if (!is_small(a) || !is_small(b)) return;
  const auto x = results_of(a), y = results_of(b);
  ASSERT_EQ(x.has_value(), y.has_value());
  for (std::size_t i = 0; x && i < x->size(); ++i) EXPECT_TRUE((*x)[i].same_as((*y)[i])) << "result " << i;
}

TEST(HostileAttributes, InIr) {
  std::size_t files = 0, read_files = 0;
  for (const auto& example : operator_examples()) {
    const Graph graph = parse(example);
    auto changes = hostile_changes(graph);
    changes.insert(changes.begin(), Change{});
    for (std::size_t k = 0; k < changes.size(); ++k) {
      const auto& change = changes[k];
      const auto ir = as_ir(graph, change);
      if (!ir) continue;
      SCOPED_TRACE(k == 0 ? example : text_of(graph, change));
      ++files;
      try {
        const auto loaded = read(*ir);
        ++read_files;
        EXPECT_EQ(verify(loaded.graph), Strings());
        if (!loaded.unsupported.empty()) continue;
        expect_same_results(changed(graph, change), loaded.graph);
      } catch (const Error& e) {
        EXPECT_NE(k, 0U) << e.what();
        expect_ordinary(e);
      }
    }
  }
  EXPECT_GT(files, 4000U);
  EXPECT_GT(read_files, 500U);
}

using OnnxValue = std::variant<std::int64_t, float, std::string, Ints>;

struct OnnxExample {
  std::string type;
  std::vector<std::pair<std::string, OnnxValue>> attributes;
  std::vector<Tensor> inputs;  ///< the first one is the graph's; invalid: absent
  std::size_t outputs = 1;
};

Tensor seeded(Dims shape, ElementType type = ElementType::f32) {
  return seeded_tensor(type, std::move(shape), 1);
}

const std::vector<OnnxExample>& onnx_examples() {
  const auto i = [](Ints v) { return integers({std::ssize(v)}, v); };
  const Tensor none;
  static const std::vector<OnnxExample> all{
      {"Conv",
       {{"strides", Ints{1, 2}},
        {"dilations", Ints{1, 1}},
        {"pads", Ints{1, 0, 1, 0}},
        {"group", 2},
        {"kernel_shape", Ints{3, 3}}},
       {seeded({1, 4, 8, 8}), seeded({4, 2, 3, 3})}},
      {"Conv",
       {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}},
       {seeded({1, 4, 8, 8}), seeded({4, 4, 3, 3})}},
      {"ConvTranspose",
       {{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 0}}, {"output_padding", Ints{1, 0}}, {"group", 2}},
       {seeded({1, 4, 5, 5}), seeded({4, 2, 3, 3})}},
      {"ConvTranspose",
       {{"strides", Ints{2, 2}}, {"output_shape", Ints{10, 9}}},
       {seeded({1, 4, 5, 5}), seeded({4, 2, 3, 3})}},
      {"MaxPool",
       {{"kernel_shape", Ints{2, 3}},
        {"strides", Ints{2, 1}},
        {"dilations", Ints{1, 1}},
        {"pads", Ints{0, 1, 1, 0}},
        {"ceil_mode", 1},
        {"storage_order", 1}},
       {seeded({1, 2, 6, 6})},
       2},
      {"AveragePool",
       {{"kernel_shape", Ints{2, 3}},
        {"strides", Ints{2, 1}},
        {"pads", Ints{0, 1, 1, 0}},
        {"ceil_mode", 1},
        {"count_include_pad", 1}},
       {seeded({1, 2, 6, 6})}},
      {"LpPool", {{"kernel_shape", Ints{2, 3}}, {"p", 2}}, {seeded({1, 2, 6, 6})}},
      {"Transpose", {{"perm", Ints{2, 0, 1}}}, {seeded({2, 3, 4})}},
      {"Reshape", {{"allowzero", 0}}, {seeded({2, 3, 4}), i({0, -1, 2})}},
      {"Flatten", {{"axis", 2}}, {seeded({2, 3, 4})}},
      {"Squeeze", {}, {seeded({2, 1, 4, 1}), i({1, -1})}},
      {"Unsqueeze", {}, {seeded({2, 3}), i({0, -1})}},
      {"Expand", {}, {seeded({2, 1, 3}), i({2, 4, 3})}},
      {"Tile", {}, {seeded({2, 3}), i({2, 1})}},
      {"Concat", {{"axis", -1}}, {seeded({2, 3}), seeded({2, 2})}},
      {"Split", {{"axis", 1}}, {seeded({2, 6, 4}), i({2, 4})}, 2},
      {"Slice", {}, {seeded({4, 6, 5}), i({1, -1}), i({4, 0}), i({1, 2}), i({2, -1})}},
      {"Pad", {{"mode", std::string("constant")}}, {seeded({2, 3, 4}), i({0, 1, 2, 1, -1, 0})}},
      {"DepthToSpace", {{"blocksize", 2}, {"mode", std::string("CRD")}}, {seeded({1, 8, 2, 3})}},
      {"SpaceToDepth", {{"blocksize", 2}}, {seeded({1, 2, 4, 6})}},
      {"Gather", {{"axis", 1}}, {seeded({3, 4, 2}), i({0, -1})}},
      {"GatherElements", {{"axis", 1}}, {seeded({2, 3}), integers({2, 2}, {0, 2, 1, 1})}},
      {"GatherND", {{"batch_dims", 1}}, {seeded({2, 3, 4}), integers({2, 1}, {2, 0})}},
      {"ScatterElements", {{"axis", 1}}, {seeded({3, 4}), integers({1, 2}, {0, 2}), seeded({1, 2})}},
      {"ScatterND", {}, {seeded({3, 4}), integers({2, 1}, {0, 2}), seeded({2, 4})}},
      {"TopK", {{"axis", -1}, {"largest", 0}, {"sorted", 1}}, {seeded({2, 5}), i({2})}, 2},
      {"ArgMax", {{"axis", 1}, {"keepdims", 0}, {"select_last_index", 0}}, {seeded({2, 5})}},
      {"Unique", {{"axis", 1}, {"sorted", 0}}, {seeded({2, 3})}, 4},
      {"OneHot", {{"axis", -1}}, {integers({3}, {0, 2, 1}), i({4}), floats({2}, {0, 1})}},
      {"ReduceSum", {{"keepdims", 0}}, {seeded({2, 3, 4}), i({1, -1})}},
      {"ReduceMean", {{"axes", Ints{1, -1}}, {"keepdims", 0}}, {seeded({2, 3, 4})}},
      {"Softmax", {{"axis", 1}}, {seeded({2, 3, 4})}},
      {"LogSoftmax", {{"axis", -1}}, {seeded({2, 3, 4})}},
      {"Hardmax", {{"axis", 1}}, {seeded({2, 3, 4})}},
      {"CumSum", {{"exclusive", 1}, {"reverse", 0}}, {seeded({2, 3, 4}), Tensor::scalar<std::int64_t>(1)}},
      {"CumProd", {{"exclusive", 1}, {"reverse", 0}}, {seeded({2, 3, 4}), Tensor::scalar<std::int64_t>(1)}},
      {"STFT", {{"onesided", 1}}, {seeded({1, 9, 1}), Tensor::scalar<std::int64_t>(2), seeded({4})}},
      {"RotaryEmbedding",
       {{"interleaved", 1}, {"num_heads", 2}, {"rotary_embedding_dim", 2}},
       {seeded({1, 3, 8}), seeded({1, 3, 1}), seeded({1, 3, 1})}},
      {"Col2Im",
       {{"strides", Ints{1, 2}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 1, 0, 1}}},
       {seeded({1, 4, 9}), i({4, 4}), i({2, 2})}},
      {"AffineGrid", {{"align_corners", 1}}, {seeded({2, 2, 3}), i({2, 1, 3, 4})}},
      {"MaxRoiPool",
       {{"pooled_shape", Ints{2, 2}}, {"spatial_scale", 0.5F}},
       {seeded({1, 2, 5, 5}), floats({1, 5}, {0, 0, 0, 4, 4})}},
      {"LRN", {{"size", 3}, {"alpha", 1e-4F}, {"bias", 1.0F}}, {seeded({2, 4, 3, 3})}},
      {"InstanceNormalization", {{"epsilon", 1e-5F}}, {seeded({2, 4, 3}), seeded({4}), seeded({4})}},
      {"BatchNormalization",
       {{"epsilon", 1e-5F}},
       {seeded({2, 4, 3}), seeded({4}), seeded({4}), seeded({4}), floats({4}, {1, 2, 3, 4})}},
      {"MeanVarianceNormalization", {{"axes", Ints{0, 2}}}, {seeded({2, 4, 3})}},
      {"LpNormalization", {{"axis", 1}, {"p", 2}}, {seeded({2, 4, 3})}},
      {"QuantizeLinear", {{"axis", 1}}, {seeded({2, 4, 3}), floats({4}, {1, 2, 3, 4})}},
      {"DequantizeLinear", {{"axis", -2}}, {seeded({2, 4, 3}, ElementType::u8), floats({4}, {1, 2, 3, 4})}},
      {"Gemm",
       {{"transA", 1}, {"transB", 1}, {"alpha", 0.5F}},
       {seeded({3, 2}), seeded({4, 3}), seeded({4})}},
      {"Einsum", {{"equation", std::string("ij,jk->ik")}}, {seeded({2, 3}), seeded({3, 4})}},
      {"LSTM",
       {{"hidden_size", 2},
        {"direction", std::string("forward")},
        {"layout", 0},
        {"clip", 1.0F},
        {"input_forget", 0}},
       {seeded({3, 1, 4}), seeded({1, 8, 4}), seeded({1, 8, 2})},
       3},
      {"GRU",
       {{"hidden_size", 2}, {"linear_before_reset", 1}},
       {seeded({3, 1, 4}), seeded({1, 6, 4}), seeded({1, 6, 2})},
       2},
      {"RNN", {{"hidden_size", 2}}, {seeded({3, 1, 4}), seeded({1, 2, 4}), seeded({1, 2, 2})}, 2},
      {"Resize",
       {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("half_pixel")}},
       {seeded({1, 2, 3, 4}), none, none, i({1, 2, 6, 5})}},
      {"Resize",
       {{"mode", std::string("cubic")}, {"exclude_outside", 1}},
       {seeded({1, 2, 3, 4}), none, floats({4}, {1, 1, 2, 1.5})}},
      {"RoiAlign",
       {{"output_height", 2}, {"output_width", 2}, {"sampling_ratio", 2}},
       {seeded({1, 2, 4, 4}), floats({1, 4}, {0, 0, 2, 3}), i({0})}},
      {"MaxRoiPool", {{"pooled_shape", Ints{2, 2}}}, {seeded({1, 2, 4, 4}), floats({1, 5}, {0, 0, 0, 2, 3})}},
      {"NonMaxSuppression", {{"center_point_box", 1}}, {seeded({1, 3, 4}), seeded({1, 2, 3}), i({2})}},
      {"ReverseSequence", {{"batch_axis", 0}, {"time_axis", 1}}, {seeded({2, 3, 4}), i({1, 3})}},
      {"Trilu", {{"upper", 0}}, {seeded({3, 3}), Tensor::scalar<std::int64_t>(1)}},
      {"EyeLike", {{"k", 1}, {"dtype", 1}}, {seeded({3, 3})}},
      {"Cast", {{"to", 7}}, {seeded({3, 3})}},
      {"Compress", {{"axis", 1}}, {seeded({2, 3}), from_ints(ElementType::boolean, {3}, {1, 0, 1})}},
      {"Shrink", {{"lambd", 0.5F}}, {seeded({3})}},
      {"SpaceToDepth", {{"blocksize", 1}}, {seeded({1, 2, 4, 6})}},
  };
  return all;
}

std::string onnx_bytes(const OnnxExample& e, std::size_t attribute_at, const OnnxValue* value,
                       std::size_t input_at, const Tensor* constant) {
  Texts attributes, names, outputs;
  for (std::size_t k = 0; k < e.attributes.size(); ++k)
    std::visit([&](const auto& v) { attributes.push_back(attribute(e.attributes[k].first, v)); },
               value && k == attribute_at ? *value : e.attributes[k].second);
  OnnxGraph g;
  for (std::size_t k = 0; k < e.inputs.size(); ++k) {
    const Tensor& t = constant && k == input_at ? *constant : e.inputs[k];
    names.push_back(t.valid() ? fmt::format("in{}", k) : "");
    if (!t.valid()) continue;
    Texts dims;
    for (auto d : t.shape()) dims.push_back(std::to_string(d));
    if (k == 0)
      g.input("in0", t.element_type(), dims);
    else
      g.initializer(names.back(), t);
  }
  for (std::size_t k = 0; k < e.outputs; ++k) outputs.push_back(fmt::format("out{}", k));
  g.node(e.type, names, outputs, attributes);
  for (const auto& o : outputs) g.output(o);
  return onnx_model(g, 13);
}

/// Other values of the same kind.
std::vector<OnnxValue> hostile_onnx(const OnnxValue& old) {
  std::vector<OnnxValue> out;
  if (std::holds_alternative<std::int64_t>(old))
    out.insert(out.end(), hostile_integers().begin(), hostile_integers().end());
  if (std::holds_alternative<float>(old))
    for (double v : hostile_numbers()) out.emplace_back(static_cast<float>(v));
  if (const auto* list = std::get_if<Ints>(&old))
    for (auto& v : hostile_lists(*list, hostile_integers())) out.emplace_back(std::move(v));
  if (std::holds_alternative<std::string>(old))
    for (const char* word : {"", "same", "SAME_LOWER", "VALID", "NOTSET", "reflect", "edge", "wrap",
                             "nearest", "tf_crop_and_resize", "reverse", "i->", "ij", "...,->", "ijk,jk->ii"})
      out.emplace_back(std::string(word));
  out.emplace_back(std::string("another kind"));
  return out;
}

/// Reads and, when that is small, runs, by the interpreter and by plan and kernels: both give the same, or
/// both an Error.
bool reads_and_runs(const std::string& bytes, bool compare = true) {
  Graph g;
  try {
    auto loaded = read_onnx_bytes(bytes);
    EXPECT_EQ(verify(loaded.graph), Strings());
    if (!loaded.unsupported.empty() || !is_small(loaded.graph)) return true;
    g = std::move(loaded.graph);
  } catch (const Error& e) {
    expect_ordinary(e);
    return false;
  }
  const auto wanted = results_of(g);
  try {
    Graph rewritten = g;
    Ledger ledger;
    optimize(rewritten, {}, ledger);
    const auto got = run_graph(rewritten, inputs_of(g), 1);
    EXPECT_TRUE(wanted) << "the plan gives a result, the interpreter an error";
    for (std::size_t i = 0; compare && wanted && i < wanted->size(); ++i)
      expect_close(got.outputs[i], (*wanted)[i], "the plan");
  } catch (const Error& e) {
    EXPECT_FALSE(wanted) << e.what();
    expect_ordinary(e);
  }
  return true;
}

TEST(HostileAttributes, InOnnx) {
  std::size_t files = 0, read_files = 0;
  for (const auto& e : onnx_examples()) {
    SCOPED_TRACE(e.type);
    EXPECT_TRUE(reads_and_runs(onnx_bytes(e, 0, nullptr, 0, nullptr)));
    for (std::size_t k = 0; k < e.attributes.size(); ++k)
      for (const auto& value : hostile_onnx(e.attributes[k].second)) {
        SCOPED_TRACE(e.attributes[k].first);
        ++files;
        read_files +=
            reads_and_runs(onnx_bytes(e, k, &value, 0, nullptr), e.type != "LpPool");  // powers of any height
      }
    for (std::size_t k = 1; k < e.inputs.size(); ++k)
      for (const auto& value : e.inputs[k].valid() ? hostile_constants(e.inputs[k]) : std::vector<Tensor>()) {
        SCOPED_TRACE(fmt::format("input {} = {}", k, to_string(to_ints(value))));
        ++files;
        read_files += reads_and_runs(onnx_bytes(e, 0, nullptr, k, &value));
      }
  }
  EXPECT_GT(files, 2000U);
  EXPECT_GT(read_files, 300U);
}

}  // namespace
}  // namespace lamina::testing
