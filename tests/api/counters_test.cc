/// Request::counters(): a row for each layer of the file.
#include <algorithm>
#include <chrono>

#include "tests/api/small_models.h"

namespace lamina {
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

/// x + y or -x: what was not chosen has not run.
TEST(Counters, branches_that_were_not_taken) {
  IrText ir, sum, negative;
  const auto port_map = [](const std::string& name, const std::string& inside) {
    return "<" + name + ">" + inside + "</" + name + ">";
  };
  const auto input = [](int outside, int inside) {
    return R"(<input external_port_id=")" + std::to_string(outside) + R"(" internal_layer_id=")" +
           std::to_string(inside) + R"("/>)";
  };
  const auto output = [](int inside) {
    return R"(<output external_port_id="3" internal_layer_id=")" + std::to_string(inside) + R"("/>)";
  };
  const int c = ir.parameter("c", "", "boolean"), x = ir.parameter("x", "2"), y = ir.parameter("y", "2");
  const int a = sum.parameter("a", "2"), b = sum.parameter("b", "2");
  const int added = sum.result({sum.layer("Add", "opset1", "", {{a}, {b}})});
  const int p = negative.parameter("p", "2");
  const int turned = negative.result({negative.layer("Negative", "opset1", "", {{p}})});
  ir.result({ir.layer("If", "opset8", "", {{c}, {x}, {y}}, 1,
                      port_map("then_port_map", input(1, a) + input(2, b) + output(added)) +
                          port_map("else_port_map", input(1, p) + output(turned)) +
                          port_map("then_body", sum.body()) + port_map("else_body", negative.body()))});
  const CompiledModel compiled(model_of(ir), {.profile = true});
  auto request = compiled.create_request();
  request.set_input(1, Tensor(ElementType::f32, {2}));
  request.set_input(2, Tensor(ElementType::f32, {2}));
  const auto status = [&](const char* type) { return find(request.counters(), type)->status; };
  request.set_input(0, Tensor::scalar(true));
  request.run();
  EXPECT_EQ(status("If"), LayerStatus::executed);
  EXPECT_EQ(status("Add"), LayerStatus::optimized_out);  // it is in the time of the If
  EXPECT_EQ(status("Negative"), LayerStatus::not_run);
  request.set_input(0, Tensor::scalar(false));
  request.run();
  EXPECT_EQ(status("Negative"), LayerStatus::optimized_out);
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
}  // namespace lamina
