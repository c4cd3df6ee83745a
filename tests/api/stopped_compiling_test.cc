/// Reading, compiling and planning that are stopped in the midst; and that all works on afterwards.
#include <atomic>
#include <stop_token>
#include <thread>

#include "tests/api/endless_model.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Longs = std::vector<std::int64_t>;

/// Products of constants that would take minutes to fold.
OnnxGraph products_of_constants() {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "2048"})
      .initializer("s", Tensor::of<std::int64_t>({2}, Longs{2048, 2048}));
  g.node("ConstantOfShape", {"s"}, {"w0"});
  for (int i = 0; i < 40; ++i)
    g.node("MatMul", {"w" + std::to_string(i), "w0"}, {"w" + std::to_string(i + 1)});
  g.node("MatMul", {"x", "w40"}, {"y"}).output("y");
  return g;
}

TEST(CancellationOfCompiling, from_the_progress_callback) {
  const auto model = model_of(products(20, 64));
  std::stop_source source;
  Options options;
  options.stop = source.get_token();
  options.progress = [&](std::string_view, double) { source.request_stop(); };
  expect_error([&] { const CompiledModel compiled(model, options); }, ErrorCode::canceled,
               "compiling was canceled");
  const CompiledModel compiled(model, {});
  auto r = compiled.create_request();
  r.set_input(0, square(64, 0.001F));
  r.run();
}

TEST(CancellationOfCompiling, from_another_thread) {
  const auto model = model_of(products(60, 128));
  std::stop_source source;
  Options options;
  options.stop = source.get_token();
  std::atomic<bool> compiling = false;
  std::string found;
  std::thread compiler([&] {
    found = error_of(
        [&] {
          for (;;) {  // again and again until the stop comes
            compiling = true;
            const CompiledModel compiled(model, options);
          }
        },
        ErrorCode::canceled);
  });
  while (!compiling) std::this_thread::yield();
  std::this_thread::sleep_for(30ms);
  source.request_stop();
  compiler.join();
  EXPECT_NE(found.find("canceled"), std::string::npos);
}

TEST(CancellationOfCompiling, before_it_begins) {
  std::stop_source source;
  source.request_stop();
  Options options;
  options.stop = source.get_token();
  expect_error([&] { const CompiledModel compiled(model_of(endless()), options); }, ErrorCode::canceled,
               "compiling was canceled");
}

TEST(CancellationOfCompiling, the_deadline_names_its_key) {
  Options options;
  options.limits.compile_seconds = 1e-9;
  expect_error([&] { const CompiledModel compiled(model_of(products(60, 64)), options); },
               ErrorCode::over_limit, "compiling took more than 1e-09 s (LIMIT_COMPILE_SECONDS)");
}

/// A chain of many nodes, as a file.
std::string long_file() {
  OnnxGraph g;
  g.input("v0", ElementType::f32, {"1", "4"});
  for (int i = 0; i < 2000; ++i) g.node("Relu", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  return onnx_model(g.output("v2000"));
}

Model read_bytes(const std::string& file, const ReadOptions& options) {
  return Model::from_memory({.model = bytes_of(file), .name = "test.onnx"}, options);
}

TEST(CancellationOfReading, before_it_begins) {
  std::stop_source source;
  source.request_stop();
  const auto file = long_file();
  expect_error([&] { (void)read_bytes(file, {.stop = source.get_token()}); }, ErrorCode::canceled,
               "test.onnx: reading was canceled");
  EXPECT_EQ(read_bytes(file, {}).outputs().size(), 1U);
}

TEST(CancellationOfReading, from_another_thread) {
  const auto file = long_file();
  std::stop_source source;
  std::atomic<bool> reading = false;
  std::string found;
  std::thread reader([&] {
    found = error_of(
        [&] {
          for (;;) {  // again and again until the stop comes
            reading = true;
            (void)read_bytes(file, {.stop = source.get_token()});
          }
        },
        ErrorCode::canceled);
  });
  while (!reading) std::this_thread::yield();
  std::this_thread::sleep_for(30ms);
  source.request_stop();
  reader.join();
  EXPECT_EQ(found, "test.onnx: reading was canceled");
}

TEST(CancellationOfReading, the_deadline_names_its_key) {
  ReadOptions options;
  options.limits.compile_seconds = 1e-9;
  expect_error([&] { (void)read_bytes(long_file(), options); }, ErrorCode::over_limit,
               "test.onnx: reading took more than 1e-09 s (LIMIT_COMPILE_SECONDS)");
}

/// A model that was read is compiled whatever becomes of the token that it was read with.
TEST(CancellationOfReading, a_stop_afterwards_leaves_compiling_alone) {
  std::stop_source source;
  const auto model = read_bytes(long_file(), {.stop = source.get_token()});
  source.request_stop();
  EXPECT_NO_THROW(CompiledModel(model, {}));
}

/// Inferences of a compiled model are not what Options::stop ends.
TEST(CancellationOfCompiling, a_stop_afterwards_leaves_inferences_alone) {
  std::stop_source source;
  Options options{.streams = 0};
  options.stop = source.get_token();
  const CompiledModel compiled(model_of(sums()), options);
  source.request_stop();
  auto r = compiled.create_request();
  r.set_input(0, rows(3, 1));
  r.set_input(1, rows(3, 2));
  r.run();
  EXPECT_EQ(r.output(1).data<float>()[0], 3);
  EXPECT_NE(error_of([&] { (void)compiled.output_ports({{2, 4}, {2, 4}}); }, ErrorCode::canceled), "");
}

TEST(CancellationOfCompiling, folding_has_a_budget) {
  const auto begin = Clock::now();
  const CompiledModel compiled(model_of(products_of_constants()), {.threads = 2});
  EXPECT_LT(Clock::now() - begin, 120s);
  std::size_t folded = 0;
  for (const auto& f : compiled.fusions())
    if (f.rule == "fold-constants") folded = f.count;
  EXPECT_LT(folded, 20U);
  auto r = compiled.create_request();
  r.set_input(0, Tensor(ElementType::f32, {1, 2048}));
  r.run();
  EXPECT_EQ(r.output(0).data<float>()[0], 0);
}

/// Planning waits while `hold_` is set, from the time on that `armed_` is.
class CancellationOfPlanning : public ::testing::Test {
 protected:
  Options holding() {
    Options options{.streams = 0};
    options.progress = [this](std::string_view, double) {
      if (!armed_) return;
      inside_ = true;
      while (hold_) std::this_thread::sleep_for(1ms);
    };
    return options;
  }
  Request ready() const {
    auto r = compiled_.create_request();
    r.set_input(0, rows(7, 1));
    r.set_input(1, rows(7, 2));
    return r;
  }

  std::atomic<bool> hold_ = true, inside_ = false, armed_ = false;
  const CompiledModel compiled_{model_of(sums()), holding()};
};

/// A thread that waits for a plan which another one makes is stopped, and the other goes on.
TEST_F(CancellationOfPlanning, while_another_thread_plans) {
  auto first = ready(), second = ready(), third = ready();
  armed_ = true;
  std::thread maker([&] { first.run(); });
  while (!inside_) std::this_thread::yield();
  std::thread waiter([&] { (void)error_of([&] { second.run(); }, ErrorCode::canceled); });
  while (second.status() != RequestStatus::running) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  second.cancel();
  waiter.join();
  EXPECT_TRUE(hold_);
  hold_ = false;
  maker.join();
  for (auto* r : {&first, &second, &third}) {
    r->run();
    EXPECT_EQ(r->output(1).data<float>()[0], 3);
  }
}

/// The maker of a plan is canceled: who waits for the same plan makes it.
TEST_F(CancellationOfPlanning, others_make_the_plan_themselves) {
  auto first = ready(), second = ready();
  armed_ = true;
  std::thread maker([&] { (void)error_of([&] { first.run(); }, ErrorCode::canceled); });
  while (!inside_) std::this_thread::yield();
  std::thread waiter([&] { second.run(); });
  while (second.status() != RequestStatus::running) std::this_thread::yield();
  first.cancel();
  hold_ = false;
  maker.join();
  waiter.join();
  EXPECT_EQ(second.output(1).data<float>()[0], 3);
  first.run();
  EXPECT_EQ(first.output(1).data<float>()[0], 3);
}

}  // namespace
}  // namespace lamina
