/// What a watcher sees of requests' states: those that run have a stream, and the turn of exclusive models.
#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace testing;

/// Requests whose states other threads look at again and again. A request's owner counts its inferences
/// before each begins. Who runs at two looks, in the same inference, ran all the time between them: so many
/// had a stream at once.
class Watched {
 public:
  explicit Watched(std::vector<Request> requests)
      : requests_(std::move(requests)), begun_(requests_.size()), watchers_(2) {
    for (std::size_t w = 0; w < watchers_.size(); ++w)
      watchers_[w].thread = std::thread([this, w] { watch(w); });
  }
  ~Watched() {
    over_ = true;
    for (auto& w : watchers_) w.thread.join();
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  Request& operator[](std::size_t i) { return requests_[i]; }
  void begins(std::size_t i) { ++begun_[i]; }
  void run(std::size_t i) {
    begins(i);
    requests_[i].run();
  }
  void start(std::size_t i) {
    begins(i);
    requests_[i].start();
  }
  /// Until each watcher has looked at all of them, twice, from the beginning.
  void until_seen() const {
    for (const auto& w : watchers_)
      for (const auto since = w.looks.load(); w.looks.load() < since + 2;) std::this_thread::yield();
  }
  int most() const { return most_; }

 private:
  struct Watcher {
    std::thread thread;
    std::atomic<std::uint64_t> looks{0};
  };
  struct Look {
    std::uint64_t begun;
    bool runs;
  };

  void watch(std::size_t me) {
    std::vector<Look> first(requests_.size());
    while (!over_) {
      for (std::size_t i = 0; i < first.size(); ++i)
        first[i] = {begun_[i], requests_[i].status() == RequestStatus::running};
      int running = 0;
      for (std::size_t i = 0; i < first.size(); ++i)
        running +=
            first[i].runs && requests_[i].status() == RequestStatus::running && begun_[i] == first[i].begun;
      for (int most = most_; running > most && !most_.compare_exchange_weak(most, running);) continue;
      ++watchers_[me].looks;
    }
  }

  std::vector<Request> requests_;
  std::vector<std::atomic<std::uint64_t>> begun_;
  std::vector<Watcher> watchers_;
  std::atomic<int> most_{0};
  std::atomic<bool> over_{false};
};

Request ready(const CompiledModel& compiled) {
  auto request = compiled.create_request();
  for (std::size_t i = 0; i < 2; ++i) request.set_input(i, rows(2, 1));
  return request;
}

std::vector<Request> ready(const CompiledModel& compiled, std::size_t count) {
  std::vector<Request> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(ready(compiled));
  return out;
}

CompiledModel small_model(const Options& options) { return CompiledModel(model_of(sums()), options); }

/// Callers that wait for the one stream, beside requests that were started.
TEST(Status, one_stream_runs_one_request) {
  constexpr std::size_t kCallers = 3, kStarted = 2;
  const auto compiled = small_model({.threads = 1, .streams = 1});
  Watched watched(ready(compiled, kCallers + kStarted));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kCallers; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20000; ++i) watched.run(t);
    });
  for (int i = 0; i < 2000; ++i) {
    for (std::size_t s = kCallers; s < kCallers + kStarted; ++s) watched.start(s);
    for (std::size_t s = kCallers; s < kCallers + kStarted; ++s) watched[s].wait();
  }
  for (auto& t : threads) t.join();
  EXPECT_LE(watched.most(), 1);
}

/// A callback is a part of its request: the next one runs when it has returned.
TEST(Status, a_callback_holds_its_stream) {
  const auto compiled = small_model({.threads = 1, .streams = 1});
  Watched watched(ready(compiled, 3));
  for (std::size_t i = 0; i < 3; ++i)
    watched[i].set_callback([&](const std::exception_ptr&) { watched.until_seen(); });
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < 3; ++i) watched.start(i);
    for (std::size_t i = 0; i < 3; ++i) watched[i].wait();
  }
  EXPECT_EQ(watched.most(), 1);
}

/// Exclusive models have one turn, with streams and in the callers' threads.
TEST(Status, exclusive_models_run_one_request) {
  for (const int streams : {1, 0}) {
    const Options options{.threads = 1, .streams = streams, .exclusive = true};
    const std::array<CompiledModel, 3> models{small_model(options), small_model(options),
                                              small_model(options)};
    std::vector<Request> requests;
    for (const auto& m : models) requests.push_back(ready(m));
    Watched watched(std::move(requests));
    for (std::size_t i = 0; i < 3; ++i)
      watched[i].set_callback([&](const std::exception_ptr&) { watched.until_seen(); });
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 3; ++i)
      threads.emplace_back([&, i] {
        for (int round = 0; round < 20; ++round) {
          watched.start(i);
          watched[i].wait();
        }
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(watched.most(), 1) << streams << " streams";
  }
}

/// Requests that are canceled in the queue wait for a stream, and a turn, to call their callbacks.
TEST(Status, canceled_in_the_queue) {
  constexpr std::size_t kRequests = 4;
  for (const bool exclusive : {false, true}) {
    const Options options{.threads = 1, .streams = 1, .exclusive = exclusive};
    const auto one = small_model(options), two = small_model(options);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < kRequests; ++i)
      requests.push_back(ready(exclusive && i % 2 == 1 ? two : one));
    Watched watched(std::move(requests));
    std::atomic<bool> all_started = false;
    std::atomic<int> calls = 0, canceled = 0;
    for (std::size_t i = 0; i < kRequests; ++i)
      watched[i].set_callback([&, i](const std::exception_ptr& error) {
        ++calls;
        canceled += error != nullptr;
        while (!all_started) std::this_thread::yield();
        for (std::size_t other = i == 0 ? 1 : 3; other < 3; ++other) {
          watched[other].cancel();
          EXPECT_EQ(watched[other].status(), RequestStatus::queued);
        }
        watched.until_seen();
      });
    for (int round = 0; round < 10; ++round) {
      all_started = false;
      for (std::size_t i = 0; i < kRequests; ++i) watched.start(i);
      all_started = true;
      for (const std::size_t i : {1, 2})
        expect_error([&] { watched[i].wait(); }, ErrorCode::canceled, "canceled");
      for (const std::size_t i : {0, 3}) watched[i].wait();
    }
    EXPECT_EQ(calls, 40);
    EXPECT_EQ(canceled, 20);
    EXPECT_EQ(watched.most(), 1) << (exclusive ? "exclusive" : "one stream");
  }
}

}  // namespace
}  // namespace lamina
