// Compiled models with custom layers: files and folders have what libraries have prepared, and want those
// libraries.
#include <gtest/gtest.h>

#include <filesystem>

#include "api/inside.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing::saved_test {
namespace {

using Values = std::vector<float>;

Values some_values(std::size_t count) {
  Values v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = static_cast<float>(i * 7 % 13) / 4 - 1.5F;
  return v;
}

int counted(const std::string& name, const char* function) {
  const auto handle = SharedLibrary::open(library(name));
  return reinterpret_cast<int (*)()>(handle->symbol(function))();
}

/// A convolution, an activation and a scale of the library's, the latter with prepared weights.
OnnxGraph network() {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2", "16", "9", "9"});
  g.initializer("w", floats({2048, 16, 1, 1}, some_values(std::size_t{2048} * 16)));
  g.initializer("s", floats({2048}, some_values(2048)));
  g.node("Conv", {"x", "w"}, {"a"}, {}, "conv");
  g.node("Leak", {"a"}, {"b"}, {attribute("slope", 0.25F)}, "leak", "test.ops");
  g.node("Weigh", {"b", "s"}, {"c"}, {}, "weigh", "test.ops");
  g.node("Affine", {"c"}, {"y"}, {attribute("shift", 1.0F)}, "shift", "test.ops").output("y");
  return g;
}

class SavedExtension : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }
  Model model(const OnnxGraph& graph, const std::vector<std::string>& names) const {
    write_file(path("m.onnx"), onnx_model(graph));
    return {path("m.onnx"), libraries(names)};
  }
  Model opened(const std::vector<std::string>& names) const { return {path("m.lamina"), libraries(names)}; }
  static bool loaded(const CompiledModel& c) { return Inside::of(c).loaded_from_cache(); }
  static Tensor picture() { return floats({2, 16, 9, 9}, some_values(std::size_t{2} * 16 * 81)); }
  Options cached() const {
    Options o;
    o.cache_dir = path("cache");
    return o;
  }

  const TemporaryFolder folder_;
};

TEST_F(SavedExtension, AFileDoesTheSameAndPreparesNothing) {
  const CompiledModel fresh(model(network(), {"operations.so"}));
  fresh.save(path("m.lamina"));
  const auto before = counted("operations.so", "prepared_so_far");
  const CompiledModel compiled(opened({"operations.so"}));
  EXPECT_TRUE(loaded(compiled));
  EXPECT_TRUE(compiled(picture()).same_as(fresh(picture())));
  EXPECT_EQ(counted("operations.so", "prepared_so_far"), before);
  const auto& program = *Inside::of(compiled).program();
  EXPECT_EQ(program.kept_plans(), 1U);
  EXPECT_EQ(program.packing_seconds(), 0.0);
}

TEST_F(SavedExtension, WithoutItsLibraryItIsRefused) {
  CompiledModel(model(network(), {"operations.so"})).save(path("m.lamina"));
  const auto refused = [&](const std::vector<std::string>& names, std::string_view why) {
    const auto text = error_of([&] { opened(names); }, ErrorCode::unsupported);
    EXPECT_NE(
        text.find(
            "m.lamina: needs the library operations of the tests 1.2 (operations.so) for test.ops:Affine "
            "1, test.ops:Leak 1, test.ops:Weigh 1: "),
        std::string::npos)
        << text;
    EXPECT_NE(text.find(why), std::string::npos) << text;
  };
  refused({}, "it is not among the extensions");
  refused({"keeps.so"}, "it is not among the extensions");
  refused({"operations_later.so"}, "operations_later.so is version 1.3");
  refused({"operations_anew.so"}, "operations_anew.so has another content");
}

TEST_F(SavedExtension, OtherLibrariesHaveNoEffect) {
  CompiledModel(model(network(), {"operations.so"})).save(path("m.lamina"));
  const auto both = opened({"faults.so", "operations.so"});
  ASSERT_EQ(both.warnings().size(), 1U);
  EXPECT_NE(both.warnings()[0].find("faults.so: has no effect"), std::string::npos);
  EXPECT_TRUE(loaded(CompiledModel(both)));
}

TEST_F(SavedExtension, TheOrderOfLibrariesChangesNothing) {
  CompiledModel(model(network(), {"operations.so", "keeps.so"})).save(path("a"));
  CompiledModel(model(network(), {"keeps.so", "operations.so"})).save(path("b"));
  const auto a = MappedFile::open(path("a")), b = MappedFile::open(path("b"));
  EXPECT_TRUE(a->text() == b->text());
}

TEST_F(SavedExtension, TheFolderHasItNextTime) {
  const auto given = model(network(), {"operations.so"});
  const CompiledModel first(given, cached()), second(given, cached());
  EXPECT_FALSE(loaded(first));
  EXPECT_TRUE(loaded(second));
  EXPECT_TRUE(first(picture()).same_as(second(picture())));
  EXPECT_FALSE(loaded(CompiledModel(model(network(), {"operations_later.so"}), cached())));
  EXPECT_FALSE(loaded(CompiledModel(model(network(), {"operations_anew.so"}), cached())));
  EXPECT_FALSE(loaded(CompiledModel(model(network(), {"operations.so", "keeps.so"}), cached())));
  EXPECT_TRUE(loaded(CompiledModel(model(network(), {"operations.so"}), cached())));
}

TEST_F(SavedExtension, WithoutPackedWeightsTheyArePreparedAnew) {
  Options small;
  small.cache_mode = CacheMode::size;
  const CompiledModel fresh(model(network(), {"operations.so"}), small);
  fresh.save(path("m.lamina"));
  const CompiledModel compiled(opened({"operations.so"}));
  EXPECT_TRUE(loaded(compiled));
  EXPECT_TRUE(compiled(picture()).same_as(fresh(picture())));
}

TEST_F(SavedExtension, StateIsKept) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "4", "2"});
  g.node("Table", {"x"}, {"y"}, {attribute("step", 2.0F)}, "table", "test.keeps").output("y");
  const CompiledModel fresh(model(g, {"keeps.so"}));
  fresh.save(path("m.lamina"));
  const auto created = counted("keeps.so", "created_so_far");
  const CompiledModel compiled(opened({"keeps.so"}));
  EXPECT_TRUE(loaded(compiled));
  EXPECT_EQ(counted("keeps.so", "created_so_far"), created);
  EXPECT_EQ(counted("keeps.so", "loaded_so_far"), 1);
  EXPECT_EQ(values(compiled(floats({1, 4, 2}, Values(8, 1)))), (Values{2, 2, 4, 4, 6, 6, 8, 8}));
}

TEST_F(SavedExtension, SeveralConstantsArePreparedTogether) {
  OnnxGraph g;
  constexpr std::int64_t kCount = 3000;  // more than lies with the graph
  g.input("x", ElementType::f32, {std::to_string(kCount)});
  for (const auto* name : {"a", "b", "c"}) {
    auto v = some_values(kCount);
    v[0] = static_cast<float>(name[0]);
    g.initializer(name, floats({kCount}, v));
  }
  g.node("Both", {"x", "a", "b"}, {"u"}, {}, "ab", "test.keeps");
  g.node("Both", {"u", "a", "c"}, {"v"}, {}, "ac", "test.keeps");
  g.node("Both", {"v", "b", "a"}, {"y"}, {}, "ba", "test.keeps").output("y");
  const CompiledModel fresh(model(g, {"keeps.so"}));
  fresh.save(path("m.lamina"));
  const auto before = counted("keeps.so", "prepared_so_far");
  const CompiledModel compiled(opened({"keeps.so"}));
  const auto x = floats({kCount}, some_values(kCount));
  const auto y = compiled(x);
  EXPECT_TRUE(y.same_as(fresh(x)));
  EXPECT_EQ(values(y)[0], ((-1.5F * 97 + 98) * 97 + 99) * 98 + 97);
  EXPECT_EQ(counted("keeps.so", "prepared_so_far"), before);
}

TEST_F(SavedExtension, LargeAttributesAreKept) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"N", "2048"});
  g.node("AddTensor", {"x"}, {"u"}, {attribute("t", floats({2048}, some_values(2048)))}, "one", "test.keeps");
  g.node("AddTensor", {"u"}, {"y"}, {attribute("t", floats({2048}, Values(2048, 1)))}, "two", "test.keeps")
      .output("y");
  const CompiledModel fresh(model(g, {"keeps.so"}));
  const auto x = floats({1, 2048}, some_values(2048));
  const auto wanted = fresh(x);
  fresh.save(path("m.lamina"));
  const CompiledModel compiled(opened({"keeps.so"}));
  EXPECT_TRUE(compiled(x).same_as(wanted));
  EXPECT_EQ(compiled(floats({2, 2048}, some_values(4096))).shape(), (Dims{2, 2048}));  // planned anew
}

TEST_F(SavedExtension, ShapesThatDependOnValues) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"6"});
  g.node("Positives", {"x"}, {"v", "i"}, {}, "found", "test.ops")
      .node("Neg", {"v"}, {"y"}, {}, "n")
      .output("y");
  CompiledModel(model(g, {"operations.so"})).save(path("m.lamina"));
  const CompiledModel compiled(opened({"operations.so"}));
  EXPECT_EQ(values(compiled(floats({6}, {1, -1, 2, 0, 3, -3}))), (Values{-1, -2, -3}));
}

/// As many elements as the largest value of its constant says.
int picks(const lamina_host* given, lamina_registrar* registrar) {
  static const lamina_host* host;
  static const std::int32_t integers[] = {LAMINA_I64, LAMINA_NO_TYPE};
  static const lamina_port in[] = {{sizeof(lamina_port), "x", "", 0, 0, nullptr},
                                   {sizeof(lamina_port), "sizes", "", 0, 0, integers}};
  host = given;
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "test.picks";
  op.type = "Pick";
  op.in = in;
  op.inputs = 2;
  op.out = in;
  op.outputs = 1;
  op.infer = [](const lamina_node* node) {
    std::int64_t low = 0, high = LAMINA_UNBOUNDED;
    if (const auto* c = node->in[1]->constant) {
      for (std::uint64_t i = 0; i < c->elements; ++i)
        low = std::max(low, static_cast<const std::int64_t*>(c->data)[i]);
      high = low;
    }
    const lamina_value y{sizeof(y), LAMINA_F32, 1, &low, &high, nullptr, nullptr};
    return host->set_output(node->context, 0, &y);
  };
  op.run = [](const lamina_call* call) {
    std::fill_n(static_cast<float*>(call->out[0]->data), call->out[0]->elements, 1.0F);
    return lamina_status{LAMINA_OK};
  };
  return host->add_operation(registrar, &op);
}

TEST_F(SavedExtension, InferenceNeverLooksAtConstantsThatAreGone) {
  register_extension("test-picks", picks);
  for (const std::int64_t count : {500, 1000}) {  // the larger one is not looked at, and its data goes
    OnnxGraph g;
    g.input("x", ElementType::f32, {"4"});
    g.initializer("sizes", Tensor::of<std::int64_t>({count}, std::vector<std::int64_t>(count, 3)));
    g.node("Pick", {"x", "sizes"}, {"y"}, {}, "pick", "test.picks").output("y");
    write_file(path("m.onnx"), onnx_model(g));
    const Model model(path("m.onnx"), {"test-picks"});
    if (count == 1000) {
      EXPECT_EQ(model.outputs()[0].shape, (Dims{-1}));
      continue;
    }
    const CompiledModel fresh(model);
    EXPECT_EQ(fresh.output_ports({{4}})[0].shape, (Dims{3}));
    fresh.save(path("m.lamina"));
    const CompiledModel compiled(Model(path("m.lamina"), {"test-picks"}));
    EXPECT_EQ(compiled.output_ports({{4}})[0].shape, (Dims{3}));
    EXPECT_EQ(values(compiled(floats({4}, {0, 0, 0, 0}))), (Values{1, 1, 1}));
  }
}

/// Two versions of one operation: y = x * version.
int two_versions(const lamina_host* host, lamina_registrar* registrar) {
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
  int failed = 0;
  for (const int version : {1, 3}) {
    lamina_operation op{};
    op.struct_size = sizeof(op);
    op.domain = "test.versions";
    op.type = "Times";
    op.since_version = version;
    op.in = op.out = &port;
    op.inputs = op.outputs = 1;
    op.elementwise = version == 1 ? [](const void*, const float* in, float* out,
                                       std::size_t count) { std::copy_n(in, count, out); }
                                  : [](const void*, const float* in, float* out, std::size_t count) {
                                      for (std::size_t i = 0; i < count; ++i) out[i] = 3 * in[i];
                                    };
    failed |= host->add_operation(registrar, &op);
  }
  return failed;
}

TEST_F(SavedExtension, OfSeveralVersionsThatOfTheModel) {
  register_extension("test-two-versions", two_versions);
  OnnxGraph g;  // it uses version 1 of the domain
  g.input("x", ElementType::f32, {"2"}).node("Times", {"x"}, {"y"}, {}, "t", "test.versions").output("y");
  write_file(path("m.onnx"), onnx_model(g));
  CompiledModel(Model(path("m.onnx"), {"test-two-versions"})).save(path("m.lamina"));
  const CompiledModel compiled(Model(path("m.lamina"), {"test-two-versions"}));
  EXPECT_EQ(values(compiled(floats({2}, {1, 2}))), (Values{1, 2}));
}

}  // namespace
}  // namespace lamina::testing::saved_test
