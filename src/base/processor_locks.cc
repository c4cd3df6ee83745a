#include "base/processor_locks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "base/no_destructor.h"

namespace lamina {

struct ProcessorLocks::State {
  std::string path;
  std::mutex mutex;
  int file = -1;  // its locks belong to this description of the file, which a child of fork() has, too
  std::map<int, int> held;

  bool open_file() {
    if (file >= 0) return true;
    // One that is there is opened first: to create what another user has created may be refused.
    constexpr int kHow = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    file = open(path.c_str(), kHow);
    if (file < 0) file = open(path.c_str(), kHow | O_CREAT, 0666);
    if (file < 0) return false;
    struct stat found {};
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) {
      // For all users, whatever the mask of the one who comes first.
      if (found.st_uid == geteuid() && (found.st_mode & 0777) != 0666) (void)!fchmod(file, 0666);
      return true;
    }
    close(file);
    file = -1;
    return false;
  }

  /// Unless it has locks: nothing of ours stays open, who only looked may be gone next.
  void close_file() noexcept {
    if (!held.empty() || file < 0) return;
    close(file);
    file = -1;
  }

  bool lock(int cpu, short how) const {
    struct flock range {};
    range.l_type = how;
    range.l_whence = SEEK_SET;
    range.l_start = cpu;
    range.l_len = 1;
    return fcntl(file, F_OFD_SETLK, &range) == 0;
  }

  bool is_taken(int cpu) const {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = cpu;
    range.l_len = 1;
    return fcntl(file, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  }
};

ProcessorLocks::ProcessorLocks(std::string path) : state_(new State) { state_->path = std::move(path); }

ProcessorLocks::~ProcessorLocks() {
  if (state_->file >= 0) close(state_->file);
  delete state_;
}

ProcessorLocks& ProcessorLocks::here() {
  static NoDestructor<ProcessorLocks> locks;
  return *locks;
}

std::set<int> ProcessorLocks::taken(int count) {
  std::set<int> out;
  std::lock_guard lock(state_->mutex);
  if (!state_->open_file()) return out;
  for (int cpu = 0; cpu < count; ++cpu)
    if (state_->is_taken(cpu)) out.insert(cpu);
  state_->close_file();
  return out;
}

bool ProcessorLocks::hold(const std::vector<int>& cpus) {
  if (cpus.empty()) return true;
  std::lock_guard lock(state_->mutex);
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    try {
      ++state_->held[cpus[i]];
    } catch (...) {  // no memory: those before this one are let go of
      while (i-- > 0)
        if (--state_->held[cpus[i]] == 0) state_->held.erase(cpus[i]);
      throw;
    }
  }
  bool all = true;
  if (state_->open_file())
    for (const int cpu : cpus)
      if (state_->held[cpu] == 1) all = state_->lock(cpu, F_WRLCK) && all;
  return all;
}

void ProcessorLocks::release(const std::vector<int>& cpus) noexcept {
  if (cpus.empty()) return;
  std::lock_guard lock(state_->mutex);
  for (const int cpu : cpus) {
    const auto it = state_->held.find(cpu);
    if (it == state_->held.end() || --it->second > 0) continue;
    state_->held.erase(it);
    if (state_->file >= 0) state_->lock(cpu, F_UNLCK);
  }
  state_->close_file();
}

void ProcessorLocks::after_fork() noexcept {
  auto* const old = state_;
  if (old->file >= 0) close(old->file);
  // Another thread may have held the mutex at the fork: a new state, the old one stays as it is.
  auto* const fresh = new (std::nothrow) State;
  if (fresh == nullptr) return;
  fresh->path = old->path;
  state_ = fresh;
}

}  // namespace lamina
