/// Tests which steps are bound again when pointers change.
#include "exec/bound.h"

#include "exec/bound_plans.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// What was bound, by step.
using Binds = std::vector<int>;

class CountingStep final : public Step {
 public:
  CountingStep(std::unique_ptr<Step> inner, int& count, const bool& fails)
      : inner_(std::move(inner)), count_(count), fails_(fails) {}
  void bind(const RunArgs& args) override {
    if (fails_) throw std::bad_alloc();
    ++count_;
    inner_->bind(args);
  }
  void run() override { inner_->run(); }

 private:
  std::unique_ptr<Step> inner_;
  int& count_;
  const bool& fails_;
};

struct CountingCode final : Executable {
  CountingCode(std::shared_ptr<const Executable> of, int& n, const bool& f)
      : code(std::move(of)), count(n), fails(f) {}
  std::unique_ptr<Step> step() const override {
    return std::make_unique<CountingStep>(code->step(), count, fails);
  }
  std::shared_ptr<const Executable> code;
  int& count;
  const bool& fails;
};

/// Six steps in a row, of which the first reads x and the last writes y; the third reads z, too.
class BoundSteps : public ::testing::Test {
 protected:
  BoundSteps() {
    const auto g = parse(
        "graph (x: f32[5,7], z: f32[5,7]) -> (y) {\n a = const i64[] {0}\n b = CumSum(x, a)\n c = CumSum(b, "
        "a)\n d = Add(c, z)\n e = CumSum(d, a)\n f = CumSum(e, a)\n i = const i64[1] {0}\n y = ReduceSum(f, "
        "i)\n}\n");
    graph_ = g;
    plan_ = make_plan(g, weights_);
    binds_.resize(plan_->steps.size());
    for (std::size_t s = 0; s < binds_.size(); ++s)
      plan_->steps[s].code = std::make_shared<CountingCode>(plan_->steps[s].code, binds_[s], fails_);
    bound_.emplace(plan_);
    arena_ = Tensor(ElementType::u8, {static_cast<std::int64_t>(plan_->memory.arena) + 64});
  }
  void SetUp() override { ASSERT_EQ(binds_.size(), 6u) << to_text(*plan_); }

  /// What it takes to run on these.
  Binds run(const Tensor& x, const Tensor& z, Tensor& y) {
    binds_.assign(binds_.size(), 0);
    bound_->point_arena(arena_.raw());
    bound_->point_input(0, x);
    bound_->point_input(1, z);
    bound_->point_result(0, y);
    bound_->bind();
    for (std::size_t s = 0; s < binds_.size(); ++s) bound_->run_step(s);
    bound_->end_run();
    expect_close(y, interpret(graph_, {x, z})[0], "y");
    return binds_;
  }

  Graph graph_;
  ModelWeights weights_;
  std::shared_ptr<Plan> plan_;
  Binds binds_;
  bool fails_ = false;
  std::optional<Bound> bound_;
  Tensor arena_;
  Tensor x_ = seeded_tensor(ElementType::f32, {5, 7}, 1), z_ = seeded_tensor(ElementType::f32, {5, 7}, 2),
         other_ = seeded_tensor(ElementType::f32, {5, 7}, 3), y_{ElementType::f32, {7}},
         mine_{ElementType::f32, {7}};
};

TEST_F(BoundSteps, only_those_that_changed) {
  EXPECT_EQ(run(x_, z_, y_), (Binds{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(run(x_, z_, y_), (Binds{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run(other_, z_, y_), (Binds{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run(other_, x_, y_), (Binds{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(run(x_, x_, mine_), (Binds{1, 0, 0, 0, 0, 1}));
}

TEST_F(BoundSteps, all_when_the_streams_memory_moves) {
  run(x_, z_, y_);
  arena_ = arena_.clone();
  EXPECT_EQ(run(x_, z_, y_), (Binds{1, 1, 1, 1, 1, 1}));
}

TEST_F(BoundSteps, what_failed_is_bound_the_next_time) {
  run(x_, z_, y_);
  fails_ = true;
  EXPECT_THROW(run(other_, z_, mine_), std::bad_alloc);
  fails_ = false;
  EXPECT_EQ(run(other_, z_, mine_), (Binds{1, 0, 0, 0, 0, 1}));
}

/// A copy lies where it lies for one run only.
TEST_F(BoundSteps, inputs_at_odd_addresses) {
  std::vector<std::byte> bytes(x_.bytes() + 1);
  std::copy_n(x_.raw(), x_.bytes(), bytes.begin() + 1);
  const auto odd = Tensor::wrap(ElementType::f32, x_.shape(), bytes.data() + 1);
  for (int i = 0; i < 3; ++i) {
    run(odd, z_, y_);
    run(x_, z_, y_);
  }
}

TEST(BoundPlans, no_more_than_were_asked_for) {
  ModelWeights weights;
  const auto g = parse("graph (x: f32[4]) -> (y) {\n y = Relu(x)\n}\n");
  std::vector<std::shared_ptr<const Planned>> plans;
  for (int i = 0; i < 3; ++i)
    plans.push_back(std::make_shared<Planned>(Planned{make_plan(g, weights), nullptr}));
  const auto held = [&](int i) { return plans[i]->plan.use_count(); };
  BoundPlans bound;
  const auto* first = &bound.of(plans[0], 2);
  bound.of(plans[1], 2);
  EXPECT_EQ(&bound.of(plans[0], 2), first);
  const auto while_bound = held(1);
  bound.of(plans[2], 2);  // in the place of the second, which was used longest ago
  EXPECT_LT(held(1), while_bound);
  EXPECT_EQ(&bound.of(plans[0], 2), first);
  bound.of(plans[1], 1);
  EXPECT_LT(held(2), while_bound);
}

TEST(BoundPlans, those_of_plans_that_nobody_keeps_go) {
  ModelWeights weights;
  const auto g = parse("graph (x: f32[4]) -> (y) {\n y = Relu(x)\n}\n");
  auto first = std::make_shared<Planned>(Planned{make_plan(g, weights), nullptr});
  const auto second = std::make_shared<Planned>(Planned{make_plan(g, weights), nullptr});
  BoundPlans bound;
  bound.of(first, 8);
  const std::weak_ptr<const Plan> plan = first->plan;
  first.reset();
  EXPECT_FALSE(plan.expired());  // until the next is asked for
  bound.of(second, 8);
  EXPECT_TRUE(plan.expired());
}

}  // namespace
}  // namespace lamina::testing
