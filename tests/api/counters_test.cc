/// Request::counters(): a row for each layer of the file.
#include <algorithm>
#include <chrono>

#include "tests/api/small_models.h"
#include "tests/support/onnx_model.h"

namespace lamina::counters_test {
namespace {

using namespace testing;

Request ready(const CompiledModel& compiled) {
  auto request = compiled.create_request();
  request.set_input(0, rows(2, 1));
  request.set_input(1, rows(2, 2));
  return request;
}

const LayerCounter* find(const std::vector<LayerCounter>& all, std::string_view type) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const LayerCounter& c) { return c.type == type; });
  return it == all.end() ? nullptr : &*it;
}

TEST(Counters, are_collected_when_asked_for) {
  const CompiledModel compiled(model_of(sums()));
  auto request = ready(compiled);
  request.run();
  expect_error([&] { (void)request.counters(); }, ErrorCode::bad_option, "not collected: PERF_COUNT is NO");
  request.set_profile(true);
  for (int i = 0; i < 5; ++i) request.run();
  const auto all = request.counters();
  const auto* const add = find(all, "Add");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(add->status, LayerStatus::executed);
  EXPECT_EQ(add->runs, 5u);
  EXPECT_NE(add->kernel, "undef");
  EXPECT_GT(add->average_us, 0);
  EXPECT_LE(add->min_us, add->average_us);
  EXPECT_GE(add->cpu_us, 0);
  request.set_profile(false);
  expect_error([&] { (void)request.counters(); }, ErrorCode::bad_option, "not collected");
}

TEST(Counters, nothing_has_run_yet) {
  const CompiledModel compiled(model_of(sums()), {.profile = true});
  auto request = ready(compiled);
  const auto all = request.counters();
  ASSERT_FALSE(all.empty());
  for (const auto& c : all) {
    EXPECT_EQ(c.status, LayerStatus::not_run) << c.name;
    EXPECT_EQ(c.kernel, "undef");
    EXPECT_EQ(c.runs, 0u);
  }
}

/// A chain of element-wise layers is one step: the others say into which.
TEST(Counters, layers_that_others_do) {
  IrText ir;
  const int x = ir.parameter("x", "4,4");
  const int relu = ir.layer("ReLU", "opset1", "", {{x}});
  ir.result({ir.layer("Tanh", "opset1", "", {{relu}})});
  const CompiledModel compiled(model_of(ir), {.profile = true});
  auto request = compiled.create_request();
  request.set_input(0, Tensor(ElementType::f32, {4, 4}));
  request.run();
  const auto all = request.counters();
  const auto executed = std::count_if(
      all.begin(), all.end(), [](const LayerCounter& c) { return c.status == LayerStatus::executed; });
  EXPECT_EQ(executed, 1);
  bool told = false;
  for (const auto& c : all) {
    if (c.status != LayerStatus::optimized_out) continue;
    EXPECT_EQ(c.kernel, "undef");
    told = told || !c.into.empty();
  }
  EXPECT_TRUE(told);
}

LayerStatus status_of(const Request& request, std::string_view type) {
  const auto all = request.counters();
  const auto* const row = find(all, type);
  return row ? row->status : LayerStatus::not_run;
}

/// A port map from a port outside to a layer inside the body.
std::string into_body(int outside, int inside, const std::string& more = {}) {
  return R"(<input external_port_id=")" + std::to_string(outside) + R"(" internal_layer_id=")" +
         std::to_string(inside) + R"(" )" + more + "/>";
}
std::string out_of_body(int outside, int inside, const std::string& more = {}) {
  return R"(<output external_port_id=")" + std::to_string(outside) + R"(" internal_layer_id=")" +
         std::to_string(inside) + R"(" )" + more + "/>";
}

/// softmax(x) or -x.
int choose(IrText& ir, int condition, int x, const std::string& shape) {
  IrText yes, no;
  const int a = yes.parameter("a", shape), b = no.parameter("b", shape);
  const int first = yes.result({yes.layer("Softmax", "opset8", R"(axis="-1")", {{a}})});
  const int second = no.result({no.layer("Negative", "opset1", "", {{b}})});
  return ir.layer("If", "opset8", "", {{condition}, {x}}, 1,
                  "<then_port_map>" + into_body(1, a) + out_of_body(2, first) + "</then_port_map>" +
                      "<else_port_map>" + into_body(1, b) + out_of_body(2, second) + "</else_port_map>" +
                      "<then_body>" + yes.body() + "</then_body><else_body>" + no.body() + "</else_body>");
}

TEST(Counters, branches_that_were_not_taken) {
  IrText ir;
  const int c = ir.parameter("c", "", "boolean"), x = ir.parameter("x", "2");
  ir.result({choose(ir, c, x, "2")});
  const CompiledModel compiled(model_of(ir), {.profile = true});
  auto request = compiled.create_request();
  request.set_input(1, Tensor(ElementType::f32, {2}));
  request.set_input(0, Tensor::scalar(true));
  request.run();
  EXPECT_EQ(status_of(request, "If"), LayerStatus::executed);
  EXPECT_EQ(status_of(request, "Softmax"), LayerStatus::optimized_out);  // it is in the time of the If
  EXPECT_EQ(status_of(request, "Negative"), LayerStatus::not_run);
  request.set_input(0, Tensor::scalar(false));
  request.run();
  EXPECT_EQ(status_of(request, "Negative"), LayerStatus::optimized_out);
}

TEST(Counters, branches_in_a_loop_that_were_not_taken) {
  IrText ir, body;
  const int c = ir.parameter("c", "", "boolean"), x = ir.parameter("x", "3,2");
  const int inner = body.parameter("ic", "", "boolean"), slice = body.parameter("slice", "1,2");
  const int chosen = body.result({choose(body, inner, slice, "1,2")});
  ir.result(
      {ir.layer("TensorIterator", "opset1", "", {{c}, {x}}, 1,
                "<port_map>" + into_body(0, inner) + into_body(1, slice, R"(axis="0")") +
                    out_of_body(2, chosen, R"(axis="0")") + "</port_map><body>" + body.body() + "</body>")});
  const CompiledModel compiled(model_of(ir), {.profile = true});
  auto request = compiled.create_request();
  request.set_input(0, Tensor::scalar(false));
  request.set_input(1, Tensor(ElementType::f32, {3, 2}));
  request.run();
  const auto all = request.counters();
  EXPECT_EQ(find(all, "TensorIterator")->status, LayerStatus::executed);
  EXPECT_EQ(find(all, "Negative")->status, LayerStatus::optimized_out);
  EXPECT_EQ(find(all, "Negative")->into, find(all, "TensorIterator")->name);
  EXPECT_EQ(find(all, "Softmax")->status, LayerStatus::not_run);
}

/// What makes the trip count of the loop is a step of its row, too, which comes first.
TEST(Counters, a_layer_of_several_steps_is_executed_as_the_dearest) {
  OnnxGraph body;
  body.input("i", ElementType::i64, {}).input("go", ElementType::boolean, {});
  body.input("v", ElementType::f32, {"300", "400"});
  body.node("Identity", {"go"}, {"on"}).node("Sin", {"v"}, {"w"}).output("on").output("w");
  OnnxGraph g;
  g.input("x", ElementType::f32, {"300", "400"}).input("n", ElementType::i64, {});
  g.node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body.bytes())}, "loop").output("y");
  const CompiledModel compiled(Model::from_memory({.model = bytes_of(onnx_model(g))}), {.profile = true});
  auto request = compiled.create_request();
  request.set_input(0, Tensor(ElementType::f32, {300, 400}));
  request.set_input(1, Tensor::scalar<std::int64_t>(5));
  request.run();
  const auto all = request.counters();
  ASSERT_NE(find(all, "Loop"), nullptr);
  EXPECT_EQ(find(all, "Loop")->kernel, "reference");
}

/// The If becomes the branch that its shape takes, whose layers have steps of their own.
TEST(Counters, branches_that_shapes_decide) {
  IrText ir;
  const int x = ir.parameter("x", "?,2");
  const int shape = ir.layer("ShapeOf", "opset3", R"(output_type="i64")", {{x}});
  const int zero = ir.constant("", std::vector<std::int64_t>{0});
  const int size = ir.layer("Gather", "opset8", R"(batch_dims="0")", {{shape}, {zero}, {zero}});
  const int four = ir.constant("", std::vector<std::int64_t>{4});
  const int c = ir.layer("Equal", "opset1", R"(auto_broadcast="numpy")", {{size}, {four}});
  ir.result({choose(ir, c, x, "?,2")});
  const CompiledModel compiled(model_of(ir), {.profile = true});
  auto request = compiled.create_request();
  request.set_input(0, Tensor(ElementType::f32, {4, 2}));
  request.run();
  EXPECT_EQ(status_of(request, "Softmax"), LayerStatus::executed);
  EXPECT_EQ(status_of(request, "Negative"), LayerStatus::not_run);
  EXPECT_EQ(status_of(request, "If"), LayerStatus::optimized_out);
  request.set_input(0, Tensor(ElementType::f32, {3, 2}));
  request.run();
  EXPECT_EQ(status_of(request, "Negative"), LayerStatus::executed);
  EXPECT_EQ(status_of(request, "Softmax"), LayerStatus::executed) << "it was before";
}

void run_batch(Request& request, std::int64_t batch) {
  request.set_input(0, rows(batch, 1));
  request.set_input(1, rows(batch, 2));
  request.run();
}

/// More shapes than a request remembers plans of.
TEST(Counters, go_on_when_shapes_take_turns) {
  const CompiledModel compiled(model_of(sums()), {.profile = true});
  auto request = compiled.create_request();
  double sum = 0;
  for (int turn = 0; turn < 2; ++turn)
    for (std::int64_t batch = 1; batch <= 8; ++batch) {
      run_batch(request, batch);
      for (const auto& c : request.counters()) sum += c.last_us;
    }
  double mean = 0;
  std::size_t rows = 0;
  for (const auto& c : request.counters()) {
    if (c.status != LayerStatus::executed) continue;
    EXPECT_EQ(c.runs, 16u) << c.name;
    EXPECT_LE(c.min_us, c.average_us) << c.name;
    mean += c.average_us;
    ++rows;
  }
  EXPECT_GE(rows, 1u);
  EXPECT_NEAR(mean, sum / 16, 1e-6 * sum);
}

TEST(Counters, outlast_a_run_that_fails) {
  const CompiledModel compiled(model_of(sums()), {.profile = true});
  auto request = ready(compiled);
  request.run();
  request.run();
  request.set_input(1, rows(3, 2));
  EXPECT_THROW(request.run(), Error);
  const auto all = request.counters();
  EXPECT_EQ(find(all, "Add")->status, LayerStatus::executed);
  EXPECT_EQ(find(all, "Add")->runs, 2u);
  EXPECT_TRUE(request.layer_times().empty()) << "of the last run";
  run_batch(request, 2);
  EXPECT_EQ(find(request.counters(), "Add")->runs, 3u);
}

/// A run that fails where it would go another way says nothing of the layers that no step stands for.
TEST(Counters, rows_without_steps_outlast_a_run_that_fails) {
  IrText ir;
  const int x = ir.parameter("x", "?,4"), w = ir.constant("4,4", std::vector<float>(16, 0.5F));
  const int y = ir.layer("MatMul", "opset1", R"(transpose_a="false" transpose_b="true")", {{x}, {w}});
  ir.result({ir.layer("ReLU", "opset1", "", {{y}})});
  const CompiledModel compiled(model_of(ir), {.profile = true});
  auto request = compiled.create_request();
  request.set_input(0, rows(2, 1));
  request.run();
  const auto before = request.counters();
  ASSERT_EQ(find(before, "ReLU")->status, LayerStatus::optimized_out);
  ASSERT_EQ(find(before, "ReLU")->into, find(before, "MatMul")->name);
  request.set_input(0, Tensor(ElementType::f32, {0, 4}));  // nothing to compute: no layer is in another
  request.set_output(0, Tensor(ElementType::f32, {3, 4}));
  EXPECT_THROW(request.run(), Error);
  const auto after = request.counters();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].status, before[i].status) << before[i].name;
    EXPECT_EQ(after[i].into, before[i].into) << before[i].name;
  }
}

/// What ran before is not counted, and what was counted before a run that was not is forgotten.
TEST(Counters, begin_anew_after_a_run_that_is_not_timed) {
  const CompiledModel compiled(model_of(sums()));
  auto request = ready(compiled);
  for (int turn = 0; turn < 2; ++turn) {
    request.set_profile(false);
    request.run();
    EXPECT_TRUE(request.layer_times().empty());
    request.set_profile(true);
    for (const auto& c : request.counters()) EXPECT_EQ(c.status, LayerStatus::not_run) << c.name;
    request.run();
    EXPECT_EQ(find(request.counters(), "Add")->runs, 1u);
    EXPECT_FALSE(request.layer_times().empty());
  }
}

/// SOURCE_LAYOUT_LAYOUT_TARGET, by the names of rows, of inputs and of outputs.
TEST(Counters, reorders_are_named_as_rows_are) {
  IrText ir;
  const int x = ir.parameter("x", "1,32,12,12");
  const auto convolution = [&](int of) {
    const int w = ir.constant("32,32,1,1", std::vector<float>(32 * 32, 0.5F));
    return ir.layer("Convolution", "opset1",
                    R"(strides="1,1" dilations="1,1" pads_begin="0,0" pads_end="0,0" auto_pad="explicit")",
                    {{of}, {w}});
  };
  ir.result({ir.layer("ReLU", "opset1", "", {{convolution(ir.layer("Tanh", "opset1", "", {{x}}))}})});
  const CompiledModel compiled(model_of(ir), {.profile = true});
  auto request = compiled.create_request();
  request.set_input(0, Tensor(ElementType::f32, {1, 32, 12, 12}));
  request.run();
  const auto all = request.counters();
  std::vector<std::string> names{compiled.inputs()[0].name, compiled.outputs()[0].name};
  for (const auto& c : all)
    if (c.type != "Reorder") names.push_back(c.name);
  for (const auto& c : all) {
    if (c.type != "Reorder") continue;
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const std::string& n) {
      return c.name.starts_with(n + "_");
    })) << c.name;
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const std::string& n) {
      return c.name.ends_with("_" + n);
    })) << c.name;
  }
}

/// Rows add up to what the runs took; what is between them is little.
TEST(Counters, times_add_up) {
  IrText ir;
  const int x = ir.parameter("x", "512,512");
  int last = x;
  for (int i = 0; i < 4; ++i)
    last = ir.layer("MatMul", "opset1", R"(transpose_a="false" transpose_b="true")", {{last}, {x}});
  ir.result({last});
  const CompiledModel compiled(model_of(ir), {.threads = 1, .profile = true});
  auto request = compiled.create_request();
  request.set_input(0, Tensor(ElementType::f32, {512, 512}));
  request.run();
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    request.run();
    const double whole =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    double sum = 0;
    for (const auto& c : request.counters()) sum += c.last_us;
    EXPECT_LE(sum, whole);
    best = std::min(best, whole - sum);
  }
  EXPECT_LT(best, 200);
}

}  // namespace
}  // namespace lamina::counters_test
