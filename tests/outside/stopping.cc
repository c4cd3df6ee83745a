// What never ends by itself is stopped in the midst: a Loop without end, by cancel, destructors, shutdown,
// exit and fork; with 0, 1 and 2 streams. Run without arguments it starts itself again for what ends a
// process.
#include "common.h"

namespace {

using lamina::CompiledModel;
using lamina::Request;

int streams = 0;
constexpr int kWanted = 3;
constexpr auto kSoon = 20s;  // what is not stopped takes for ever

CompiledModel compile() { return CompiledModel(endless_model(), {.streams = streams}); }

void set(Request& r, float value, bool go) {
  r.set_input(0, filled({1, 4}, value));
  r.set_input(1, lamina::Tensor::scalar<bool>(go));
}

Request endless(const CompiledModel& model) {
  auto r = model.create_request();
  set(r, 1, true);
  return r;
}

bool works(Request& r, float value) {
  set(r, value, false);
  r.run();
  return all_are(r.output(0), value);
}

/// Another thread is in run() of a request of its own, that it does not get out of.
class InRun {
 public:
  explicit InRun(const CompiledModel& model) : request_(endless(model)) {
    thread_ = std::thread([this] { code_ = thrown([&] { request_.run(); }); });
    EXPECT(soon([&] { return request_.status() == RequestStatus::running; }));
    std::this_thread::sleep_for(5ms);
  }
  Request& request() { return request_; }
  std::optional<ErrorCode> end() {
    thread_.join();
    return code_;
  }

 private:
  Request request_;
  std::thread thread_;
  std::optional<ErrorCode> code_;
};

void cancel() {
  const auto model = compile();
  for (int i = 0; i < 3; ++i) {
    InRun other(model);
    other.request().cancel();
    EXPECT(other.end() == ErrorCode::canceled);
    EXPECT(works(other.request(), 5));
  }
  if (streams == 0) return;
  auto r = endless(model);
  std::atomic<int> calls = 0;
  r.set_callback([&](std::exception_ptr error) { calls += error ? 1 : 100; });
  r.start();
  EXPECT(!r.wait_for(20ms));
  EXPECT(r.status() == RequestStatus::running);
  r.cancel();
  EXPECT(thrown([&] { r.wait(); }) == ErrorCode::canceled);
  EXPECT(calls == 1);
  EXPECT(works(r, 6));
}

void destructor() {
  const auto model = compile();
  if (streams > 0) {
    auto r = endless(model);
    r.start();
    std::this_thread::sleep_for(5ms);
  }
  if (streams > 0) {  // the last handle of the model goes with it
    auto own = compile();
    auto r = endless(own);
    r.start();
    own = model;
    std::this_thread::sleep_for(5ms);
  }
  auto r = model.create_request();
  EXPECT(works(r, 2));
}

void shutdown() {
  const auto model = compile();
  InRun other(model);
  auto r = endless(model), queued = endless(model);
  if (streams > 0) r.start(), queued.start();
  const auto begin = std::chrono::steady_clock::now();
  lamina::shutdown();
  EXPECT(std::chrono::steady_clock::now() - begin < kSoon);
  EXPECT(other.end() == ErrorCode::canceled);
  for (auto* one : {&r, &queued}) {
    if (streams > 0) EXPECT(thrown([&] { one->wait(); }) == ErrorCode::canceled);
    EXPECT(works(*one, 4));
  }
}

void forks() {
  const auto model = compile();
  InRun other(model);
  auto r = endless(model);
  if (streams > 1) r.start();
  for (int i = 0; i < 3; ++i) {
    const auto child = fork();
    if (child == 0) {
      bool good = true;
      if (streams > 1) good = thrown([&] { r.wait(); }) == ErrorCode::canceled;
      auto own = model.create_request();
      good = good && works(own, 7) && works(r, 8);
      _exit(good ? 0 : 1);
    }
    EXPECT(status_of(child) == 0);
    EXPECT(other.request().status() == RequestStatus::running);
  }
  other.request().cancel();
  EXPECT(other.end() == ErrorCode::canceled);
}

/// In a process of its own, which is to end with that status.
int ends() {
  static const auto model = compile();
  static auto r = endless(model);
  static auto quick = model.create_request();
  (void)works(quick, 1);
  if (streams > 0) r.start();
  std::thread([] {
    auto own = endless(model);
    own.run();
  }).detach();
  std::this_thread::sleep_for(20ms);
  std::exit(kWanted);
}

void exits() {
  const auto child = fork();
  if (child == 0) {
    const auto n = std::to_string(streams);
    execl("/proc/self/exe", "stopping", n.c_str(), nullptr);
    _exit(9);
  }
  EXPECT(status_of(child) == kWanted);
}

void stopped_compilation() {
  const auto network = long_network(60, 256);
  const auto model = network.model();
  std::stop_source stop;
  lamina::Options options{.streams = streams};
  options.stop = stop.get_token();
  options.progress = [&](std::string_view, double) { stop.request_stop(); };
  EXPECT(thrown([&] { (void)CompiledModel(model, options); }) == ErrorCode::canceled);
  auto r = CompiledModel(model, {.streams = streams}).create_request();
  r.set_input(0, filled({64, 256}, 1));
  r.run();
  EXPECT(all_are(r.output(0), 1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    streams = std::atoi(argv[1]);
    return ends();
  }
  for (const int n : {1, 2, 0}) {
    streams = n;
    const auto with = [&](const std::string& name) { return name + ", " + std::to_string(n) + " streams"; };
    attempt(with("cancel"), cancel);
    attempt(with("destructor"), destructor);
    attempt(with("shutdown"), shutdown);
    attempt(with("fork"), forks);
    attempt(with("exit"), exits);
    attempt(with("compilation"), stopped_compilation);
  }
  return ::ends("stopping");
}
