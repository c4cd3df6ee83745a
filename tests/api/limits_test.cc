/// Limits for models of strangers, through the public interface.
#include <atomic>
#include <filesystem>
#include <fstream>

#include "tests/api/small_models.h"
#include "tests/base/temporary_folder.h"
#include "tests/support/onnx_model.h"

namespace lamina {
namespace {

using namespace testing;

Model read(const std::string& bytes, const ModelLimits& limits = {}) {
  return Model::from_memory({.model = bytes_of(bytes), .name = "m.onnx"}, {.limits = limits});
}

/// What it says, which is about a limit.
template <class F>
std::string over_limit(const F& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::over_limit) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

void expect_in(const std::string& text, std::initializer_list<const char*> words) {
  for (const auto* word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

Tensor floats(const Dims& dims) { return Tensor(ElementType::f32, dims); }

std::string relus(int count) {
  OnnxGraph g;
  g.input("x0", ElementType::f32, {"n", "4"});
  for (int i = 0; i < count; ++i)
    g.node("Relu", {"x" + std::to_string(i)}, {"x" + std::to_string(i + 1)}, {}, "relu" + std::to_string(i));
  g.output("x" + std::to_string(count));
  return onnx_model(g);
}

/// x [1] repeated as often as the input `shape` says.
std::string expand() {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1"}).input("shape", ElementType::i64, {"1"});
  g.node("Expand", {"x", "shape"}, {"big"}, {}, "grow").node("Neg", {"big"}, {"y"}, {}, "negative");
  return onnx_model(g.output("y"));
}

std::string run_expanded(const Model& model, std::int64_t count, const ModelLimits& limits) {
  const CompiledModel compiled(model, {.threads = 1, .limits = limits});
  auto request = compiled.create_request();
  request.set_input("x", floats({1}));
  request.set_input("shape", Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{10}));
  request.run();
  EXPECT_EQ(request.output(0).size(), 10u);
  request.set_input("shape", Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{count}));
  const auto said = over_limit([&] { request.run(); });
  request.set_input("shape", Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{10}));
  request.run();  // it goes on
  EXPECT_EQ(request.output(0).size(), 10u);
  return said;
}

TEST(Limits, nodes_are_counted_while_the_model_is_read_and_when_it_is_compiled) {
  const auto model = relus(6);
  expect_in(over_limit([&] { read(model, {.nodes = 5}); }), {"m.onnx", "relu5", "LIMIT_NODES is 5"});
  expect_in(over_limit([&] { CompiledModel(read(model), {.limits = {.nodes = 5}}); }),
            {"6 nodes", "LIMIT_NODES is 5"});
  CompiledModel(read(model, {.nodes = 6}), {.limits = {.nodes = 6}});
}

TEST(Limits, nodes_of_bodies_count) {
  OnnxGraph then, otherwise, g;
  then.node("Relu", {"x"}, {"a"}).node("Neg", {"a"}, {"b"}).output("b");
  otherwise.node("Neg", {"x"}, {"c"}).output("c");
  g.input("x", ElementType::f32, {"4"}).input("which", ElementType::boolean, {});
  g.node("If", {"which"}, {"y"},
         {graph_attribute("then_branch", then.bytes()), graph_attribute("else_branch", otherwise.bytes())},
         "choice");
  const auto model = onnx_model(g.output("y"));
  over_limit([&] { read(model, {.nodes = 3}); });
  read(model, {.nodes = 4});
}

TEST(Limits, outputs_of_the_model_and_of_a_node) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"4"});
  g.node("Split", {"x"}, {"a", "b", "c", "d"}, {}, "pieces");
  for (const auto* name : {"a", "b", "c", "d"}) g.output(name);
  const auto model = onnx_model(g);
  expect_in(over_limit([&] { read(model, {.outputs = 3}); }), {"pieces", "LIMIT_OUTPUTS is 3"});
  over_limit([&] { CompiledModel(read(model), {.limits = {.outputs = 3}}); });
  CompiledModel(read(model, {.outputs = 4}), {.limits = {.outputs = 4}});
  const auto none = relus(1);
  read(none, {.outputs = 1});
}

TEST(Limits, elements_by_the_file) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"100"}).initializer("w", floats({10, 100}));
  g.node("Mul", {"x", "w"}, {"y"}, {}, "product");
  const auto model = onnx_model(g.output("y"));
  expect_in(over_limit([&] { read(model, {.elements = 99}); }), {"input \"x\"", "LIMIT_ELEMENTS is 99"});
  expect_in(over_limit([&] { read(model, {.elements = 999}); }), {"\"w\"", "LIMIT_ELEMENTS is 999"});
  over_limit([&] { CompiledModel(read(model), {.limits = {.elements = 999}}); });
  CompiledModel(read(model, {.elements = 1000}));
}

TEST(Limits, elements_by_the_inputs) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n"}).input("y", ElementType::f32, {"m", "1"});
  const auto model = onnx_model(g.node("Mul", {"x", "y"}, {"z"}, {}, "product").output("z"));
  const CompiledModel compiled(read(model), {.threads = 1, .limits = {.elements = 1000}});
  auto request = compiled.create_request();
  request.set_input("x", floats({10}));
  request.set_input("y", floats({101, 1}));
  expect_in(over_limit([&] { request.run(); }), {"product", "LIMIT_ELEMENTS is 1000"});
  expect_in(over_limit([&] { (void)compiled.output_ports({{10}, {101, 1}}); }), {"product"});
  request.set_input("y", floats({100, 1}));
  request.run();
}

TEST(Limits, elements_by_values) {
  expect_in(run_expanded(read(expand()), 1001, {.elements = 1000}), {"grow", "LIMIT_ELEMENTS is 1000"});
}

TEST(Limits, memory_of_what_depends_on_values) {
  expect_in(run_expanded(read(expand()), 1 << 20, {.memory = 1 << 21}), {"LIMIT_MEMORY is 2097152"});
  expect_in(run_expanded(read(expand(), {.memory = 1 << 21}), 1 << 20, {}), {"LIMIT_MEMORY is 2097152"});
}

TEST(Limits, without_a_number_memory_is_in_proportion_to_the_model) {
  expect_in(run_expanded(read(expand()), std::int64_t{1} << 30, {}), {"LIMIT_MEMORY"});
}

TEST(Limits, memory_between_layers_is_known_when_the_model_is_compiled) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1"})
      .initializer("shape", Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{1000, 1000}));
  g.node("Expand", {"x", "shape"}, {"big"}, {}, "grow").node("Softmax", {"big"}, {"soft"}, {}, "soft");
  g.node("ReduceSum", {"soft"}, {"y"}, {attribute("keepdims", 0)}, "sum");
  const auto model = onnx_model(g.output("y"));
  expect_in(over_limit([&] { CompiledModel(read(model), {.limits = {.memory = 1 << 20}}); }),
            {"memory between layers", "LIMIT_MEMORY is 1048576"});
  CompiledModel(read(model), {.limits = {.memory = 100 << 20}});
}

/// Log and progress callbacks are called in the midst of work for a model; what they allocate is the user's.
TEST(Limits, callbacks_are_outside_of_them) {
  std::atomic<int> made{0};
  const auto make = [&] { made += floats({100000}).size() == 100000; };
  Options options{.threads = 1};
  options.limits.elements = 1000;
  options.limits.memory = 200000;
  options.log = [&](LogLevel, std::string_view) { make(); };
  options.progress = [&](std::string_view, double) { make(); };
  const CompiledModel compiled(read(relus(3)), options);
  EXPECT_GT(made, 0);
  auto request = compiled.create_request();
  request.set_callback([&](std::exception_ptr) { make(); });
  for (int n = 1; n < 4; ++n) {  // plans are made
    const int before = made;
    request.set_input(0, floats({n, 4}));
    request.start();
    request.wait();
    EXPECT_GT(made, before);
  }
}

TEST(Limits, memory_of_a_loop_that_grows) {
  OnnxGraph body, g;
  body.input("i", ElementType::i64, {})
      .input("go", ElementType::boolean, {})
      .input("v", ElementType::f32, {"?"});
  body.node("Concat", {"v", "v"}, {"more"}, {attribute("axis", 0)}, "twice").node("Identity", {"go"}, {"on"});
  body.output("on").output("more");
  g.input("x", ElementType::f32, {"1"}).input("count", ElementType::i64, {});
  g.initializer("true", Tensor::of<bool>({}, std::array<const bool, 1>{true}));
  g.node("Loop", {"count", "true", "x"}, {"y"}, {graph_attribute("body", body.bytes())}, "grows");
  const auto model = onnx_model(g.output("y"));
  const CompiledModel compiled(read(model), {.limits = {.memory = 10 << 20}});
  auto request = compiled.create_request();
  request.set_input("x", floats({1}));
  request.set_input("count", Tensor::of<std::int64_t>({}, std::vector<std::int64_t>{40}));
  expect_in(over_limit([&] { request.run(); }), {"twice", "LIMIT_MEMORY"});
  request.set_input("count", Tensor::of<std::int64_t>({}, std::vector<std::int64_t>{10}));
  request.run();
  EXPECT_EQ(request.output(0).size(), 1024u);
}

TEST(Limits, operators_by_the_files_names_and_by_laminas) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "1", "4", "4"}).initializer("w", floats({1, 1, 3, 3}));
  g.node("Conv", {"x", "w"}, {"a"}, {}, "conv").node("Relu", {"a"}, {"b"}, {}, "act");
  const auto model = onnx_model(g.output("b"));
  const auto denied = [&](const char* name) { return ModelLimits{.denied_operators = {name}}; };
  expect_in(over_limit([&] { read(model, denied("Conv")); }), {"conv", "DENIED_OPERATORS has Conv"});
  expect_in(over_limit([&] { read(model, denied("Convolution")); }), {"conv", "Convolution"});
  expect_in(over_limit([&] { CompiledModel(read(model), {.limits = denied("Conv")}); }),
            {"m.onnx", "conv", "DENIED_OPERATORS has Conv"});
  read(model, denied("LSTM"));
  const auto allowed = [&](std::vector<std::string> names) {
    return ModelLimits{.allowed_operators = std::move(names)};
  };
  read(model, allowed({"Conv", "Relu"}));
  CompiledModel(read(model), {.limits = allowed({"Convolution", "Relu"})});
  expect_in(over_limit([&] { read(model, allowed({"Conv"})); }), {"act", "ALLOWED_OPERATORS", "Relu"});
  over_limit([&] { CompiledModel(read(model), {.limits = allowed({"Conv", "Gelu"})}); });
}

TEST(Limits, operators_in_bodies_and_functions) {
  OnnxGraph body, other, g;
  body.node("Exp", {"x"}, {"a"}, {}, "inner").output("a");
  other.node("Neg", {"x"}, {"b"}).output("b");
  g.input("x", ElementType::f32, {"4"}).input("which", ElementType::boolean, {});
  g.node("If", {"which"}, {"c"},
         {graph_attribute("then_branch", body.bytes()), graph_attribute("else_branch", other.bytes())},
         "choice");
  g.node("Twice", {"c"}, {"y"}, {}, "call", "local");
  const auto model = onnx_model(
      g.output("y"), 13, {function("Twice", {"p"}, {"q"}, {node("Add", {"p", "p"}, {"q"}, {}, "sum")})});
  for (const auto* name : {"Exp", "Neg", "If", "Add", "Twice"})
    expect_in(over_limit([&] { read(model, {.denied_operators = {name}}); }), {name});
  for (const auto* name : {"Exp", "Neg", "If", "Add"})
    expect_in(over_limit([&] { CompiledModel(read(model), {.limits = {.denied_operators = {name}}}); }),
              {name});
  read(model, {.allowed_operators = {"Exp", "Neg", "If", "Add"}});
  over_limit([&] { read(model, {.allowed_operators = {"Exp", "Neg", "If", "Twice"}}); });
}

class LimitsOfFiles : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::string put_ir() const {
    const auto ir = scaled_products(256);
    put("m.bin", ir.bin);
    return put("m.xml", ir.text());
  }
  test::TemporaryFolder folder_;
};

TEST_F(LimitsOfFiles, no_files_beside_the_model) {
  const auto path = put_ir();
  expect_in(over_limit([&] { Model(path, {.limits = {.external_files = ExternalFiles::none}}); }),
            {"m.bin", "EXTERNAL_FILES is none"});
  const Model model(path);
  over_limit([&] { CompiledModel(model, {.limits = {.external_files = ExternalFiles::none}}); });
  // The user has named it.
  const Model given(path, {.weights = folder_ / "m.bin", .limits = {.external_files = ExternalFiles::none}});
  CompiledModel(given, {.limits = {.external_files = ExternalFiles::none}});
}

TEST_F(LimitsOfFiles, links_beside_the_model_are_not_followed_but_those_of_the_user_are) {
  namespace fs = std::filesystem;
  const auto path = put_ir();
  fs::rename(folder_ / "m.bin", folder_ / "blob");
  fs::create_symlink("blob", folder_ / "m.bin");
  try {
    Model model(path);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file);
    expect_in(e.what(), {"m.bin", "symbolic link", "--weights"});
  }
  Model(path, {.weights = folder_ / "m.bin"});
  fs::remove(folder_ / "m.bin");
  fs::rename(folder_ / "blob", folder_ / "m.bin");
  fs::create_directory(folder_ / "elsewhere");
  fs::create_symlink("../m.xml", folder_ / "elsewhere/m.xml");
  fs::create_directory_symlink(".", folder_ / "folder");
  EXPECT_THROW(Model(folder_ / "elsewhere/m.xml"), Error);  // its folder has no m.bin
  Model model(folder_ / "folder/m.xml");
}

TEST_F(LimitsOfFiles, files_larger_than_the_memory) {
  const auto path = put_ir();
  expect_in(over_limit([&] { Model(path, {.limits = {.memory = 200000}}); }),
            {"m.bin", "LIMIT_MEMORY is 200000"});
  over_limit([&] { Model(path, {.limits = {.memory = 100}}); });
  over_limit([&] { CompiledModel(Model(path), {.limits = {.memory = 200000}}); });
}

TEST_F(LimitsOfFiles, a_compiled_model_is_held_against_them) {
  const auto path = folder_ / "m.lamina";
  const Model model(put_ir());
  CompiledModel(model).save(path);
  const Model saved(path);
  over_limit([&] { Model(path, {.limits = {.nodes = 1}}); });
  over_limit([&] { Model(path, {.limits = {.memory = 1000}}); });
  over_limit([&] { CompiledModel(saved, {.limits = {.denied_operators = {"MatMul"}}}); });
  over_limit([&] { Model(path, {.limits = {.denied_operators = {"MatMul"}}}); });
  CompiledModel(saved, {.limits = {.nodes = 1000}});
}

}  // namespace
}  // namespace lamina
