/// What a run may not do once its shapes are known: allocate memory, take a mutex.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cfenv>
#include <thread>

#include "extension/extensions.h"
#include "tests/support/allocations.h"
#include "tests/support/run_graph.h"

namespace {
constexpr bool kCounts = lamina::testing::allocations::kAll;  // their own allocator stands in the way
std::atomic<bool> counting{false};
std::atomic<std::size_t> locks{0};
thread_local bool own_thread = false;
}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Function = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (own_thread && counting.load(std::memory_order_relaxed)) ++locks;
  return real(mutex);
}
#endif

namespace lamina::testing {
namespace {

struct Counts {
  std::size_t allocations, locks;
  std::vector<std::string> labels;
  bool all_native() const {
    return std::all_of(labels.begin(), labels.end(),
                       [](const std::string& l) { return l.starts_with("native") || l == "copy"; });
  }
};

/// Counts of one run after many others. `any_kernels`: as in ProgramOptions.
Counts counts_of(const Graph& g, int threads, std::uint64_t any_kernels = 0, bool timed = false) {
  ProgramOptions options;
  options.threads = threads;
  options.any_kernels = any_kernels;
  Runner runner(std::make_shared<Program>(g, options, std::make_shared<ModelWeights>()));
  runner.profile(timed);
  const auto inputs = random_inputs(g, 1);
  for (std::size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
  for (int i = 0; i < 200; ++i) runner.run();
  allocations::forget_counted();
  locks = 0;
  allocations::count(true);
  own_thread = counting = true;
  for (int i = 0; i < 10; ++i) runner.run();
  own_thread = counting = false;
  allocations::count(false);
  Counts c{allocations::counted() / 10, locks / 10, {}};
  for (const auto& plan : runner.plans())
    for (const auto& step : plan->steps) c.labels.push_back(step.label);
  return c;
}

Counts counts_of(const std::string& text, int threads, std::uint64_t any_kernels = 0) {
  return counts_of(parse(text), threads, any_kernels);
}

const char* const kNative[] = {
    "graph (x: f32[4,33,64]) -> (y) {\n p = const i64[3] {1,0,2}\n t = Transpose(x, p)\n y = Concat(t, t) "
    "axis=1\n}\n",
    "graph (x: f32[128,65], i: i64[7]) -> (y) {\n a = const i64[] {0}\n y = Gather(x, i, a)\n}\n",
    "graph (x: f32[4,128,65]) -> (y) {\n b = const i64[3] {0,1,0}\n e = const i64[3] {4,100,65}\n s = const "
    "i64[3] {1,1,1}\n y = Slice(x, b, e, s)\n}\n",
};

TEST(SteadyState, timed_runs_allocate_nothing_and_take_no_mutex) {
  if (!kCounts) GTEST_SKIP() << "not under sanitizers";
  for (const std::string text : kNative) {
    const auto c = counts_of(parse(text), 1, 0, true);
    ASSERT_TRUE(c.all_native());
    EXPECT_EQ(c.allocations, 0u);
    EXPECT_EQ(c.locks, 0u);
  }
}

TEST(SteadyState, native_steps_allocate_nothing_and_take_no_mutex) {
  if (!kCounts) GTEST_SKIP() << "not under sanitizers";
  for (const std::string text : kNative)
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} threads\n{}", threads, text));
      const auto c = counts_of(text, threads);
      EXPECT_TRUE(c.all_native()) << fmt::format("{}", fmt::join(c.labels, " "));
      EXPECT_EQ(c.allocations, 0u);
      EXPECT_EQ(c.locks, 0u);
    }
}

/// Products whose weights come at run time, or that are transposed.
TEST(SteadyState, products_of_integers_allocate_nothing_and_take_no_mutex) {
  if (!kCounts) GTEST_SKIP() << "not under sanitizers";
  for (const std::string text :
       {"graph (x: u8[1,16,40,40], w: i8[24,16,3,3]) -> (y) {\n z = const u8[] {9}\n y = Convolution(x, w, "
        "_, z) "
        "pads_begin=[1,1] pads_end=[1,1]\n}\n",
        "graph (x: u8[1,16,20,20]) -> (y) {\n w = const i8[16,24,4,4] seed(1)\n z = const u8[] {9}\n y = "
        "ConvolutionBackpropData(x, w, _, _, z) strides=[2,2]\n}\n",
        "graph (x: u8[1,33,40,40]) -> (y) {\n w = const i8[33,1,3,3] seed(1)\n z = const u8[] {9}\n y = "
        "ConvolutionBackpropData(x, w, _, _, z) strides=[2,2] groups=33\n}\n"})
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} threads\n{}", threads, text));
      const auto c = counts_of(text, threads);
      EXPECT_TRUE(std::any_of(c.labels.begin(), c.labels.end(), [](const auto& l) {
        return l.starts_with("native") && l.ends_with("int8");
      })) << fmt::format("{}", fmt::join(c.labels, " "));
      EXPECT_EQ(c.allocations, 0u);
      EXPECT_EQ(c.locks, 0u);
    }
}

/// A library with test.steady.Copy, whose loop is the engine's.
int copies(const lamina_host* given, lamina_registrar* registrar) {
  static const lamina_host* host;
  host = given;
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "test.steady";
  op.type = "Copy";
  op.in = op.out = &port;
  op.inputs = op.outputs = 1;
  op.scratch_bytes = [](const lamina_node*, std::size_t* bytes) {
    return *bytes = 100, lamina_status{LAMINA_OK};
  };
  op.run = [](const lamina_call* call) {
    return host->parallel_for(
        call->context, static_cast<std::int64_t>(call->in[0]->elements), 16,
        [](void* data, std::int64_t begin, std::int64_t end, std::int32_t) {
          const auto& c = *static_cast<const lamina_call*>(data);
          for (auto i = begin; i < end; ++i)
            static_cast<float*>(c.out[0]->data)[i] = static_cast<const float*>(c.in[0]->data)[i];
        },
        const_cast<lamina_call*>(call));
  };
  return host->add_operation(registrar, &op);
}

TEST(SteadyState, a_layer_of_a_library) {
  if (!kCounts) GTEST_SKIP() << "not under sanitizers";
  add_linked_extension("test-steady", copies);
  const auto registry = ExtensionSet({"test-steady"}).registry();
  const std::string text =
      "graph (x: f32[4,64,65]) -> (z) {\n  y: f32[4,64,65] = test.steady.Copy(x)\n  z: f32[4,64,65] = "
      "test.steady.Copy(y) @\"second\"\n}\n";
  const auto g = parse_graph(text, registry);
  EXPECT_EQ(print_graph(g).text, text);
  for (const int threads : {1, 2}) {
    const auto c = counts_of(g, threads);
    EXPECT_EQ(c.labels, (std::vector<std::string>{"test-steady:plain", "test-steady:plain"}));
    EXPECT_EQ(c.allocations, 0u);
    EXPECT_EQ(c.locks, 0u);
  }
}

TEST(SteadyState, a_convolution_and_a_depthwise_one_as_one_step) {
  if (!kCounts) GTEST_SKIP() << "not under sanitizers";
  const std::string text =
      "graph (x: f32[1,16,112,112]) -> (y) {\n v = const f32[96,1,3,3] seed(1)\n y = ConvolutionDepthwise(x, "
      "v) "
      "strides=[2,2] pads_begin=[1,1] pads_end=[1,1] {\n body graph (r: f32[1,96,56,56]) -> (r) {\n }\n body "
      "graph (x: f32[1,16,112,112]) -> (t) {\n w = const f32[96,16,1,1] seed(2)\n t = Convolution(x, w)\n "
      "}\n "
      "}\n}\n";
  for (const int threads : {1, 2}) {
    const auto fused = [](const Counts& c) {
      return std::any_of(c.labels.begin(), c.labels.end(),
                         [](const auto& l) { return l.starts_with("native_1x1_depthwise"); });
    };
    auto c = counts_of(text, threads);
    for (std::uint64_t seed = 1; !fused(c) && seed <= 50; ++seed) c = counts_of(text, threads, seed);
    ASSERT_TRUE(fused(c)) << "no costs choose one step";
    EXPECT_EQ(c.allocations, 0u);
    EXPECT_EQ(c.locks, 0u);
  }
}

/// Sums of a binary convolution that become booleans, behind stages and by themselves.
TEST(SteadyState, binary_convolutions) {
  if (!kCounts) GTEST_SKIP() << "not under sanitizers";
  const std::string text =
      "graph (x: f32[1,40,30,30]) -> (y) {\n u = const u1[50,40,3,3] seed(1)\n v = const u1[50,1,3,3] "
      "seed(2)\n"
      " w = const u1[70,50,1,1] seed(3)\n a = BinaryConvolution(x, u) {\n body graph (a: f32[1,50,28,28]) -> "
      "(r) {\n m = const f32[50,1,1] seed(4)\n t = Sigmoid(a)\n r = Greater(m, t)\n }\n }\n b = "
      "BinaryConvolution(a, v) groups=50 {\n body graph (a: f32[1,50,26,26]) -> (r) {\n m = const "
      "f32[50,1,1] "
      "seed(5)\n t = Abs(a)\n r = Greater(t, m)\n }\n }\n c = BinaryConvolution(b, w) {\n body graph (a: "
      "f32[1,70,26,26]) -> (r) {\n m = const f32[] {3}\n r = Greater(a, m)\n }\n }\n z = const u1[9,70,1,1] "
      "seed(6)\n y = BinaryConvolution(c, z)\n}\n";
  for (const int threads : {1, 2}) {
    const auto c = counts_of(text, threads);
    SCOPED_TRACE(fmt::format("{} threads: {}", threads, fmt::join(c.labels, " ")));
    EXPECT_EQ(c.allocations, 0u);
    EXPECT_EQ(c.locks, 0u);
  }
}

/// What oneDNN itself allocates per call is shown, and bounded so that ours would be seen.
TEST(SteadyState, onednn_steps_allocate_what_onednn_allocates) {
  if (!kCounts) GTEST_SKIP() << "not under sanitizers";
  const auto c = counts_of(
      "graph (x: f32[1,32,28,28]) -> (y) {\n w = const f32[48,32,3,3] seed(1)\n c = Convolution(x, w) "
      "pads_begin=[1,1] pads_end=[1,1]\n y = MaxPool(c) kernel=[2,2] strides=[2,2]\n}\n",
      2);
  RecordProperty("allocations", static_cast<int>(c.allocations));
  fmt::print("{} allocations in the steps {}\n", c.allocations, fmt::join(c.labels, ", "));
  EXPECT_LE(c.allocations, 12 * c.labels.size());
}

TEST(SteadyState, variables_of_the_same_size) {
  if (!kCounts) GTEST_SKIP() << "not under sanitizers";
  const std::string text =
      "graph (x: f32[4,33,64]) -> (y) {\n z = const f32[4,33,64] seed(1)\n v = ReadValue(z) "
      "variable_id=\"v\"\n y = Concat(v, x) axis=1\n a = Assign(x) variable_id=\"v\"\n}\n";
  for (const int threads : {1, 2}) {
    const auto c = counts_of(text, threads);
    EXPECT_EQ(c.allocations, 0u);
    EXPECT_EQ(c.locks, 0u);
  }
}

/// Steps are bound to the other request's inputs and results each time.
TEST(SteadyState, requests_in_turn_on_one_stream) {
  if (!kCounts) GTEST_SKIP() << "not under sanitizers";
  for (const std::string text : kNative)
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} threads\n{}", threads, text));
      const auto g = parse(text);
      ProgramOptions options;
      options.threads = threads;
      const auto program = std::make_shared<Program>(g, options, std::make_shared<ModelWeights>());
      Stream stream(StreamPlace{}, threads, Binding::none);
      Runner runners[] = {Runner(program), Runner(program)};
      const auto run_both = [&] {
        for (auto& r : runners) r.run(stream);
      };
      for (std::uint64_t r = 0; r < 2; ++r) {
        const auto inputs = random_inputs(g, r);
        for (std::size_t i = 0; i < inputs.size(); ++i) runners[r].set_input(i, inputs[i]);
      }
      for (int i = 0; i < 200; ++i) run_both();
      allocations::forget_counted();
      locks = 0;
      allocations::count(true);
      own_thread = counting = true;
      for (int i = 0; i < 10; ++i) run_both();
      own_thread = counting = false;
      allocations::count(false);
      EXPECT_EQ(allocations::counted(), 0u);
      EXPECT_EQ(locks, 0u);
      for (auto& r : runners) expect_close(r.output(0), interpret(g, r.inputs())[0], "y");
    }
}

TEST(SteadyState, the_callers_floating_point_state_stays) {
  const auto g = parse(
      "graph (x: f32[1,8,9,9]) -> (y) {\n w = const f32[8,8,3,3] seed(1)\n c = Convolution(x, w)\n y = "
      "Tanh(c)\n}\n");
  const auto in = random_inputs(g, 1);
  const auto wanted = run_graph(g, in).outputs[0];
  std::fesetround(FE_UPWARD);
  const auto before = __builtin_ia32_stmxcsr() & ~0x3fu;  // flags aside
  const auto got = run_graph(g, in).outputs[0];
  const auto after = __builtin_ia32_stmxcsr() & ~0x3fu;
  const int mode = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(mode, FE_UPWARD);
  EXPECT_EQ(before, after);
  expect_close(got, wanted, "y");
}

TEST(SteadyState, the_callers_affinity_stays) {
  cpu_set_t before, after;
  ASSERT_EQ(pthread_getaffinity_np(pthread_self(), sizeof(before), &before), 0);
  counts_of(kNative[0], 2);
  ASSERT_EQ(pthread_getaffinity_np(pthread_self(), sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

/// Processor time that all threads use after the last inference; on a machine that others keep busy helpers
/// may be late to lie down.
TEST(SteadyState, nobody_spins_after_the_last_inference) {
  double used = 50;
  for (int attempt = 0; attempt < 5 && used >= 10; ++attempt) {
    counts_of(kNative[0], 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto before = std::clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    used = 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  }
  EXPECT_LT(used, 10) << "milliseconds of 50";
}

}  // namespace
}  // namespace lamina::testing
