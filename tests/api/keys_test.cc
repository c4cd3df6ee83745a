/// What keys do, as it can be seen from outside.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/cpu.h"
#include "base/topology.h"
#include "tests/api/small_models.h"

namespace lamina::keys_test {
namespace {

using namespace testing;
using namespace std::chrono_literals;

Request ready(const CompiledModel& compiled) {
  auto request = compiled.create_request();
  request.set_input(0, square(512, 0));
  return request;
}

int processors() { return static_cast<int>(read_topology().cpus.size()); }

/// Name and mask of each thread of the process.
std::map<int, std::pair<std::string, std::string>> threads() {
  std::map<int, std::pair<std::string, std::string>> out;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "status");
    std::string line, name, mask;
    while (std::getline(in, line)) {
      if (line.starts_with("Name:\t")) name = line.substr(6);
      if (line.starts_with("Cpus_allowed_list:\t")) mask = line.substr(19);
    }
    if (!name.empty()) out[std::stoi(task.path().filename())] = {name, mask};
  }
  return out;
}

/// Masks that other threads than this one were seen with while it runs.
std::map<int, std::string> masks_while_running(Request& request) {
  std::map<int, std::string> narrowest;
  std::atomic<bool> over = false;
  int watcher_id = 0;
  const int own = static_cast<int>(getpid());
  std::thread watcher([&] {
    watcher_id = gettid();
    while (!over)
      for (const auto& [id, thread] : threads()) {
        auto& seen = narrowest[id];
        if (seen.empty() || cpu_list(thread.second).size() < cpu_list(seen).size()) seen = thread.second;
      }
  });
  for (int i = 0; i < 10; ++i) request.run();
  over = true;
  watcher.join();
  narrowest.erase(watcher_id);
  narrowest.erase(own);
  return narrowest;
}

TEST(Keys, threads_are_bound_while_they_work_and_the_callers_never_is) {
  if (processors() < 2) GTEST_SKIP() << "one processor";
  const auto before = affinity_here();
  shutdown();  // helpers of other tests
  const CompiledModel compiled(model_of(products(30, 512)), {.binding = Binding::processors});
  ASSERT_EQ(compiled.property("CPU_BIND_THREAD"), "YES");
  auto request = ready(compiled);
  request.run();
  int bound = 0;
  for (const auto& [id, mask] : masks_while_running(request)) bound += cpu_list(mask).size() == 1;
  EXPECT_EQ(bound, compiled.threads() - 1);
  EXPECT_EQ(affinity_here(), before);
  request.start();
  request.wait();
  for (const auto& [id, thread] : threads()) {
    if (thread.first != "lamina-s0") continue;
    EXPECT_EQ(cpu_list(thread.second).size(), 1u);
  }
}

TEST(Keys, threads_are_not_bound_when_asked_not_to) {
  shutdown();
  const CompiledModel compiled(model_of(products(20, 512)), {.binding = Binding::none});
  auto request = ready(compiled);
  request.start();
  request.wait();
  for (const auto& [id, mask] : masks_while_running(request))
    EXPECT_EQ(cpu_list(mask), affinity_here()) << id;
}

TEST(Keys, streams_have_threads_of_their_own) {
  for (const int streams : {1, 2, 3}) {
    shutdown();
    const CompiledModel compiled(model_of(sums()), {.streams = streams});
    EXPECT_EQ(compiled.streams(), streams);
    auto request = compiled.create_request();
    request.set_input(0, rows(2, 1));
    request.set_input(1, rows(2, 1));
    request.start();
    request.wait();
    const auto named = [] {
      int count = 0;
      for (const auto& [id, thread] : threads()) count += thread.first.starts_with("lamina-s");
      return count;
    };
    // A thread that was joined may be listed for a moment.
    for (int i = 0; i < 10000 && named() != streams; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(named(), streams);
  }
}

TEST(Keys, one_thread_and_no_streams_make_no_thread) {
  shutdown();
  const auto before = threads().size();
  Options options;
  options.set("CPU_THROUGHPUT_STREAMS", "0");
  options.set("CPU_THREADS_NUM", "1");
  options.set("CPU_BIND_THREAD", "NO");
  const CompiledModel compiled(model_of(products(3, 512)), options);
  auto request = ready(compiled);
  request.run();
  request.start();
  request.wait();
  CompiledModel(model_of(scaled_products(1024)), options);
  EXPECT_LE(threads().size(), before);  // threads that shutdown() has ended may have been counted before
  EXPECT_EQ(compiled.streams(), 0);
  EXPECT_EQ(compiled.threads(), 1);
}

/// Started requests of exclusive models run one after another, in the order of their starts.
TEST(Keys, exclusive_requests_of_several_models) {
  for (const bool exclusive : {true, false}) {
    Options options{.threads = 1, .exclusive = exclusive};
    const CompiledModel one(model_of(products(20, 512)), options), two(model_of(products(20, 512)), options);
    std::mutex mutex;
    std::vector<int> order;
    std::vector<Request> requests;
    for (int i = 0; i < 6; ++i) {
      requests.push_back(ready(i % 2 == 0 ? one : two));
      requests.back().set_callback([&, i](const std::exception_ptr&) {
        const std::lock_guard lock(mutex);
        order.push_back(i);
      });
    }
    for (auto& r : requests) r.start();
    int most = 0;
    for (bool over = false; !over;) {
      int running = 0;
      over = true;
      for (auto& r : requests) {
        const auto s = r.status();
        running += s == RequestStatus::running;
        over = over && s == RequestStatus::done;
      }
      most = std::max(most, running);
    }
    for (auto& r : requests) r.wait();
    if (exclusive) {
      EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
      EXPECT_LE(most, 2);  // one, and one whose callback is about to return
    } else {
      EXPECT_GE(most, 2);
    }
  }
}

TEST(Keys, spellings_are_read_back_in_one_way) {
  const struct {
    const char *key, *value, *asked;
  } rows[] = {{"KEY_PERF_COUNT", "yes", "YES"},
              {"PERF_COUNT", "off", "NO"},
              {"KEY_CPU_THROUGHPUT_STREAMS", "CPU_THROUGHPUT_AUTO", "AUTO"},
              {"CPU_THROUGHPUT_STREAMS", "KEY_CPU_THROUGHPUT_NUMA", "NUMA"},
              {"NUM_STREAMS", "3", "3"},
              {"CPU_THREADS_NUM", "auto", "0"},
              {"CPU_BIND_THREAD", "numa", "NUMA"},
              {"AFFINITY", "HYBRID_AWARE", "CORE"},
              {"ENABLE_CPU_PINNING", "false", "NO"},
              {"INFERENCE_PRECISION_HINT", "Dynamic", "model"},
              {"INFERENCE_PRECISION_HINT", "BF16", "bf16"},
              {"EXECUTION_MODE_HINT", "accuracy", "ACCURACY"},
              {"PERFORMANCE_HINT", "Throughput", "THROUGHPUT"},
              {"SCHEDULING_CORE_TYPE", "pcore_only", "PCORE_ONLY"},
              {"MAX_ISA", "AVX2", "avx2"}};
  for (const auto& row : rows) {
    Options o;
    o.set(row.key, row.value);
    std::string bare = row.key;
    if (bare.starts_with("KEY_")) bare.erase(0, 4);
    bool found = false;
    for (const auto& p : properties(o)) {
      if (p.key != bare) continue;
      EXPECT_EQ(p.asked, row.asked) << row.key;
      found = true;
    }
    EXPECT_TRUE(found) << row.key;
  }
}

TEST(Keys, refused_words_and_keys) {
  Options o;
  for (const char* value : {"2x", "+2", " 2", "2.0", "-1", "1025", ""})
    expect_error([&] { o.set("CPU_THREADS_NUM", value); }, ErrorCode::bad_option,
                 fmt::format("CPU_THREADS_NUM: \"{}\", wanted 0 to 1024, AUTO", value));
  expect_error([&] { o.set("NUM_STREAMS", "-1"); }, ErrorCode::bad_option,
               "NUM_STREAMS: \"-1\", wanted 0 to 1024");
  expect_error([&] { o.set("CPU_THREAD_NUM", "1"); }, ErrorCode::bad_option,
               "option \"CPU_THREAD_NUM\" is not known, did you mean \"CPU_THREADS_NUM\"?");
  expect_error([&] { o.set("LOADED_FROM_CACHE", "YES"); }, ErrorCode::bad_option,
               "LOADED_FROM_CACHE is read-only");
}

TEST(Keys, two_names_are_one_setting) {
  Options o;
  o.set("NUM_STREAMS", "2");
  o.set("CPU_THROUGHPUT_STREAMS", "3");
  for (const auto& p : properties(o))
    if (p.key == "NUM_STREAMS" || p.key == "CPU_THROUGHPUT_STREAMS") {
      EXPECT_EQ(p.asked, "3") << p.key;
      EXPECT_EQ(p.value, "3") << p.key;
    }
}

/// Why a process that is limited to AVX2, or to less, has no bf16.
std::string no_bf16() {
  return fmt::format("{} has no bf16 instructions", name_of(std::min(Isa::avx2, effective_isa())));
}

TEST(Keys, precision_is_what_the_first_key_says) {
  const auto used = [](std::initializer_list<std::pair<const char*, const char*>> keys) {
    Options o;
    o.max_isa = "avx2";
    for (const auto& [key, value] : keys) o.set(key, value);
    for (const auto& p : properties(o))
      if (p.key == "INFERENCE_PRECISION_HINT") return p.value + ": " + p.reason;
    return std::string();
  };
  EXPECT_EQ(used({}), "model: ");
  EXPECT_EQ(used({{"ENFORCE_BF16", "YES"}}), "model: " + no_bf16());
  EXPECT_EQ(used({{"ENFORCE_BF16", "YES"}, {"INFERENCE_PRECISION_HINT", "model"}}), "model: ");
  EXPECT_EQ(used({{"ENFORCE_BF16", "NO"}, {"EXECUTION_MODE_HINT", "PERFORMANCE"}}),
            "model: ENFORCE_BF16 decides");
  EXPECT_EQ(used({{"EXECUTION_MODE_HINT", "PERFORMANCE"}}), "model: " + no_bf16());
  EXPECT_EQ(used({{"INFERENCE_PRECISION_HINT", "f16"}}), "model: f16 is computed in f32");
}

TEST(Keys, enforce_bf16_says_why_it_is_not_as_asked) {
  const auto used = [](std::initializer_list<std::pair<const char*, const char*>> keys) {
    Options o;
    o.max_isa = "avx2";
    for (const auto& [key, value] : keys) o.set(key, value);
    for (const auto& p : properties(o))
      if (p.key == "ENFORCE_BF16") return p.value + ": " + p.reason;
    return std::string();
  };
  EXPECT_EQ(used({}), "NO: documented default YES; bf16 changes results: ask for it");
  EXPECT_EQ(used({{"ENFORCE_BF16", "NO"}}), "NO: ");
  EXPECT_EQ(used({{"ENFORCE_BF16", "YES"}}), "NO: " + no_bf16());
  EXPECT_EQ(used({{"ENFORCE_BF16", "YES"}, {"INFERENCE_PRECISION_HINT", "f32"}}),
            "NO: INFERENCE_PRECISION_HINT decides");
  EXPECT_EQ(used({{"EXECUTION_MODE_HINT", "PERFORMANCE"}}), "NO: " + no_bf16());
}

TEST(Keys, a_difference_is_said_once) {
  std::vector<std::string> lines;
  Options o;
  o.threads = 1024;
  o.log = [&](LogLevel, std::string_view line) {
    if (line.starts_with("CPU_THREADS_NUM")) lines.emplace_back(line);
  };
  const CompiledModel compiled(model_of(sums()), o);
  EXPECT_EQ(lines.size(), compiled.property("CPU_THREADS_NUM") == "1024" ? 0u : 1u);
}

TEST(Keys, properties_of_a_compiled_model) {
  const CompiledModel compiled(model_of(sums()), {.streams = 2});
  EXPECT_EQ(compiled.property("NUM_STREAMS"), "2");
  EXPECT_EQ(compiled.property("KEY_OPTIMAL_NUMBER_OF_INFER_REQUESTS"), "2");
  EXPECT_EQ(compiled.property("EXECUTION_DEVICES"), "CPU");
  EXPECT_EQ(compiled.property("LOADED_FROM_CACHE"), "NO");
  expect_error([&] { (void)compiled.property("NUM_STREAM"); }, ErrorCode::bad_option,
               "did you mean \"NUM_STREAMS\"?");
  for (const auto& p : properties()) EXPECT_NE(p.key, "NETWORK_NAME");
}

TEST(Keys, limits_are_numbers_sizes_and_names) {
  Options o;
  const std::pair<const char*, std::uint64_t> sizes[] = {
      {"1", 1},
      {"64k", 65536},
      {"2G", 2147483648u},
      {"2GiB", 2147483648u},
      {"2gib", 2147483648u},
      {"1.5GB", 1500000000u},
      {"1500 MB", 1500000000u},
      {"1T", std::uint64_t{1} << 40},
      {"auto", 0},
  };
  for (const auto& [text, bytes] : sizes) {
    o.set("LIMIT_MEMORY", text);
    EXPECT_EQ(o.limits.memory, bytes) << text;
  }
  for (const auto* bad : {"", "0", "-1", "x", "2X", "2GG", "G", "1e3", "99999999T"})
    EXPECT_THROW(o.set("LIMIT_MEMORY", bad), Error) << bad;
  o.set("LIMIT_NODES", "7");
  o.set("LIMIT_RUN_SECONDS", "0.5");
  o.set("ALLOWED_OPERATORS", "Conv,com.microsoft:QGemm");
  o.set("EXTERNAL_FILES", "NONE");
  EXPECT_EQ(o.limits.nodes, 7u);
  EXPECT_EQ(o.limits.run_seconds, 0.5);
  EXPECT_EQ(o.limits.allowed_operators, (std::vector<std::string>{"Conv", "com.microsoft:QGemm"}));
  EXPECT_EQ(o.limits.external_files, ExternalFiles::none);
  for (const auto* key : {"LIMIT_ELEMENTS", "LIMIT_NODES", "LIMIT_OUTPUTS", "LIMIT_LOOP_ITERATIONS",
                          "LIMIT_COMPILE_SECONDS", "LIMIT_RUN_SECONDS", "EXTERNAL_FILES"})
    for (const auto* bad : {"", "0", "-1", "x", "nan"}) EXPECT_THROW(o.set(key, bad), Error) << key << bad;
}

TEST(Keys, the_tighter_limit_holds_and_says_so) {
  const auto ir = sums();
  const auto text = ir.text();
  const auto model = Model::from_memory({.model = bytes_of(text), .weights = bytes_of(ir.bin)},
                                        {.limits = {.nodes = 77, .outputs = 50}});
  const CompiledModel compiled(model, {.limits = {.nodes = 99, .outputs = 20}});
  EXPECT_EQ(compiled.property("LIMIT_NODES"), "77");
  EXPECT_EQ(compiled.property("LIMIT_OUTPUTS"), "20");
  for (const auto& p : compiled.properties())
    if (p.key == "LIMIT_NODES") {
      EXPECT_EQ(p.asked, "99");
      EXPECT_EQ(p.reason, "the model was read with this limit");
    }
  EXPECT_THROW(CompiledModel(model, {.limits = {.nodes = 0}}), Error);
  EXPECT_THROW(CompiledModel(model, {.limits = {.run_seconds = -1}}), Error);
  EXPECT_THROW(Model("no/such/model.onnx", {.limits = {.elements = 0}}), Error);
}

}  // namespace
}  // namespace lamina::keys_test
