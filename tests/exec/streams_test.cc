/// Requests that run in turn on the same streams: steps and memory between them are the streams', results are
/// not.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>

#include "tests/support/allocations.h"
#include "tests/support/run_graph.h"

namespace lamina::testing::streams_test {
namespace {

const char* const kNet =
    "graph (x: f32[N,4,H,8]) -> (y, m) {\n w = const f32[8,4,3,3] seed(1)\n c = Convolution(x, w) "
    "pads_begin=[1,1] pads_end=[1,1]\n r = Relu(c)\n"
    " a = const i64[2] {2, 3}\n m = ReduceMean(r, a)\n v = const f32[8,5] seed(2)\n y = MatMul(m, v)\n}\n";
/// y waits for the shape of n; what it is made of besides is read by the first plan only.
const char* const kWaiting =
    "graph (x: f32[6]) -> (y, c) {\n n = NonZero(x)\n f = Convert(n) destination_type=f32\n"
    " a = const i64[2] {0, 1}\n s = ReduceSum(f, a)\n z = const i64[] {0}\n c = CumSum(x, z)\n y = Add(s, "
    "c)\n}\n";
/// The body that is taken says the shape, and passes on what lies in memory that the stream uses again.
const char* const kBranches =
    "graph (x: f32[6], c: boolean[]) -> (y) {\n t = Negative(x)\n y = If(c, t) {\n body graph (a: f32[6]) -> "
    "(a) {\n }\n body graph (a: f32[6]) -> (b) {\n b = Concat(a, a) axis=0\n }\n }\n}\n";
/// A graph whose shape depends on the values of i.
const char* const kReshaped =
    "graph (x: f32[6], i: i64[2]) -> (g) {\n t = Negative(x)\n g = Reshape(t, i) special_zero=false\n}\n";

std::shared_ptr<const Program> program_of(const std::string& text, std::size_t plans = 8) {
  ProgramOptions options;
  options.cached_plans = plans;
  return std::make_shared<Program>(parse(text), options, std::make_shared<ModelWeights>());
}

Stream stream_of(int threads = 1) { return {StreamPlace{}, threads, Binding::none}; }

Tensor picture(std::int64_t n, std::int64_t h, std::uint64_t seed) {
  return seeded_tensor(ElementType::f32, {n, 4, h, 8}, seed);
}

/// A request with what it got, and what that was then.
struct Requested {
  explicit Requested(const std::shared_ptr<const Program>& p) : program(p), runner(p) {}

  void run(Stream& stream, const std::vector<Tensor>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
    wanted = interpret(program->graph(), inputs);
    runner.run(stream);
    got.clear();
    for (std::size_t r = 0; r < wanted.size(); ++r) got.push_back(runner.output(r));
  }
  void check(const std::string& when) const {
    for (std::size_t r = 0; r < wanted.size(); ++r) expect_close(got[r], wanted[r], when);
  }

  std::shared_ptr<const Program> program;
  Runner runner;
  std::vector<Tensor> got, wanted;
};

TEST(Streams, requests_in_turn_of_different_shapes_and_memory_for_results) {
  const auto p = program_of(kNet);
  for (const int threads : {1, 2}) {
    auto stream = stream_of(threads);
    Requested a(p), b(p);
    for (std::uint64_t i = 0; i < 16; ++i) {
      // The larger one lets the stream's memory move.
      a.run(stream, {picture(1, 3 + static_cast<std::int64_t>(i % 3), i)});
      const auto n = static_cast<std::int64_t>(1 + i / 4);
      b.runner.set_output(0, i % 2 == 0 ? Tensor(ElementType::f32, {n, 5}) : Tensor());
      b.run(stream, {picture(n, 9, 100 + i)});
      a.check("the first after the second");
      b.check("the second");
    }
  }
}

/// The copy of an input whose address does not suit its type is there for the waiting part, too.
TEST(Streams, an_unaligned_input_that_the_waiting_part_reads) {
  const auto program = program_of(
      "graph (x: f32[6], late: f32[6]) -> (y) {\n n = NonZero(x)\n f = Convert(n) destination_type=f32\n"
      " a = const i64[2] {0, 1}\n s = ReduceSum(f, a)\n y = Add(s, late)\n}\n");
  auto stream = stream_of();
  Requested request(program);
  std::vector<std::byte> bytes(6 * sizeof(float) + 1);
  const auto values = seeded_tensor(ElementType::f32, {6}, 3);
  std::memcpy(bytes.data() + 1, values.raw(), values.bytes());
  const auto late = Tensor::wrap(ElementType::f32, {6}, bytes.data() + 1);
  ASSERT_FALSE(late.aligned());
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    request.run(stream, {seeded_tensor(ElementType::f32, {6}, seed), late});
    request.check("unaligned");
  }
}

TEST(Streams, results_stay_when_another_request_runs) {
  const auto x = [](std::uint64_t seed) { return seeded_tensor(ElementType::f32, {6}, seed); };
  const auto shape = Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{2, 3});
  const struct {
    const char* text;
    std::vector<Tensor> more;
  } rows[] = {{kWaiting, {}},
              {kBranches, {Tensor::scalar(true)}},
              {kBranches, {Tensor::scalar(false)}},
              {kReshaped, {shape}}};
  for (const auto& row : rows) {
    const auto p = program_of(row.text);
    std::optional<Stream> stream(std::in_place, StreamPlace{}, 1, Binding::none);
    std::optional<Requested> a(p), b(p);
    for (std::uint64_t i = 0; i < 8; ++i) {
      auto& r = i % 2 == 0 ? *a : *b;
      std::vector<Tensor> inputs{x(i)};
      inputs.insert(inputs.end(), row.more.begin(), row.more.end());
      r.run(*stream, inputs);
      a->check(row.text);
      b->check(row.text);
    }
    const auto kept = a->got, wanted = a->wanted;  // they outlive request and stream
    a.reset();
    b.reset();
    stream.emplace(StreamPlace{}, 1, Binding::none);
    for (std::size_t r = 0; r < wanted.size(); ++r) expect_close(kept[r], wanted[r], row.text);
  }
}

/// A result of one request is the other's input, and its memory for results.
TEST(Streams, results_of_others) {
  const auto* const pair = "graph (x: f32[6]) -> (y, c) {\n y = Negative(x)\n c = Abs(x)\n}\n";
  for (const auto* const text : {kWaiting, pair}) {
    const auto p = program_of(text);
    auto stream = stream_of();
    Requested a(p), b(p);
    a.run(stream, {seeded_tensor(ElementType::f32, {6}, 1)});
    for (int i = 0; i < 4; ++i) {
      b.run(stream, {a.got[0]});
      a.check("what was read");
      b.check("of the other's result");
      a.run(stream, {b.got[0]});
      a.check("of the other's result");
      b.check("what was read");
    }
    b.runner.set_output(0, a.got[1]);
    b.run(stream, {a.got[0]});
    b.check("in the other's memory");
    EXPECT_EQ(b.got[0].raw(), a.got[1].raw());
  }
}

TEST(Streams, a_request_that_fails_in_the_midst) {
  const auto p = program_of(kReshaped);
  auto stream = stream_of();
  Requested a(p), b(p);
  const auto shape = [](std::int64_t n) {
    return Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{n, 3});
  };
  for (std::uint64_t i = 0; i < 3; ++i) {
    b.run(stream, {seeded_tensor(ElementType::f32, {6}, i), shape(2)});
    a.runner.set_input(0, seeded_tensor(ElementType::f32, {6}, 10 + i));
    a.runner.set_input(1, shape(5));
    EXPECT_THROW(a.runner.run(stream), Error);
    EXPECT_FALSE(a.runner.output(0).valid());
    b.check("the other's");
    b.run(stream, {seeded_tensor(ElementType::f32, {6}, 20 + i), shape(2)});
    a.run(stream, {seeded_tensor(ElementType::f32, {6}, 30 + i), shape(2)});
    a.check("after a failure");
    b.check("the other's");
  }
}

/// What a stream has bound goes with the plan when neither the model nor a request keeps that.
TEST(Streams, plans_that_were_forgotten) {
  const auto p = program_of(kNet, 1);
  auto stream = stream_of();
  std::weak_ptr<const Plan> plan;
  {
    Requested a(p);
    a.run(stream, {picture(1, 5, 1)});
    plan = a.runner.plans().at(0);
    Requested other(p);
    other.run(stream, {picture(1, 6, 1)});
    EXPECT_FALSE(plan.expired()) << "a request has it";
  }
  Requested b(p);
  b.run(stream, {picture(1, 7, 1)});
  EXPECT_TRUE(plan.expired());
  for (std::int64_t h = 8; h < 40; ++h) b.run(stream, {picture(1, h, 1)});
  b.check("the last of many");
}

/// Counts are of steps of a plan that the stream may have let go of.
TEST(Streams, counts_of_plans_that_others_pushed_out) {
  const auto p = program_of(kNet, 1);
  auto stream = stream_of();
  Requested a(p), b(p);
  a.runner.profile(true);
  a.run(stream, {picture(1, 5, 1)});
  for (std::int64_t h = 6; h < 30; ++h) b.run(stream, {picture(1, h, 1)});
  const auto counts = a.runner.counts();
  ASSERT_EQ(counts.size(), a.runner.plans().at(0)->steps.size());
  for (std::size_t s = 0; s < counts.size(); ++s) {
    EXPECT_EQ(counts[s].kernel, a.runner.plans()[0]->steps[s].label);
    EXPECT_EQ(counts[s].runs, 1u);
  }
  a.run(stream, {picture(1, 5, 2)});
  EXPECT_EQ(a.runner.counts().at(0).runs, 2u) << "bound anew, counted on";
}

/// Bytes of the heap in use. Memory that oneDNN takes for the time of a step is given back.
std::size_t bytes_in_use() {
  const auto heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

/// Bytes of more requests for a small network with steps of oneDNN, which have a kilobyte and more for each
/// tensor.
std::size_t bytes_of_more_requests(std::size_t requests) {
  std::string text = "graph (x: f32[1,16,12,12]) -> (y) {\n";
  for (int i = 0; i < 12; ++i)
    text += fmt::format(
        " w{0} = const f32[16,16,3,3] seed({0})\n c{0} = Convolution({1}, w{0}) pads_begin=[1,1] "
        "pads_end=[1,1]\n {2} = Tanh(c{0})\n",
        i, i == 0 ? "x" : fmt::format("r{}", i - 1), i == 11 ? "y" : fmt::format("r{}", i));
  const auto p = program_of(text + "}\n");
  auto first = stream_of(), second = stream_of();
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < requests; ++i)
    inputs.push_back(seeded_tensor(ElementType::f32, {1, 16, 12, 12}, i));
  std::vector<std::unique_ptr<Runner>> runners;
  const auto run_one = [&](std::size_t i) {
    runners.push_back(std::make_unique<Runner>(p));
    runners.back()->set_input(0, inputs[i]);
    for (auto* stream : {&first, &second}) runners.back()->run(*stream);
  };
  for (std::size_t i = 0; i < 2; ++i) run_one(i);
  runners.reserve(requests);
  const auto before = bytes_in_use();
  for (std::size_t i = 2; i < requests; ++i) run_one(i);
  const auto more = bytes_in_use() - before;
  for (std::size_t i = 0; i < requests; ++i) {
    Runner alone(p);
    alone.set_input(0, inputs[i]);
    alone.run();
    EXPECT_TRUE(runners[i]->output(0).same_as(alone.output(0)));
  }
  return more;
}

TEST(Streams, more_requests_take_no_more_memory_but_for_results) {
  if (!allocations::kAll) GTEST_SKIP() << "sanitizers have a heap of their own";
  constexpr std::size_t kResult = 4 * 16 * 12 * 12;
  const auto bytes = bytes_of_more_requests(16);
  fmt::print("{} bytes for each of 14 more requests, {} of them its result\n", bytes / 14, kResult);
  EXPECT_GE(bytes, 14 * kResult);
  EXPECT_LE(bytes, 14 * (kResult + 4096));
}

}  // namespace
}  // namespace lamina::testing::streams_test
