/// Plans as text.
#include <sstream>

#include "base/text.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Nothing measured: the same on every processor.
std::string planned(const std::string& graph) {
  Machine machine;
  machine.here = false;
  PlanOptions options;
  options.machine = &machine;
  ModelWeights weights;
  return to_text(*make_plan(parse(graph), weights, options));
}

/// Without what depends on kernels and costs.
std::string without_costs(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    out += (line[0] == 's' ? line.substr(0, line.find("), ") + 1) : line) + "\n";
  return out;
}

TEST(PlanText, tensors_steps_and_results) {
  EXPECT_EQ(without_costs(planned("graph (x: f32[2,3]) -> (y, \"copy\" = y, x) {\n r = Relu(x) @\"first\"\n "
                                  "p = const i64[1] {-1}\n y = Reshape(r, p)\n}\n")),
            R"(plan: 5 tensors, 3 steps, 1 thread
memory: arena 0 bytes, scratch at 0; 0 if none shared, 0 alive at once
input 0 "x": t0
t0 f32[2,3] plain "x": 24 bytes, input 0
t1 f32[2,3] plain "r": 24 bytes, result 0
t2 f32[6] plain "y": 24 bytes, in t1 at 0
t3 f32[6] plain "y": 24 bytes, result 1
t4 f32[2,3] plain "x": 24 bytes, result 2
s0 kernel "first": native.elementwise plain -> plain all native_elementwise_sse41_f32 (t0) -> (t1)
s1 copy "copy": copy (t2) -> (t3)
s2 copy "x": copy (t0) -> (t4)
result 0 "y": t2
result 1 "copy": t3
result 2 "x": t4
)");
}

TEST(PlanText, what_waits_for_shapes) {
  const auto text = planned(
      "graph (x: f32[2,3], z: f32[4]) -> (y) {\n n = NonZero(x)\n f = Convert(n) destination_type=f32\n y = "
      "Relu(f)\n}\n");
  for (const auto* line : {"\ninput 1 \"z\": _\n", "\nt1 i64[2,0..6] plain \"n\": made at run time\n",
                           "\ns0 dynamic \"NonZero -> n\": reference (t0) -> (t1), 0 us\n",
                           "\nresult 0 \"y\": _\n", "\nrest: 2 nodes (t1) -> (results 0)\n"})
    EXPECT_NE(text.find(line), text.npos) << line << text;
}

/// Every kind of line, whatever kernels choose.
TEST(PlanText, views_rows_constants_and_scratch) {
  Plan plan;
  plan.tensors.reserve(3);
  const auto v = plan.graph.add_input(std::string(200, 'v'), {ElementType::f32, Shape{1, 8, 2, 2}});
  const auto tensor = [&](Layout layout, std::size_t bytes) -> PlanTensor& {
    auto& t = plan.tensors.emplace_back();
    t.value = v, t.type = plan.graph.type(v), t.layout = layout, t.bytes = bytes;
    t.root = static_cast<std::uint32_t>(plan.tensors.size() - 1);
    return t;
  };
  tensor(Layout::channels_last, 256).offset = 64;
  auto& part = tensor(Layout::channels_last, 128);
  part.root = 0, part.shift = 16, part.row = 8;
  tensor(Layout::plain, 128).place = Place::constant;
  PlanStep step;
  step.name = "line\nend", step.label = "k", step.in = {0, kNoTensor, 2}, step.out = {1};
  step.scratch = 640, step.cost = 12.345;
  plan.steps = {step};
  step.kind = PlanStep::Kind::reorder, step.scratch = 0;
  plan.steps.push_back(step);
  plan.threads = 4, plan.scratch_offset = 320, plan.memory = {960, 1024, 900};
  const auto name = '"' + clipped(std::string(200, 'v'), 100) + '"';
  EXPECT_EQ(to_text(plan), R"(plan: 3 tensors, 2 steps, 4 threads
memory: arena 960 bytes, scratch at 320; 1024 if none shared, 900 alive at once
t0 f32[1,8,2,2] channels_last )" +
                               name + R"(: 256 bytes, arena at 64
t1 f32[1,8,2,2] channels_last )" +
                               name + R"(: 128 bytes, in t0 at 16, rows of 8
t2 f32[1,8,2,2] plain )" + name +
                               R"(: 128 bytes, constant
s0 kernel "line end": k (t0, _, t2) -> (t1), 12.3 us, scratch 640 bytes
s1 reorder "line end": k (t0, _, t2) -> (t1), 12.3 us
)");
}

}  // namespace
}  // namespace lamina::testing
