// Graphs written as IR and read again compute the same; what IR cannot say is refused by name.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <pugixml.hpp>

#include "base/npz.h"
#include "formats/ir/text.h"
#include "ops/operators.h"
#include "rules/optimize.h"
#include "tests/formats/legalised_examples.h"
#include "tests/ops/operator_examples.h"
#include "tests/support/run_graph.h"
#include "tests/support/written_ir.h"

namespace lamina::testing {
namespace {

/// Why the graph is not written; empty when it is.
std::string refusal_to_write(const Graph& graph, const WriteIrOptions& options = {}) {
  try {
    written_and_read(graph, options);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Examples that IR cannot hold, by words of the refusal.
bool is_known_to_lack(const std::string& why) {
  for (const auto* words : {"IR 10 has the operators up to opset8", "IR has no operator for"})
    if (why.find(words) != std::string::npos) return true;
  return false;
}

/// Operators that OpenVINO has not in any spelling.
bool has_no_layer(const std::string& text) {
  for (const auto* name : {"TreeEnsemble(", "PairwiseCoupling(", "BitCast(", "ConvertSmallFloat("})
    if (text.find(name) != std::string::npos) return true;
  return false;
}

TEST(IrWriter, what_openvino_lacks_is_refused) {
  std::size_t seen = 0;
  for (const auto& text : operator_examples())
    if (has_no_layer(text)) {
      ++seen;
      EXPECT_NE(refusal_to_write(parse(text)).find("IR has no operator for"), std::string::npos) << text;
    }
  EXPECT_EQ(seen, 4U);
}

TEST(IrWriter, every_operator_is_read_again) {
  for (const int version : {11, 10}) {
    std::uint64_t seed = 0;
    std::size_t refused = 0;
    for (const auto& text : operator_examples()) {
      SCOPED_TRACE(fmt::format("IR {} of\n{}", version, text));
      if (has_no_layer(text)) continue;
      const Graph graph = parse(text);
      try {
        EXPECT_EQ(difference_when_written(graph, {version}, ++seed), "");
      } catch (const Error& error) {
        EXPECT_TRUE(is_known_to_lack(error.what())) << error.what();
        ++refused;
      }
    }
    EXPECT_LE(refused, version == 11 ? 0U : 30U);
  }
}

/// Types of the network's own layers but constants, inputs and results, in lower case.
Strings layer_types_of(const std::string& xml) {
  pugi::xml_document document;
  document.load_string(xml.c_str());
  Strings out;
  for (const auto layer : document.child("net").child("layers").children()) {
    const std::string type = ir::lower(layer.attribute("type").value());
    if (type != "parameter" && type != "const" && type != "result") out.push_back(type);
  }
  return out;
}

/// What these say OpenVINO's operator has not: places by column, cubic filters, a number of slices, absent
/// states.
bool is_beyond_openvino(const std::string& text) {
  for (const auto* words : {"storage_order=1", "mode=cubic", "slice_strides=[2]", "GRUSequence(x, _, _"})
    if (text.find(words) != std::string::npos) return true;
  return false;
}

TEST(IrWriter, what_openvino_has_is_one_layer) {
  std::size_t seen = 0;
  for (const auto& text : operator_examples()) {
    const Graph graph = parse(text);
    const auto order = graph.order();
    if (order.size() != 1 || graph.node(order[0]).op.info().opset == 0 || is_beyond_openvino(text)) continue;
    SCOPED_TRACE(text);
    ++seen;
    std::string name = ir::lower(graph.node(order[0]).op.name());
    if (text.find(" groups=2") != std::string::npos) name = "group" + name;
    EXPECT_EQ(layer_types_of(written_and_read(graph).xml), Strings{name});
  }
  EXPECT_GT(seen, 50U);
}

TEST(IrWriter, refuses_by_name) {
  const Graph graph = parse(R"(graph (x: f32[2,N,N]) -> (y) {
  y = Determinant(x) @"det"
})");
  EXPECT_EQ(refusal_to_write(graph),
            "Determinant \"det\": IR has no operator for determinants of matrices [2,N,N]");
  const Graph volume = parse(R"(graph (x: f32[1,2,3,4,5], g: f32[1,2,2,2,3]) -> (y) {
  y = GridSample(x, g) @"sample"
})");
  EXPECT_EQ(refusal_to_write(volume),
            "GridSample \"sample\": IR has no operator for a grid of 5 axes, wanted 4");
}

TEST(IrWriter, equal_constants_are_stored_once) {
  const Graph graph = parse(R"(graph (x: f32[2,3]) -> (z) {
  a = const f32[2,3] seed(1)
  b = const f32[3,2] seed(1)
  c = const f32[2,3] seed(2)
  t = const i64[2] {1,0}
  m = Add(x, a)
  n = MatMul(m, b)
  o = MatMul(n, c)
  z = Transpose(o, t)
})");
  const auto again = written_and_read(graph);
  EXPECT_EQ(again.report.constants, 4U);
  EXPECT_EQ(again.report.shared_constants, 1U);
  EXPECT_EQ(again.report.bin_bytes, 2U * 24 + 16);
  EXPECT_EQ(again.report.warnings, Strings());
}

TEST(IrWriter, constants_of_no_bytes_have_a_file) {
  const Graph graph = parse(R"(graph (x: f32[2,3]) -> (y) {
  e = const f32[0,3] {}
  y = Concat(x, e) axis=0
})");
  const auto again = written_and_read(graph);
  EXPECT_EQ(again.report.bin_bytes, 1U) << "OpenVINO opens no file that is empty";
}

TEST(IrWriter, halves_are_converted_back) {
  const Graph graph = parse(R"(graph (x: f32[1,4]) -> (y, z) {
  w = const f32[4,4] seed(1)
  l = const f32[] {-1}
  h = const f32[] {1}
  big = const f32[2] {1, 100000}
  p = MatMul(x, w)
  y = FakeQuantize(p, l, h, l, h) levels=16
  a = const i64[1] {1}
  s = ReduceSum(x, a) keep_dims=true
  z = Add(s, big)
})");
  WriteIrOptions halves;
  halves.compress_to_fp16 = true;
  const auto again = written_and_read(graph, halves);
  EXPECT_EQ(count_of(again.xml, R"(element_type="f16")"), 1U) << again.xml;
  EXPECT_EQ(count_of(again.xml, R"(name="decompression")"), 1U);
  EXPECT_EQ(again.report.warnings,
            (Strings{R"(constant "big" stays f32: 1 of its 2 numbers are beyond f16)"}));
  halves.version = 10;
  const auto old = written_and_read(graph, halves);
  EXPECT_EQ(count_of(old.xml, "f32"), 0U) << old.xml;
  EXPECT_EQ(count_of(old.xml, "FP32"), 0U);
}

TEST(IrWriter, halves_stay_where_they_are_exact) {
  const Graph graph = parse(R"(graph (x: f32[1,2]) -> (y, z) {
  exact = const f32[2] {0.5,-3}
  fine = const f32[2] {0.5,0.1}
  big = const f32[2] {1,100000}
  y = Multiply(x, exact)
  s = Add(y, fine)
  z = Add(s, big)
})");
  WriteIrOptions options;
  options.keep_halves = true;
  const auto again = written_and_read(graph, options);
  EXPECT_EQ(count_of(again.xml, R"(element_type="f16")"), 1U) << again.xml;
  EXPECT_EQ(again.report.warnings, Strings{});
  options.version = 10;  // which has no such Converts
  EXPECT_EQ(count_of(written_and_read(graph, options).xml, "f16"), 0U);
}

TEST(IrWriter, what_files_say_besides_is_kept) {
  IrText ir;
  const int x = ir.parameter("x", "1,3");
  ir.result({ir.layer("ReLU", "opset1", "", {{x}})});
  const TemporaryFolder folder;
  std::string text = ir.text();
  text.replace(
      text.find("</net>"), 6,
      R"(<rt_info><MO_version value="1"/><model_info><labels value="a b"/></model_info></rt_info></net>)");
  const auto layer = text.find("<layer", text.find("ReLU") - 40);
  text.insert(text.find("<input>", layer),
              R"(<rt_info><attribute name="own" version="0" value="v"/></rt_info>)");
  write_file(folder.file("m.xml"), text);
  write_file(folder.file("m.bin"), "");
  const Loaded loaded = read_ir(folder.file("m.xml"));
  WriteIrOptions options;
  options.rt_info = {{"MO_version", "2"}, {"conversion_parameters.input", "x"}, {"0 odd", "o"}};
  const auto again = written_and_read(loaded, options);
  EXPECT_NE(again.xml.find(R"(<attribute name="own" version="0" value="v" />)"), std::string::npos)
      << again.xml;
  EXPECT_EQ(again.loaded.metadata.at("MO_version"), "2");
  EXPECT_EQ(again.loaded.metadata.at("model_info.labels"), "a b");
  EXPECT_EQ(again.loaded.metadata.at("conversion_parameters.input"), "x");
  EXPECT_NE(again.xml.find(R"(<info name="0 odd" value="o" />)"), std::string::npos) << again.xml;
}

TEST(IrWriter, constants_of_unknown_types_keep_their_shape) {
  IrText ir;
  const int x = ir.parameter("x", "2,4"), w = ir.constant("u3", "4,4", "123456");
  const int floats = ir.layer("Convert", "opset1", R"(destination_type="f32")", {{w}});
  ir.result({ir.layer("MatMul", "opset1", R"(transpose_b="true")", {{x}, {floats}})});
  const TemporaryFolder folder;
  Loaded loaded = read_ir(ir.write(folder));
  const auto shapes = [](const Loaded& l) {
    Strings out;
    for (const auto id : l.graph.order())
      out.push_back(to_string(l.graph.type(l.graph.node(id).outputs[0]).shape));
    return out;
  };
  const Strings wanted{"[4,4]", "[4,4]", "[2,4]"};
  EXPECT_EQ(shapes(loaded), wanted);
  Ledger ledger;
  optimize(loaded.graph, {}, ledger);
  const auto again = written_and_read(loaded);
  EXPECT_EQ(shapes(again.loaded), wanted);
  ASSERT_EQ(again.loaded.unsupported.size(), 1U);
  EXPECT_EQ(again.loaded.unsupported[0].reason, "element type u3");
}

TEST(IrWriter, writes_both_files_or_none) {
  const Graph graph = parse(R"(graph (x: f32[2]) -> (y) {
  a = const f32[2] {1,2}
  y = Add(x, a)
})");
  Loaded loaded;
  loaded.graph = graph;
  const TemporaryFolder folder;
  write_ir(loaded, folder.file("m.xml"));
  EXPECT_EQ(std::filesystem::file_size(folder.file("m.bin")), 8U);
  Loaded bad;
  bad.graph = parse(R"(graph (x: f32[N,N]) -> (y) {
  y = Determinant(x)
})");
  EXPECT_THROW(write_ir(bad, folder.file("m.xml")), Error);
  EXPECT_EQ(interpret(read_ir(folder.file("m.xml")).graph, {floats({2}, {1, 1})})[0].size(), 2U);
  EXPECT_THROW(write_ir(loaded, folder.file("no/m.xml")), Error);
  EXPECT_THROW(write_ir(loaded, folder.file("m.bin")), Error);
  EXPECT_THROW(write_ir(loaded, folder.file("m.xml"), {9}), Error);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(folder.file("m.xml")).parent_path()))
    ++files;
  EXPECT_EQ(files, 2U);
}

/// Files for others to compare: LAMINA_IR_FOLDER gets each example as N.xml with N.npz, and each model of
/// LAMINA_IR_MODELS (paths, separated by ':'), optimised, as NAME.xml.
TEST(IrWriter, writes_files_for_others) {
  const char* folder = std::getenv("LAMINA_IR_FOLDER");
  if (!folder) GTEST_SKIP() << "LAMINA_IR_FOLDER is not set";
  const char* version = std::getenv("LAMINA_IR_VERSION");
  WriteIrOptions options;
  options.version = version ? std::atoi(version) : 11;
  options.compress_to_fp16 = std::getenv("LAMINA_IR_HALVES") != nullptr;
  std::size_t n = 0;
  std::vector<std::string> examples = operator_examples();
  examples.insert(examples.end(), std::begin(kLegalisedExamples), std::end(kLegalisedExamples));
  if (!std::getenv("LAMINA_IR_MODELS"))
    for (const auto& text : examples) {
      const Graph graph = parse(text);
      const std::string name = fmt::format("{}/{}", folder, n++);
      Loaded loaded;
      loaded.graph = graph;
      try {
        write_ir(loaded, name + ".xml", options);
      } catch (const Error& error) {
        fmt::print("{}: {}\n", name, error.what());
        continue;
      }
      const auto inputs = random_inputs(graph, n);
      const auto results = interpret(graph, inputs);
      NpzFile arrays;
      for (std::size_t i = 0; i < inputs.size(); ++i) arrays.emplace_back(fmt::format("in{}", i), inputs[i]);
      for (std::size_t i = 0; i < results.size(); ++i)
        arrays.emplace_back(fmt::format("out{}", i), results[i]);
      write_npz(name + ".npz", arrays);
    }
  std::string models = std::getenv("LAMINA_IR_MODELS") ? std::getenv("LAMINA_IR_MODELS") : "";
  while (!models.empty()) {
    const auto colon = models.find(':');
    const std::filesystem::path path = models.substr(0, colon);
    models = colon == std::string::npos ? "" : models.substr(colon + 1);
    try {
      auto loaded = read_file(path.string());
      Ledger ledger;
      RuleOptions rewriting;
      rewriting.last = RuleSet::portable;
      rewriting.for_file = true;
      if (!std::getenv("LAMINA_IR_AS_READ")) optimize(loaded.graph, rewriting, ledger);
      const auto report = write_ir(loaded, fmt::format("{}/{}.xml", folder, path.stem().string()), options);
      for (const auto& warning : report.warnings) fmt::print("{}: {}\n", path.string(), warning);
    } catch (const Error& error) {
      fmt::print("{}: {}\n", path.string(), error.what());
    }
  }
}

}  // namespace
}  // namespace lamina::testing
