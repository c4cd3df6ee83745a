/// Memory of a process that goes on for months: shapes that change, models that come and go. Each case is a
/// process of its own, in which nothing else has touched memory.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "kernels/generated_code.h"
#include "tests/api/small_models.h"
#include "tests/support/children.h"

namespace lamina {
namespace {

using namespace testing;

/// `make soak` asks for the long forms.
bool soaks() { return std::getenv("LAMINA_SOAK_MINUTES") != nullptr; }

/// Passes over the widths of a real model; fewer for who has less time.
int soak_rounds() {
  const char* const asked = std::getenv("LAMINA_SOAK_ROUNDS");
  return asked != nullptr ? std::atoi(asked) : 100;
}

/// A short form takes seconds, the long ones take minutes on a quiet machine.
constexpr std::chrono::seconds kPatience = std::chrono::hours(2);

/// KiB that only this process has, code that was generated included.
long private_dirty() {
  malloc_trim(0);
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("Private_Dirty:")) return std::stol(line.substr(14));
  return 0;
}

/// The largest level of the last rounds is at most a tenth above that of the first ones, which come after as
/// many that are not looked at. What the allocator and threads touch at some time, and once, is no growth: a
/// few MiB.
bool stays(const std::string& what, int rounds, const std::function<void(int)>& round) {
  constexpr long kOnce = 2048;
  const int tenth = std::max(rounds / 10, 1);
  long first = 0, last = 0;
  for (int i = 0; i < tenth; ++i) round(i);
  for (int i = 0; i < rounds; ++i) {
    round(i);
    if (i >= tenth && i < rounds - tenth) continue;
    auto& level = i < tenth ? first : last;
    level = std::max(level, private_dirty());
  }
  std::printf("%s: %ld KiB at a tenth, %ld KiB in the end\n", what.c_str(), first, last);
  std::fflush(stdout);
  return last <= first + first / 10 + kOnce;
}

void expect_stays(const std::function<bool()>& body) { EXPECT_EQ(0, in_child(body, kPatience)); }

/// A network of `count` convolutions with stages behind them, all different, on images of any width.
IrText any_width(std::size_t count) {
  IrText ir;
  int last = ir.parameter("x", "1,16,8,?");
  std::size_t from = 16;
  for (std::size_t i = 0; i < count; ++i) {
    const auto to = 16 + i, side = i % 2 == 0 ? std::size_t{1} : std::size_t{3};
    const int w = ir.constant(fmt::format("{},{},{},{}", to, from, side, side),
                              std::vector<float>(to * from * side * side, 0.01F));
    last = ir.layer(
        "Convolution", "opset1",
        fmt::format(R"(strides="1,1" dilations="1,1" pads_begin="{0},{0}" pads_end="{0},{0}")", side / 2),
        {{last}, {w}});
    last = ir.layer("HSwish", "opset4", "", {{last}});
    from = to;
  }
  ir.result({last});
  return ir;
}

/// One pass over so many widths.
void run_widths(Request& request, int widths, std::int64_t channels, std::int64_t height) {
  for (int i = 0; i < widths; ++i) {
    Tensor x(ElementType::f32, {1, channels, height, 64 + 8 * i});
    for (auto& v : x.data<float>()) v = 0.5F;
    request.set_input(0, std::move(x));
    request.run();
  }
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SKIP_IN_SANITIZERS GTEST_SKIP() << "sanitizers keep memory that was freed"
#else
#define SKIP_IN_SANITIZERS static_cast<void>(0)
#endif

/// More layers and shapes than oneDNN's own cache has room for, each planned anew again and again.
TEST(Growth, shapes_that_change) {
  SKIP_IN_SANITIZERS;
  expect_stays([] {
    const CompiledModel compiled(model_of(any_width(24)), {.threads = 1, .cached_plans = 1});
    auto request = compiled.create_request();
    return stays("50 widths, 1 plan", 4, [&](int) { run_widths(request, 50, 16, 8); });
  });
}

/// Shapes that never come again: what can never be given back is made of so many, and no more.
TEST(Growth, shapes_that_never_repeat) {
  SKIP_IN_SANITIZERS;
  expect_stays([] {
    // Other tests of this process may have left more.
    const auto before = kept_convolutions();
    keep_most_convolutions(before + 40);
    const CompiledModel compiled(model_of(any_width(6)), {.threads = 1, .cached_plans = 1});
    auto request = compiled.create_request();
    // Widths in an order that grows nowhere, or memory would grow with them.
    constexpr int kWidths = 401, kStep = 163;
    int next = 0;
    const auto run_some = [&](int count) {
      for (int i = 0; i < count; ++i, next = (next + kStep) % kWidths) {
        request.set_input(0, Tensor(ElementType::f32, {1, 16, 8, 8 + next}));
        request.run();
      }
    };
    run_some(kWidths);  // until caches of shapes are full
    const bool good = stays("each width once", 20, [&](int) { run_some(20); });
    return good && kept_convolutions() <= before + 40 + 6;
  });
}

TEST(Growth, shapes_of_a_real_model) {
  SKIP_IN_SANITIZERS;
  if (!soaks()) GTEST_SKIP() << "in make soak";
  const auto path = std::string(LAMINA_DEPS) + "/models/ch_PP-OCRv4_rec_infer.onnx";
  for (const std::size_t plans : {1, 8})
    for (const int threads : {1, 2})
      expect_stays([&] {
        const CompiledModel compiled(Model(path), {.threads = threads, .cached_plans = plans});
        auto request = compiled.create_request();
        return stays(fmt::format("60 widths, {} plans, {} threads", plans, threads), soak_rounds(),
                     [&](int) { run_widths(request, 60, 3, 48); });
      });
}

/// What comes and goes with a model: inferences that end well, are canceled, and models that are none.
void come_and_go(const Model& model, const Options& options, int round) {
  const CompiledModel compiled(model, options);
  std::vector<Request> requests;
  for (int i = 0; i < 2; ++i) {
    requests.push_back(compiled.create_request());
    requests.back().set_input(0, Tensor(ElementType::f32, {1, 16, 8, 16}));
    requests.back().start();
  }
  if (round % 3 == 0) requests[1].cancel();
  try {
    for (auto& r : requests) r.wait();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::canceled);
  }
  expect_error([] { Model::from_memory({.model = bytes_of("<net")}); }, ErrorCode::bad_file, "");
}

/// Threads that take the processors from others while it lives.
class BusyMachine {
 public:
  BusyMachine() {
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
      threads_.emplace_back([this] {
        while (!over_) continue;
      });
  }
  ~BusyMachine() {
    over_ = true;
    for (auto& t : threads_) t.join();
  }
  BusyMachine(const BusyMachine&) = delete;
  BusyMachine& operator=(const BusyMachine&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

TEST(Growth, models_come_and_go) {
  SKIP_IN_SANITIZERS;
  const int some = soaks() ? 500 : 20;  // loads of a round
  for (const int threads : {1, 2, 4})
    for (const bool busy : {false, true}) {
      if (busy && !soaks() && threads != 2) continue;
      const int each = busy ? 2 * some : some;
      expect_stays([&] {
        std::optional<BusyMachine> machine;
        if (busy) machine.emplace();
        const auto model = model_of(any_width(4));
        return stays(fmt::format("{} loads, {} threads{}", 20 * each, threads, busy ? ", busy" : ""), 20,
                     [&](int round) {
                       for (int i = 0; i < each; ++i)
                         come_and_go(model, {.threads = threads, .streams = i % 3}, round * each + i);
                     });
      });
    }
}

TEST(Growth, models_are_compiled_at_once) {
  SKIP_IN_SANITIZERS;
  const int each = soaks() ? 100 : 10;
  expect_stays([&] {
    const auto model = model_of(any_width(4));
    return stays("compiled in 4 threads", 20, [&](int round) {
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
          for (int i = 0; i < each; ++i) come_and_go(model, {.threads = 2, .streams = 1}, round + i);
        });
      for (auto& t : threads) t.join();
    });
  });
}

/// Each model has two threads, and there are more of them than the machine has.
TEST(Growth, models_run_beside_each_other) {
  SKIP_IN_SANITIZERS;
  const int each = soaks() ? 20000 : 500;
  expect_stays([&] {
    std::vector<CompiledModel> models;
    std::vector<Request> requests;
    for (int i = 0; i < 6; ++i) {
      models.emplace_back(model_of(any_width(4)), Options{.threads = 2, .streams = 1});
      requests.push_back(models.back().create_request());
      requests.back().set_input(0, Tensor(ElementType::f32, {1, 16, 8, 64}));
    }
    return stays("6 models at once", 20, [&](int) {
      std::vector<std::thread> threads;
      for (auto& r : requests)
        threads.emplace_back([&] {
          for (int i = 0; i < each; ++i) r.run();
        });
      for (auto& t : threads) t.join();
    });
  });
}

}  // namespace
}  // namespace lamina
