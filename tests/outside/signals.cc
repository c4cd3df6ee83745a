// A timer's signal, many times a millisecond, whose handler does not ask for calls to be taken up again:
// nothing of lamina fails for it, and the handler runs on the application's threads only.
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <atomic>
#include <mutex>

#include "common.h"

namespace {

constexpr int kMost = 64;
std::atomic<int> mine[kMost];  // the application's threads
std::atomic<int> count_mine = 0, handled = 0, foreign = 0;

int this_thread_number() { return static_cast<int>(syscall(SYS_gettid)); }
void i_am_the_application_s() { mine[count_mine++] = this_thread_number(); }

void on_alarm(int) {
  const int before = errno;
  ++handled;
  const int me = this_thread_number();
  bool known = false;
  for (int i = 0; i < count_mine; ++i) known = known || mine[i] == me;
  if (!known) ++foreign;
  errno = before;
}

void timer(int microseconds) {
  itimerval every{{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &every, nullptr);
}

std::mutex mutex;
std::vector<std::string> complaints;

lamina::Options options(int streams) {
  lamina::Options o{.streams = streams};
  o.log = [](lamina::LogLevel level, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (level <= lamina::LogLevel::warning || line.find("nterrupted") != std::string_view::npos)
      complaints.emplace_back(line);
  };
  return o;
}

void requests(const lamina::CompiledModel& model) {
  std::vector<lamina::Request> all;
  std::atomic<int> calls = 0;
  int starts = 0;
  for (int i = 0; i < 4; ++i) {
    all.push_back(model.create_request());
    all.back().set_input(0, filled({64, 512}, static_cast<float>(i)));
    all.back().set_callback([&](std::exception_ptr) { ++calls; });
  }
  for (int round = 0; round < 12; ++round) {
    for (auto& r : all) r.start(), ++starts;
    if (round % 3 == 1) all[1].cancel();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto code = thrown([&] {
        if (round % 2 == 0)
          EXPECT(all[i].wait_for(100s));
        else
          all[i].wait();
      });
      EXPECT(!code || (*code == ErrorCode::canceled && i == 1));
      if (!code) EXPECT(all_are(all[i].output(0), static_cast<float>(i)));
    }
    all[0].run();
    EXPECT(all_are(all[0].output(0), 0));
  }
  EXPECT(calls == starts);
}

void life(const std::string& folder, int streams) {
  const lamina::Model model(folder + "/network.xml");
  auto with_cache = options(streams);
  with_cache.cache_dir = folder + "/cache" + std::to_string(streams);
  for (const char* from : {"NO", "YES"}) {
    const lamina::CompiledModel compiled(model, with_cache);
    EXPECT(compiled.property("LOADED_FROM_CACHE") == from);
    requests(compiled);
  }
  const lamina::CompiledModel compiled(model, options(streams));
  const auto file = folder + "/saved" + std::to_string(streams) + ".lamina";
  compiled.save(file);
  requests(lamina::CompiledModel(lamina::Model(file), options(streams)));
  lamina::shutdown();
}

}  // namespace

int main() {
  std::string folder = std::filesystem::temp_directory_path() / "lamina-signals-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 2;
  long_network(10, 512).write(folder + "/network");
  i_am_the_application_s();
  struct sigaction action {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  // Taken by the thread that uses lamina; and by another one only, so that the system looks for one that
  // takes it.
  for (const bool elsewhere : {false, true}) {
    std::atomic<bool> over = false;
    std::thread other;
    if (elsewhere) {
      other = std::thread([&] {
        i_am_the_application_s();
        while (!over) std::this_thread::sleep_for(1ms);
      });
      while (count_mine < 2) std::this_thread::yield();
    }
    for (const int streams : {1, 2, 0}) {
      doing = std::to_string(streams) + " streams" + (elsewhere ? ", signals elsewhere" : "");
      if (elsewhere) {
        // Threads that are made now inherit the application's mask, not a blocked one.
        std::thread user([&] {
          i_am_the_application_s();
          timer(100);
          life(folder, streams);
          timer(0);
        });
        pthread_sigmask(SIG_BLOCK, &alarm_only, nullptr);
        user.join();
        pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
      } else {
        timer(100);
        life(folder, streams);
        timer(0);
      }
      std::filesystem::remove_all(folder + "/cache" + std::to_string(streams));
    }
    over = true;
    if (other.joinable()) other.join();
  }
  EXPECT(handled > 100);
  EXPECT(foreign == 0);
  for (const auto& line : complaints) std::fprintf(stderr, "%s\n", line.c_str());
  EXPECT(complaints.empty());
  std::filesystem::remove_all(folder);
  std::printf("%d signals, %d of them on threads that are not the application's\n", handled.load(),
              foreign.load());
  return ends("signals");
}
