/// Reading is stopped in the midst, whatever part of whichever format takes long. What is counted is how
/// often readers ask whether they must stop: that depends neither on time nor on the machine.
#include <gtest/gtest.h>

#include <functional>

#include "base/cancellation.h"
#include "tests/support/caffe_model.h"
#include "tests/support/counting_signal.h"
#include "tests/support/onednn_graph.h"
#include "tests/support/onnx_model.h"

namespace lamina::stopping_test {
namespace {

using namespace testing;

struct LongFile {
  const char* name;
  std::function<std::string()> model;
  std::function<std::string()> weights = {};  ///< of an IR or a Caffe network; or external data of ONNX
  /// So often at least readers ask: once in 100,000 bytes, or for each 100 nodes.
  std::int64_t questions = 0;
};
std::ostream& operator<<(std::ostream& out, const LongFile& file) { return out << file.name; }

using Longs = std::vector<std::int64_t>;
constexpr std::size_t kMany = std::size_t{1} << 22;  // small things in a file

std::string repeated(std::string_view piece, std::size_t count) {
  std::string out;
  out.reserve(piece.size() * count);
  while (count-- > 0) out += piece;
  return out;
}

std::string varint(std::uint64_t v) {
  std::string out;
  for (; v > 127; v >>= 7) out += static_cast<char>((v & 127) | 128);
  return out += static_cast<char>(v);
}
/// A text, a message or a packed run.
std::string field(std::uint64_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
std::string field(std::uint64_t number, std::uint64_t value) { return varint(number << 3) + varint(value); }

OnnxGraph small_onnx() {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "4"}).node("Relu", {"x"}, {"y"}).output("y");
  return g;
}

std::string onnx_chain() {
  OnnxGraph g;
  g.input("v0", ElementType::f32, {"1", "4"});
  for (int i = 0; i < 5000; ++i) g.node("Relu", {fmt::format("v{}", i)}, {fmt::format("v{}", i + 1)});
  g.output("v5000");
  return onnx_model(g);
}

/// Fields that no reader knows, behind the model.
std::string onnx_unknown_fields() { return onnx_model(small_onnx()) + repeated(field(15, 1), kMany); }

/// y = x + all numbers of a tensor, whose message is given.
std::string onnx_with_tensor(const std::string& tensor, const std::string& reader) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1"}).raw_initializer(tensor);
  g.node(reader, {"w"}, {"s"}, reader == "Cast" ? Texts{attribute("to", 1)} : Texts{});
  g.node("Add", {"x", "s"}, {"y"}).output("y");
  return onnx_model(g);
}
/// In int64_data: a number in one byte each.
std::string onnx_packed_integers() {
  return onnx_with_tensor(field(1, kMany) + field(2, 7) + field(8, "w") + field(7, std::string(kMany, '\1')),
                          "Cast");
}
/// In float_data: a field each.
std::string onnx_single_floats() {
  const std::string one("\x25\0\0\x80\x3f", 5);
  return onnx_with_tensor(field(1, kMany) + field(2, 1) + field(8, "w") + repeated(one, kMany), "Abs");
}
/// Booleans of other bytes than 0 and 1 are written anew.
std::string onnx_booleans() {
  return onnx_with_tensor(field(1, kMany) + field(2, 9) + field(8, "w") + field(9, std::string(kMany, '\2')),
                          "Cast");
}
std::string onnx_external_booleans() {
  const auto location = field(1, "location") + field(2, "data");
  return onnx_with_tensor(field(1, kMany) + field(2, 9) + field(8, "w") + field(13, location) + field(14, 1),
                          "Cast");
}
std::string onnx_initializers() {
  auto g = small_onnx();
  for (int i = 0; i < 50'000; ++i)
    g.raw_initializer(field(1, 1) + field(2, 3) + field(8, fmt::format("c{}", i)) + field(9, "1"));
  return onnx_model(g);
}
/// A function of many nodes that is called again and again.
std::string onnx_calls() {
  Texts body{node("Relu", {"a"}, {"t0"})};
  for (int i = 0; i < 100; ++i)
    body.push_back(node("Identity", {fmt::format("t{}", i)}, {fmt::format("t{}", i + 1)}));
  OnnxGraph g;
  g.input("v0", ElementType::f32, {"1", "4"});
  for (int i = 0; i < 100; ++i)
    g.node("f", {fmt::format("v{}", i)}, {fmt::format("v{}", i + 1)}, {}, {}, "local");
  g.output("v100");
  return onnx_model(g, 13, {function("f", {"a"}, {"t100"}, body)});
}

/// One balanced tree: each node's children are looked up by their numbers.
std::string onnx_trees() {
  constexpr std::int64_t kNodes = (1 << 17) - 1, kInner = kNodes / 2;
  Longs zeros(kNodes, 0), numbers, yes(zeros), no(zeros), voters;
  Texts modes;
  for (std::int64_t i = 0; i < kNodes; ++i) {
    numbers.push_back(i);
    modes.push_back(i < kInner ? "BRANCH_LEQ" : "LEAF");
    if (i >= kInner) voters.push_back(i);
    if (i < kInner) yes[i] = 2 * i + 1, no[i] = 2 * i + 2;
  }
  const Longs of_voters(voters.size(), 0);
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "4"});
  g.node("TreeEnsembleRegressor", {"x"}, {"y"},
         {attribute("nodes_treeids", zeros), attribute("nodes_nodeids", numbers),
          attribute("nodes_featureids", zeros), attribute("nodes_modes", modes),
          attribute("nodes_values", std::vector<float>(kNodes, 0.5f)), attribute("nodes_truenodeids", yes),
          attribute("nodes_falsenodeids", no), attribute("target_ids", of_voters),
          attribute("target_treeids", of_voters), attribute("target_nodeids", voters),
          attribute("target_weights", std::vector<float>(voters.size(), 1.0f))},
         "trees", "ai.onnx.ml");
  return onnx_model(g.output("y"));
}
/// Keys in any order, which are sorted.
std::string onnx_labels() {
  constexpr std::int64_t kKeys = 1 << 19;
  Longs keys, values;
  for (std::int64_t i = 0; i < kKeys; ++i) {
    keys.push_back(i * 7919 % kKeys);
    values.push_back(i);
  }
  OnnxGraph g;
  g.input("x", ElementType::i64, {"4"});
  g.node("LabelEncoder", {"x"}, {"y"}, {attribute("keys_int64s", keys), attribute("values_int64s", values)},
         "labels", "ai.onnx.ml");
  return onnx_model(g.output("y"));
}

/// Weights that are made floats.
std::string onnx_two_bits() {
  constexpr std::int64_t kRows = 256, kColumns = 1 << 14, kBlocks = kColumns / 16;
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", std::to_string(kColumns)});
  g.initializer("w", Tensor(ElementType::u8, {kRows, kBlocks, 4}));
  g.initializer("s", Tensor(ElementType::f32, {kRows, kBlocks}));
  g.node("MatMulNBits", {"x", "w", "s"}, {"y"},
         {attribute("K", kColumns), attribute("N", kRows), attribute("bits", 2), attribute("block_size", 16)},
         "weights", "com.microsoft");
  return onnx_model(g.output("y"));
}

std::string ir_of(const std::string& layers, const std::string& edges) {
  return "<?xml version=\"1.0\"?><net name=\"m\" version=\"11\"><layers>" + layers + "</layers><edges>" +
         edges + "</edges></net>";
}
std::string ir_port(int id) { return fmt::format("<port id=\"{}\"><dim>1</dim><dim>4</dim></port>", id); }
std::string ir_chain() {
  constexpr int kLayers = 5000;
  auto layers =
      "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\"><data element_type=\"f32\" "
      "shape=\"1,4\"/><output>" +
      ir_port(1) + "</output></layer>";
  std::string edges;
  for (int i = 1; i <= kLayers; ++i) {
    layers += fmt::format(
        "<layer id=\"{0}\" name=\"n{0}\" type=\"ReLU\" "
        "version=\"opset1\"><input>{1}</input><output>{2}</output>"
        "</layer>",
        i, ir_port(0), ir_port(1));
    edges += fmt::format("<edge from-layer=\"{}\" from-port=\"1\" to-layer=\"{}\" to-port=\"0\"/>", i - 1, i);
  }
  layers +=
      fmt::format("<layer id=\"{}\" name=\"r\" type=\"Result\" version=\"opset1\"><input>{}</input></layer>",
                  kLayers + 1, ir_port(0));
  edges += fmt::format("<edge from-layer=\"{}\" from-port=\"1\" to-layer=\"{}\" to-port=\"0\"/>", kLayers,
                       kLayers + 1);
  return ir_of(layers, edges);
}
/// Booleans of other bytes than 0 and 1 are written anew.
std::string ir_booleans() {
  const auto port = [](std::string_view precision, int id) {
    return fmt::format("<port id=\"{}\" precision=\"{}\"><dim>{}</dim></port>", id, precision, kMany);
  };
  return ir_of(
      fmt::format(
          "<layer id=\"0\" name=\"c\" type=\"Const\" version=\"opset1\"><data element_type=\"boolean\" "
          "shape=\"{0}\" offset=\"0\" size=\"{0}\"/><output>{1}</output></layer>"
          "<layer id=\"1\" name=\"n\" type=\"LogicalNot\" version=\"opset1\"><input>{1}</input><output>{2}"
          "</output></layer><layer id=\"2\" name=\"r\" type=\"Result\" version=\"opset1\"><input>{1}</input>"
          "</layer>",
          kMany, port("BOOL", 0), port("BOOL", 1)),
      "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"1\" to-port=\"0\"/>"
      "<edge from-layer=\"1\" from-port=\"1\" to-layer=\"2\" to-port=\"0\"/>");
}

/// A node of a TensorFlow graph of f32.
std::string tf_node(std::string_view op, std::string_view name, const std::vector<std::string>& inputs,
                    const std::string& attributes = {}) {
  std::string body = field(1, name) + field(2, op);
  for (const auto& i : inputs) body += field(3, i);
  return field(1, body + attributes);
}
std::string tf_attribute(std::string_view key, const std::string& value) {
  return field(5, field(1, key) + field(2, value));
}
std::string tf_input() {
  return tf_node("Placeholder", "v0", {},
                 tf_attribute("dtype", field(6, 1)) + tf_attribute("shape", field(7, field(2, field(1, 4)))));
}
std::string tf_chain() {
  std::string out = tf_input();
  for (int i = 0; i < 5000; ++i)
    out +=
        tf_node("Relu", fmt::format("v{}", i + 1), {fmt::format("v{}", i)}, tf_attribute("T", field(6, 1)));
  return out;
}
std::string tf_integers() {
  const auto tensor = field(1, 3) + field(2, field(2, field(1, kMany))) + field(7, std::string(kMany, '\1'));
  return tf_input() +
         tf_node("Const", "c", {},
                 tf_attribute("dtype", field(6, 3)) + tf_attribute("value", field(8, tensor))) +
         tf_node("Abs", "a", {"c"}, tf_attribute("T", field(6, 3))) + tf_node("Relu", "r", {"v0"});
}
std::string tf_text(const std::string& more) {
  return "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } " + more +
         "}\nnode { name: \"r\" op: \"Relu\" input: \"x\" }\n";
}
std::string tf_text_chain() {
  auto out = tf_text("");
  for (int i = 0; i < 5000; ++i)
    out += fmt::format("node {{ name: \"v{}\" op: \"Relu\" input: \"{}\" }}\n", i,
                       i == 0 ? "r" : fmt::format("v{}", i - 1));
  return out;
}
std::string tf_text_string() { return tf_text("device: \"" + std::string(kMany, 'd') + "\""); }

std::string caffe_net(const std::string& more) {
  return "name: \"m\"\nlayer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: 4 } "
         "} }\n" +
         more + "layer { name: \"r\" type: \"ReLU\" bottom: \"x\" top: \"r\" }\n";
}
std::string caffe_chain() {
  std::string out = caffe_net("");
  for (int i = 0; i < 5000; ++i)
    out += fmt::format("layer {{ name: \"v{0}\" type: \"ReLU\" bottom: \"{1}\" top: \"v{0}\" }}\n", i,
                       i == 0 ? "r" : fmt::format("v{}", i - 1));
  return out;
}
std::string caffe_white() { return caffe_net(std::string(kMany, ' ')); }
std::string caffe_comments() { return caffe_net(repeated("#\n", kMany / 2)); }
/// Weights of a layer that the network does not have.
std::string caffe_weights() {
  return field(
      100, field(1, "other") + field(2, "ReLU") + field(7, repeated(std::string("\x2d\0\0\0\0", 5), kMany)));
}
std::string caffe_product() {
  return caffe_net(
      "layer { name: \"p\" type: \"InnerProduct\" bottom: \"x\" top: \"p\" inner_product_param { "
      "num_output: 1000000 bias_term: false } }\n");
}
std::string caffe_product_weights() {
  const auto shape = field(7, field(1, varint(1'000'000) + varint(4)));
  return field(100, field(1, "p") + field(2, "InnerProduct") +
                        field(7, shape + repeated(std::string("\x2d\0\0\0\0", 5), 4'000'000)));
}

std::string json_tensor(int id) { return logical(id, "f32", {1, 4}); }
std::string json_chain() {
  OneDnnGraph g;
  for (int i = 0; i < 3000; ++i) g.op("ReLU", {json_tensor(i)}, {json_tensor(i + 1)});
  return g.text();
}
std::string json_with(const std::string& more) {
  return OneDnnGraph().field(more).op("ReLU", {json_tensor(0)}, {json_tensor(1)}).text();
}
std::string json_white() { return json_with(std::string(kMany, ' ') + "\"a\": 1"); }
std::string json_string() { return json_with("\"a\": \"" + std::string(kMany, 'a') + "\""); }
std::string json_numbers() { return json_with("\"a\": [" + repeated("1,", kMany / 4) + "1]"); }

const LongFile kFiles[] = {
    {"onnx_chain", onnx_chain, {}, 50},
    {"onnx_unknown_fields", onnx_unknown_fields, {}, 80},
    {"onnx_packed_integers", onnx_packed_integers, {}, 40},
    {"onnx_single_floats", onnx_single_floats, {}, 200},
    {"onnx_booleans", onnx_booleans, {}, 40},
    {"onnx_external_booleans", onnx_external_booleans, [] { return std::string(kMany, '\2'); }, 40},
    {"onnx_initializers", onnx_initializers, {}, 200},
    {"onnx_calls", onnx_calls, {}, 100},
    {"onnx_trees", onnx_trees, {}, 400},
    {"onnx_labels", onnx_labels, {}, 400},
    {"onnx_two_bits", onnx_two_bits, {}, 200},
    {"ir_chain", ir_chain, {}, 50},
    {"ir_booleans", ir_booleans, [] { return std::string(kMany, '\2'); }, 40},
    {"tf_chain", tf_chain, {}, 50},
    {"tf_integers", tf_integers, {}, 40},
    {"tf_text_chain", tf_text_chain, {}, 50},
    {"tf_text_string", tf_text_string, {}, 40},
    {"caffe_chain", caffe_chain, {}, 50},
    {"caffe_white", caffe_white, {}, 40},
    {"caffe_comments", caffe_comments, {}, 20},
    {"caffe_weights", [] { return caffe_net(""); }, caffe_weights, 200},
    {"caffe_product", caffe_product, caffe_product_weights, 400},
    {"json_chain", json_chain, {}, 50},
    {"json_white", json_white, {}, 40},
    {"json_string", json_string, {}, 40},
    {"json_numbers", json_numbers, {}, 20},
};

class StoppedReading : public ::testing::TestWithParam<LongFile> {
 protected:
  static std::shared_ptr<const MappedFile> file(const char* name, const std::string& bytes) {
    const auto held = std::make_shared<std::string>(bytes);
    return MappedFile::in_memory(name, std::as_bytes(std::span(held->data(), held->size())), held);
  }
  /// Questions until the end, or until the error that is given.
  std::int64_t read(std::int64_t most, std::string* error = nullptr) const {
    const CountingSignal signal(most);
    try {
      run_stoppable({.signal = &signal, .what = "reading"}, [&] { (void)lamina::read(source_); });
    } catch (const Error& e) {
      if (error == nullptr) throw;
      EXPECT_EQ(e.code(), ErrorCode::canceled);
      *error = e.what();
    }
    return signal.asked();
  }

 private:
  const std::string model_ = GetParam().model(), weights_ = GetParam().weights ? GetParam().weights() : "";
  const std::shared_ptr<const MappedFile> second_ = weights_.empty() ? nullptr : file("weights", weights_);
  const MemorySource source_{file("model", model_), second_, {{"data", second_}}};
};
INSTANTIATE_TEST_SUITE_P(Files, StoppedReading, ::testing::ValuesIn(kFiles),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(StoppedReading, ends_wherever_it_is) {
  const auto all = read(std::numeric_limits<std::int64_t>::max());
  EXPECT_GE(all, GetParam().questions);
  for (const auto after : {std::int64_t{0}, all / 4, all / 2, all * 9 / 10}) {
    std::string error;
    read(after, &error);
    EXPECT_EQ(error, "reading was canceled") << "after " << after << " of " << all;
  }
  EXPECT_NO_THROW(read(std::numeric_limits<std::int64_t>::max()));
}

}  // namespace
}  // namespace lamina::stopping_test
