/// The floating-point mode of the calling thread changes no result, and is given back.
#include <atomic>
#include <cmath>
#include <thread>

#include "tests/api/small_models.h"
#include "tests/support/floating_point_mode.h"

namespace lamina {
namespace {

using namespace testing;

constexpr int kChannels = 16, kSide = 20;

std::vector<float> uneven(std::size_t count, double step) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(std::sin(step * static_cast<double>(i + 1)));
  return out;
}

/// A convolution whose weights are scaled, shifted and packed when it is compiled, a matrix product, an
/// exponential; and small numbers that are denormal on the way. An attribute is a number in text.
IrText make_sensitive() {
  IrText ir;
  const std::string picture = fmt::format("1,{},{},{}", kChannels, kSide, kSide);
  const int x = ir.parameter("x", picture);
  const int w = ir.constant(fmt::format("{0},{0},3,3", kChannels), uneven(kChannels * kChannels * 9, 0.37));
  const int c = ir.layer(
      "Convolution", "opset1",
      R"(strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="explicit")", {{x}, {w}});
  const int scale = ir.constant(fmt::format("1,{},1,1", kChannels), uneven(kChannels, 1.7));
  const int shift = ir.constant(fmt::format("1,{},1,1", kChannels), uneven(kChannels, 0.9));
  const int m = ir.layer("Multiply", "opset1", R"(auto_broadcast="numpy")", {{c}, {scale}});
  const int a = ir.layer("Add", "opset1", R"(auto_broadcast="numpy")", {{m}, {shift}});
  const int e = ir.layer("Elu", "opset1", R"(alpha="0.3")", {{a}});
  const int v = ir.constant(fmt::format("{0},{0}", kSide), uneven(kSide * kSide, 0.51));
  const int p = ir.layer("MatMul", "opset1", R"(transpose_a="false" transpose_b="false")", {{e}, {v}});
  const int t = ir.layer("Tanh", "opset1", "", {{p}});
  const int s = ir.parameter("s", "64");
  const int tiny = ir.constant("64", std::vector<float>(64, 1e-30F));
  const int large = ir.constant("64", std::vector<float>(64, 1e30F));
  const int d = ir.layer("Multiply", "opset1", R"(auto_broadcast="numpy")", {{s}, {tiny}});
  const int r = ir.layer("ReLU", "opset1", "", {{d}});
  const int l = ir.layer("Multiply", "opset1", R"(auto_broadcast="numpy")", {{r}, {large}});
  ir.result({t});
  ir.result({l});
  return ir;
}

std::vector<Tensor> make_inputs() {
  Tensor small(ElementType::f32, {64});
  const auto numbers = small.data<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 1.7e-10F * static_cast<float>(i + 1);
  return {Tensor::of<float>({1, kChannels, kSide, kSide}, uneven(kChannels * kSide * kSide, 0.123)), small};
}

/// Made once, in the standard mode, as the model's text is: sines are computed in the caller's.
const std::vector<Tensor>& inputs() {
  static const auto all = make_inputs();
  return all;
}
const IrText& sensitive() {
  static const auto text = make_sensitive();
  return text;
}

Request request_of(const CompiledModel& model) {
  auto request = model.create_request();
  const auto& all = inputs();
  for (std::size_t i = 0; i < all.size(); ++i) request.set_input(i, all[i]);
  return request;
}

std::vector<Tensor> results_of(const Request& request) {
  return {request.output(0).clone(), request.output(1).clone()};
}

std::vector<Tensor> run(const CompiledModel& model) {
  auto request = request_of(model);
  request.run();
  return results_of(request);
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return a.at(0).same_as(b.at(0)) && a.at(1).same_as(b.at(1));
}

/// `threads`: of a stream; the kernels that are chosen, and so the roundings of sums, may depend on it.
const std::vector<Tensor>& wanted(int threads = 2) {
  static const std::vector<Tensor> one = run(CompiledModel(model_of(sensitive()), {.threads = 1})),
                                   two = run(CompiledModel(model_of(sensitive()), {.threads = 2}));
  return threads == 1 ? one : two;
}

class FloatingPointModes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { wanted(); }  // in the standard mode
};

TEST_F(FloatingPointModes, the_model_feels_modes) {
  // Denormal numbers came up, and were not lost.
  for (const float v : wanted()[1].data<const float>()) EXPECT_GT(v, 0);
  const volatile float one = 1, three = 3;
  const volatile float nearest = one / three;
  const InMode down({FE_DOWNWARD});
  const volatile float below = one / three;
  EXPECT_LT(below, nearest);
}

TEST_F(FloatingPointModes, reading_compiling_and_running_in_any_mode) {
  for (const auto& mode : all_modes())
    for (const int streams : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("{}, {} streams", mode.text(), streams));
      const InMode here(mode);
      const auto model = model_of(sensitive());
      EXPECT_TRUE(here.is_here());
      const CompiledModel compiled(model, {.threads = 2, .streams = streams});
      EXPECT_TRUE(here.is_here());
      auto request = request_of(compiled);
      request.run();
      EXPECT_TRUE(here.is_here());
      EXPECT_TRUE(same(results_of(request), wanted(streams == 2 ? 1 : 2)));
      request.start();
      EXPECT_TRUE(here.is_here());
      request.wait();
      EXPECT_TRUE(here.is_here());
      EXPECT_TRUE(same(results_of(request), wanted(streams == 2 ? 1 : 2)));
    }
}

TEST_F(FloatingPointModes, compiled_in_one_mode_and_run_in_another) {
  for (const auto& mode : all_modes()) {
    SCOPED_TRACE(mode.text());
    const auto compiled = [&] {
      const InMode here(mode);
      return CompiledModel(model_of(sensitive()), {.threads = 2});
    }();
    EXPECT_TRUE(same(run(compiled), wanted()));
    const InMode other({FE_DOWNWARD, true, true});
    EXPECT_TRUE(same(run(compiled), wanted()));
  }
}

TEST_F(FloatingPointModes, threads_in_different_modes_at_once) {
  const CompiledModel compiled(model_of(sensitive()), {.threads = 2, .streams = 2});
  std::vector<std::thread> threads;
  for (const auto& mode : all_modes())
    threads.emplace_back([&compiled, mode] {
      const InMode here(mode);
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(run(compiled), wanted(1))) << mode.text();
      EXPECT_TRUE(here.is_here()) << mode.text();
    });
  for (auto& thread : threads) thread.join();
}

TEST_F(FloatingPointModes, the_mode_stays_after_exceptions) {
  const CompiledModel compiled(model_of(sensitive()));
  for (const auto& mode : all_modes()) {
    SCOPED_TRACE(mode.text());
    const InMode here(mode);
    expect_error([] { Model::from_memory({.model = bytes_of("<net"), .name = "bad.xml"}); },
                 ErrorCode::bad_file, "bad.xml");
    EXPECT_TRUE(here.is_here());
    auto request = compiled.create_request();
    expect_error([&] { request.run(); }, ErrorCode::bad_input, "input");
    EXPECT_TRUE(here.is_here());
    EXPECT_THROW(
        CompiledModel(model_of(sensitive()),
                      {.progress = [](std::string_view, double) { throw std::runtime_error("stop"); }}),
        std::runtime_error);
    EXPECT_TRUE(here.is_here());
  }
}

/// Callbacks on the caller's thread compute as the caller does; what they change is over with them.
TEST_F(FloatingPointModes, callbacks_are_in_the_callers_mode) {
  for (const auto& mode : all_modes()) {
    SCOPED_TRACE(mode.text());
    const InMode here(mode);
    const auto me = std::this_thread::get_id();
    std::atomic<int> told = 0, called = 0;
    const CompiledModel compiled(model_of(sensitive()),
                                 {.threads = 2, .streams = 0, .progress = [&](std::string_view, double) {
                                    EXPECT_TRUE(std::this_thread::get_id() != me || here.is_here());
                                    ++told;
                                    std::fesetround(FE_DOWNWARD);
                                    _mm_setcsr(_mm_getcsr() | 0x8040);
                                  }});
    EXPECT_GT(told, 0);
    EXPECT_TRUE(here.is_here());
    auto request = request_of(compiled);
    request.set_callback([&](const std::exception_ptr&) {
      EXPECT_TRUE(here.is_here());
      ++called;
      const InMode inner({FE_UPWARD, true, false});
      EXPECT_TRUE(same(run(compiled), wanted()));
      EXPECT_TRUE(inner.is_here());
    });
    request.start();
    request.wait();
    EXPECT_EQ(called, 1);
    EXPECT_TRUE(here.is_here());
    EXPECT_TRUE(same(results_of(request), wanted()));
  }
}

/// A callback on a thread of lamina's leaves it in another mode: the next inference there does not feel it.
TEST_F(FloatingPointModes, what_callbacks_leave_on_other_threads) {
  const CompiledModel compiled(model_of(sensitive()), {.threads = 2, .streams = 1});
  auto request = request_of(compiled);
  request.set_callback([](const std::exception_ptr&) {
    std::fesetround(FE_UPWARD);
    _mm_setcsr(_mm_getcsr() | 0x8040);
  });
  for (int i = 0; i < 3; ++i) {
    request.start();
    request.wait();
    EXPECT_TRUE(same(results_of(request), wanted()));
  }
}

/// Threads inherit the mode of the thread that makes them.
TEST_F(FloatingPointModes, threads_made_in_another_mode) {
  const InMode here({FE_UPWARD, true, true});
  const CompiledModel compiled(model_of(sensitive()), {.threads = 2, .streams = 2});
  auto request = request_of(compiled);
  bool standard = false;
  request.set_callback([&](const std::exception_ptr&) {
    standard = std::fegetround() == FE_TONEAREST && (_mm_getcsr() & 0x8040) == 0;
  });
  request.start();
  request.wait();
  EXPECT_TRUE(standard);
  EXPECT_TRUE(same(results_of(request), wanted(1)));
}

}  // namespace
}  // namespace lamina
