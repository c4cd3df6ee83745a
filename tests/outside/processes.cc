// What fork, exit, shutdown and signals do to requests, as plugin users meet them: with 1, 2 and 0 streams.
// Run without arguments it starts itself again for what ends a process.
#include <pthread.h>

#include <atomic>
#include <mutex>

#include "processes.h"

namespace processes {
namespace {

/// 0 where the body says true in a child.
int in_child(const std::function<bool()>& body) {
  const auto child = fork();
  if (child == 0) {
    bool good = false;
    try {
      good = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: in the child: %s\n", doing.c_str(), e.what());
    }
    _exit(good ? 0 : 1);
  }
  return status_of(child);
}

bool works(Request& r, float value) {
  r.set_input(0, filled({64, 512}, value));
  r.run();
  bool good = all_are(r.output(0), value);
  r.start();
  r.wait();
  return good && all_are(r.output(0), value);
}

void fork_at_rest() {
  const auto model = compile();
  auto fresh = ready(model, 1), used = ready(model, 2);
  EXPECT(works(used, 2));
  for (int i = 0; i < 2; ++i)
    EXPECT(in_child([&] {
             if (!works(used, 3) || !works(fresh, 4)) return false;
             { const auto gone = std::move(used); }
             auto made_here = ready(model, 5);
             if (!works(made_here, 5)) return false;
             const auto anew = compile();
             auto of_it = ready(anew, 6);
             if (!works(of_it, 6)) return false;
             // The same in a child of the child.
             return in_child([&] { return works(made_here, 7) && works(of_it, 8); }) == 0;
           }) == 0);
  EXPECT(works(used, 9) && works(fresh, 10));
}

void fork_under_way() {
  const auto model = compile();
  std::vector<Request> all;
  std::atomic<int> calls = 0;
  int starts = 0;
  for (int i = 0; i < 5; ++i) {
    all.push_back(ready(model, static_cast<float>(i)));
    all.back().set_callback([&](std::exception_ptr) { ++calls; });
  }
  std::atomic<bool> over = false;
  std::thread beside([&] {
    auto own = ready(model, 11);
    while (!over) own.run();
    EXPECT(all_are(own.output(0), 11));
  });
  std::thread starter([&] {
    auto own = ready(model, 12);
    while (!over) own.start(), own.wait();
    EXPECT(all_are(own.output(0), 12));
  });
  std::thread compiler([&] {
    while (!over) (void)CompiledModel(small_network().model(), {.streams = streams});
  });
  for (int round = 0; round < 3; ++round) {
    for (auto& r : all) r.start(), ++starts;
    const int status = in_child([&] {
      int canceled = 0;
      for (auto& r : all) {
        const auto code = thrown([&] { r.wait(); });
        if (code && *code != ErrorCode::canceled) return false;
        if (code && r.status() != RequestStatus::canceled) return false;
        canceled += code.has_value();
        if (!works(r, 20)) return false;
      }
      if (streams > 0 && canceled == 0) return false;
      all.clear();
      const auto anew = compile();
      auto own = ready(anew, 21);
      return works(own, 21);
    });
    EXPECT(status == 0);
    for (auto& r : all) r.wait();  // the parent does not notice
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT(all_are(all[i].output(0), static_cast<float>(i)));
    EXPECT(calls == starts);
  }
  // Gone in the child without a word.
  for (auto& r : all) r.start();
  EXPECT(in_child([&] {
           all.clear();
           return true;
         }) == 0);
  over = true;
  for (auto* t : {&beside, &starter, &compiler}) t->join();
}

void fork_in_a_callback() {
  const auto model = compile();
  auto r = ready(model, 1), other = ready(model, 2), queued = ready(model, 3);
  int status = -1;
  r.set_callback([&](std::exception_ptr) {
    queued.start();
    status = in_child([&] {
      if (!works(other, 4)) return false;
      (void)thrown([&] { queued.wait(); });
      return works(queued, 5);
    });
  });
  r.start();
  r.wait();
  queued.wait();
  EXPECT(status == 0);
  EXPECT(all_are(queued.output(0), 3));
}

/// By a thread that has nothing to do with lamina, while others use it.
void fork_by_another_thread() {
  const auto model = compile();
  std::atomic<bool> over = false;
  std::thread forker([&] {
    for (int i = 0; i < 5; ++i)
      EXPECT(in_child([&] {
               auto own = ready(model, 3);
               return works(own, 3);
             }) == 0);
    over = true;
  });
  auto r = ready(model, 1);
  for (float value = 0; !over; ++value) EXPECT(works(r, value));
  forker.join();
}

/// A request's first run registers a function for exit(), for which the C library has a lock that a child
/// finds as it was.
void fork_beside_first_runs() {
  const CompiledModel model(small_network().model(), {.streams = streams});
  const auto first_run = [&] {
    auto own = model.create_request();
    for (std::size_t i = 0; i < 2; ++i) own.set_input(i, filled({1, 8}, 1));
    own.run();
    return all_are(own.output(0), 3);
  };
  std::atomic<bool> over = false;
  std::thread beside([&] {
    while (!over) EXPECT(first_run());
  });
  for (int i = 0; i < 30; ++i) EXPECT(in_child(first_run) == 0);
  over = true;
  beside.join();
}

void fork_beside_shutdown() {
  const auto model = compile();
  std::atomic<bool> over = false;
  std::thread closer([&] {
    while (!over) lamina::shutdown();
  });
  auto r = ready(model, 1);
  for (int i = 0; i < 10; ++i) {
    (void)thrown([&] { works(r, 2); });  // what was started may be canceled
    EXPECT(in_child([&] { return works(r, 3); }) == 0);
  }
  over = true;
  closer.join();
}

/// The thread that forks has what another one's callback waits for, which compiling calls time and again.
void fork_beside_a_callback() {
  std::mutex mutex;
  std::atomic<bool> over = false;
  std::atomic<int> waiting = 0;
  lamina::Options options{.streams = streams};
  const auto called = [&] {
    ++waiting;
    const std::lock_guard lock(mutex);
    --waiting;
  };
  options.log = [&](lamina::LogLevel, std::string_view) { called(); };  // not everywhere is there a line
  options.progress = [&](std::string_view, double) { called(); };
  std::thread compiler([&] {
    while (!over) (void)CompiledModel(small_network().model(), options);
  });
  for (int i = 0; i < 5; ++i) {
    const std::lock_guard lock(mutex);
    EXPECT(soon([&] { return waiting > 0; }));
    EXPECT(in_child([] { return true; }) == 0);
  }
  over = true;
  compiler.join();
}

void shutdown_and_reuse() {
  lamina::shutdown();
  const auto before = threads_here().size();
  lamina::shutdown();
  const auto model = compile();
  auto r = ready(model, 1);
  for (int i = 0; i < 4; ++i) {
    EXPECT(works(r, static_cast<float>(i)));
    lamina::shutdown();
    EXPECT(soon([&] { return threads_here().size() == before; }));
  }
  std::vector<Request> all;
  std::atomic<int> calls = 0, canceled = 0;
  for (int i = 0; i < 6; ++i) {
    all.push_back(ready(model, static_cast<float>(i)));
    all.back().set_callback([&](std::exception_ptr error) {
      ++calls;
      canceled += error != nullptr;
    });
    all.back().start();
  }
  lamina::shutdown();
  EXPECT(calls == 6);
  EXPECT(streams == 0 ? canceled == 0 : canceled >= 6 - 2 * streams);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto code = thrown([&] { all[i].wait(); });
    EXPECT(code ? *code == ErrorCode::canceled : all_are(all[i].output(0), static_cast<float>(i)));
  }
  for (auto& one : all) EXPECT(works(one, 30));
  { const auto gone = std::move(all); }
  lamina::shutdown();
  EXPECT(soon([&] { return threads_here().size() == before; }));
}

/// All but the application's threads block what comes from elsewhere, from their first moment on; idle ones
/// too.
void threads_block_signals() {
  lamina::shutdown();
  std::map<int, std::string> mine = threads_here();
  const std::vector<int> asynchronous{SIGINT,  SIGTERM, SIGHUP,  SIGALRM,
                                      SIGUSR1, SIGCHLD, SIGPROF, SIGRTMIN + 3};
  const auto look = [&](const char* when) {
    for (const auto& [id, name] : threads_here()) {
      if (mine.contains(id)) continue;
      const auto text = proc_line("/proc/self/task/" + std::to_string(id) + "/status", "SigBlk:");
      if (text.empty()) continue;
      const auto blocked = std::stoull(text, nullptr, 16);
      for (const int signal : asynchronous)
        if ((blocked >> (signal - 1) & 1) == 0) {
          std::fprintf(stderr, "%s: %s does not block signal %d\n", when, name.c_str(), signal);
          EXPECT(false);
          break;
        }
    }
  };
  const auto compiled = CompiledModel(long_network(20, 512).model(), {.threads = 4, .streams = streams});
  look("compiled");
  auto r = ready(compiled, 1);
  r.run();
  look("run");
  int named = 0;
  for (const auto& [id, name] : threads_here()) named += name.compare(0, 8, "lamina-s") == 0;
  EXPECT(named == 0);  // run() makes none of them
  r.start();
  r.wait();
  look("start");
  for (const auto& [id, name] : threads_here()) named += name.compare(0, 8, "lamina-s") == 0;
  EXPECT(named == streams);
}

void end_of_the_process(const std::string& way) {
  const auto child = fork();
  if (child == 0) {
    const auto n = std::to_string(streams);
    setenv("MALLOC_PERTURB_", "165", 1);  // glibc overwrites what is freed, so that its use is noticed
    execl("/proc/self/exe", "processes", way.c_str(), n.c_str(), nullptr);
    _exit(9);
  }
  EXPECT(status_of(child) == 3);
}

void all() {
  const auto with = [&](const std::string& name) {
    return name + ", " + std::to_string(streams) + " streams";
  };
  attempt(with("fork at rest"), fork_at_rest);
  attempt(with("fork under way"), fork_under_way);
  attempt(with("fork in a callback"), fork_in_a_callback);
  attempt(with("fork by another thread"), fork_by_another_thread);
  attempt(with("fork beside first runs"), fork_beside_first_runs);
  attempt(with("fork beside shutdown"), fork_beside_shutdown);
  attempt(with("fork beside a callback"), fork_beside_a_callback);
  attempt(with("shutdown and reuse"), shutdown_and_reuse);
  attempt(with("threads block signals"), threads_block_signals);
  for (const auto& way : ways_to_end())
    attempt(with("the end of a process: " + way), [&] { end_of_the_process(way); });
}

}  // namespace
}  // namespace processes

int main(int argc, char** argv) {
  if (argc == 3) {
    processes::streams = std::atoi(argv[2]);
    return processes::end_by(argv[1]);
  }
  for (const int n : {1, 2, 0}) {
    processes::streams = n;
    processes::all();
  }
  return ends("processes");
}
