// Opens a library that uses lamina, uses and closes it, again and again. This program knows nothing of
// lamina, and nothing of lamina is left in the process in between.
//
//   closes [TIMES]
#include <dlfcn.h>
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

void require(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

/// Lines of a file of /proc/self with these words in them.
std::size_t lines(const char* file, const std::string& words) {
  std::size_t count = 0;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) count += line.find(words) != std::string::npos;
  return count;
}

std::size_t threads() {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    count += !task.path().empty();
  return count;
}

std::size_t files() {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) count += !file.path().empty();
  return count;
}

/// In KiB, without what the allocator keeps of memory that was given back.
long resident() {
  malloc_trim(0);
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, 4, "Rss:") == 0) return std::stol(line.substr(4));
  return 0;
}

class Library {
 public:
  explicit Library(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    require(handle_ != nullptr, handle_ != nullptr ? "" : dlerror());
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(handle_, name));
    require(function != nullptr, name);
    return function(arguments...);
  }

 private:
  void* handle_;
};

/// Nothing is left but what the system may take a moment for.
void require_gone(const std::string& when, std::size_t open_files) {
  for (int i = 0; i < 2000 && threads() > 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  require(threads() == 1, when + ": " + std::to_string(threads()) + " threads are left");
  for (const char* name : {"plugin", "liblamina", "libtbb.so", "libdnnl"})
    require(lines("/proc/self/maps", name) == 0, when + ": " + name + " is still mapped");
  require(files() == open_files, when + ": files are left open");
}

}  // namespace

int main(int argc, char** argv) try {
  const int times = argc > 1 ? std::atoi(argv[1]) : 20;
  const auto open_files = files();
  for (int i = 0; i < 3; ++i) {
    { const Library untouched(PLUGIN); }
    require_gone("opened and closed", open_files);
    {
      const Library idle(PLUGIN);
      require(idle.call("touch") == 0, "touch");
    }
    require_gone("without running anything", open_files);
    {
      const Library idle(PLUGIN);
      require(idle.call("done") == 0, "done");
    }
    require_gone("shut down without running anything", open_files);
  }
  long before = 0, last = 0;
  for (int i = 0; i < times; ++i) {
    {
      const Library library(PLUGIN);
      for (int again = 0; again <= i % 2; ++again) {
        require(library.call("use", i) == 0, "results are right");
        require(library.call("done") == 0, "done");
      }
    }
    require_gone("round " + std::to_string(i), open_files);
    last = resident();
    if (i == times / 2) before = last;
  }
  std::printf("closed %d times: %ld KiB at half of it, %ld KiB at the end\n", times, before, last);
  require(last < before + 2048, "memory grows");
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "closes: %s\n", e.what());
  return 1;
}
