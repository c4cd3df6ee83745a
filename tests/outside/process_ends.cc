// What ends a process while it uses lamina, each in a process of its own.
#include <pthread.h>

#include <map>
#include <optional>

#include "processes.h"

extern "C" int sleeps_at_end;  // of closed_last.c

namespace processes {
namespace {

// Handles that live as long as the process does.
std::optional<CompiledModel> static_model;
std::vector<Request> static_requests;

constexpr int kWanted = 3, kLate = 4;

void make_static_objects() {
  static_model.emplace(compile());
  for (int i = 0; i < 4; ++i) static_requests.push_back(ready(*static_model, 1));
}

void sleep_a_little(int least = 0) {
  std::this_thread::sleep_for(std::chrono::milliseconds(least + getpid() % 16));
}

/// Any number of rows: each is planned for when it is met.
Network network_of_rows() {
  Writer w;
  const int x = w.parameter("?,64"), weights = w.constant("64,64", std::vector<float>(64 * 64, 0.1F));
  int last = w.layer("MatMul", "transpose_a=\"false\" transpose_b=\"true\"", {x, weights});
  last = w.layer("Tanh", "", {last});
  w.result(w.layer("SoftMax", "axis=\"1\"", {last}));
  return w.done();
}

/// The process ends while shapes are met for the first time, or models are compiled. Not in the moment in
/// which oneDNN does something for the first time: it makes tables then that exit() takes from it
/// (docs/api.md).
void keep_planning(bool models) {
  (void)compile();
  const CompiledModel first(network_of_rows().model(), {.streams = streams});
  for (const int rows : {1, 2, 3, 17, 64, 300}) (void)first({filled({rows, 64}, 1)});
  std::thread([models] {
    for (;;)
      if (models) {
        (void)compile();
      } else {
        const CompiledModel model(network_of_rows().model(), {.streams = streams});
        for (int rows = 1; rows < 500; ++rows) {
          auto r = model.create_request();
          r.set_input(0, filled({rows, 64}, 1));
          r.start();
          r.wait();
        }
      }
  }).detach();
}

/// Threads use what they can while exit() goes on to its very end: nothing that lamina keeps for the process
/// may be gone before that, also where no inference is under way that could pause.
template <class... Uses>
int use_to_the_end(Uses... uses) {
  sleeps_at_end = 1;
  const auto keep = [](const auto& use) {
    use();
    std::thread([use] {
      for (;;) use();
    }).detach();
  };
  (keep(uses), ...);
  sleep_a_little(5);
  return kWanted;
}

void set_options() {
  if (thrown([] { lamina::Options().set("PERFORMANCE_HINT", "LATENCY"); })) _exit(kLate);
}

int using_all() {
  static_model.emplace(compile());
  return use_to_the_end(
      set_options, [] { (void)network_of_rows().model(); }, [] { (void)lamina::properties(); });
}

int setting_options() { return use_to_the_end(set_options); }

/// Threads that nobody joins use static objects in every way while those are destroyed.
void keep_using_static_objects() {
  static CompiledModel model = compile();
  static Request runs = ready(model, 1), starts = ready(model, 2);
  runs.run();  // oneDNN has its tables then
  std::thread([] {
    for (;;) runs.run();
  }).detach();
  std::thread([] {
    for (;;) {
      starts.start();
      starts.wait();
      (void)starts.output(0);
    }
  }).detach();
  std::thread([] {
    for (;;) (void)model({filled({64, 512}, 1)});
  }).detach();
}

/// Destroyed last, when lamina has come to its end.
struct Late {
  ~Late() { std::this_thread::sleep_for(time); }
  std::chrono::milliseconds time{0};
} late;

/// All of them are under way, and a thread has one of its own.
void keep_all_busy() {
  make_static_objects();
  static_requests[0].run();  // oneDNN has its tables then
  for (auto& r : static_requests)
    if (streams > 0) r.start();
  std::thread([] {
    auto own = ready(*static_model, 2);
    for (;;) own.run();
  }).detach();
  std::this_thread::sleep_for(3ms);
}

int exit_in_another_thread() {
  std::thread([] { std::exit(kWanted); }).detach();
  std::this_thread::sleep_for(10s);
  return kLate;
}

int planning(bool models) {
  keep_planning(models);
  sleep_a_little();
  std::exit(kWanted);
}

int idle() {
  make_static_objects();
  return kWanted;
}

int used() {
  make_static_objects();
  static_requests[0].run();
  static_requests[0].start();
  static_requests[0].wait();
  return kWanted;
}

int callback() {
  make_static_objects();
  static_requests[0].set_callback([](std::exception_ptr) { std::exit(kWanted); });
  static_requests[0].start();
  static_requests[0].wait();
  std::this_thread::sleep_for(10s);
  return kLate;
}

/// A wait() that exit() finds does not come back without a result.
int waiting() {
  make_static_objects();
  late.time = std::chrono::milliseconds(50);
  static_requests[0].run();  // oneDNN has its tables then
  std::thread([] {
    for (;;) {
      static_requests[0].start();
      static_requests[0].wait();
      (void)static_requests[0].output(0);
    }
  }).detach();
  sleep_a_little();
  return kWanted;
}

/// In an inference that was started and that nobody waits for.
int inside() {
  static bool armed = false;
  static const CompiledModel model(network_of_rows().model(),
                                   {.streams = streams, .progress = [](std::string_view, double) {
                                      if (armed) std::exit(kWanted);
                                    }});
  static Request request = model.create_request();
  request.set_input(0, filled({3, 64}, 1));
  armed = true;
  request.start();
  std::this_thread::sleep_for(10s);
  return kLate;
}

/// A handler that was registered before lamina was used runs when all streams have paused for good: no
/// request in it may be reported as done.
int late_handler() {
  static Request* request = nullptr;
  std::atexit([] {
    const auto error = thrown([] {
      request->start();
      request->wait();
    });
    if (!error && request->status() != lamina::RequestStatus::done) _exit(kLate);
    (void)thrown([] { request->run(); });
  });
  static_model.emplace(compile());
  request = new Request(ready(*static_model, 1));  // NOLINT: it is there to the end
  request->run();
  return kWanted;
}

int child() {
  keep_all_busy();
  const auto child = fork();
  if (child != 0) return status_of(child) == kWanted ? kWanted : 5;
  static_requests[0].cancel();
  (void)thrown([] { static_requests[0].wait(); });
  static_requests[0].start();
  std::exit(kWanted);
}

/// Handlers of fork() that were registered before lamina's run while lamina's work stands still.
int own_fork_handlers() {
  static int calls = 0;
  constexpr auto use = [] {
    lamina::Options().set("PERFORMANCE_HINT", "LATENCY");
    (void)network_of_rows().model();
    ++calls;
  };
  pthread_atfork(use, use, use);
  const auto model = compile();
  int status = 0;
  const auto fork_here = [&] {
    const int before = calls;
    const auto child = fork();
    if (child == 0) {
      ready(model, 1).run();
      _exit(calls == before + 2 ? 0 : kLate);
    }
    status |= status_of(child);
  };
  std::thread(fork_here).join();  // the first use of lamina in that thread is in the handlers
  fork_here();
  return status == 0 && calls == 4 ? kWanted : kLate;
}

const std::map<std::string, std::function<int()>> ways{
    {"own fork handlers", own_fork_handlers},
    {"idle", idle},
    {"used", used},
    {"callback", callback},
    {"child", child},
    {"inside", inside},
    {"late handler", late_handler},
    {"waiting", waiting},
    {"threads that go on", using_all},
    {"threads that set options", setting_options},
    {"compiling", [] { return planning(true); }},
    {"planning", [] { return planning(false); }},
    {"exit", [] { return keep_all_busy(), std::exit(kWanted), kLate; }},
    {"other thread", [] { return keep_all_busy(), exit_in_another_thread(); }},
    {"end of main", [] { return keep_all_busy(), kWanted; }},
    {"static objects", [] { return keep_using_static_objects(), sleep_a_little(10), kWanted; }},
    {"static objects, other thread",
     [] { return keep_using_static_objects(), sleep_a_little(10), exit_in_another_thread(); }},
};

}  // namespace

std::vector<std::string> ways_to_end() {
  std::vector<std::string> out;
  for (const auto& [way, end] : ways) out.push_back(way);
  for (const auto* again : {"compiling", "planning", "waiting", "static objects"}) out.emplace_back(again);
  return out;
}

int end_by(const std::string& way) { return ways.at(way)(); }

}  // namespace processes
