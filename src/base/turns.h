#pragma once
/// Locks under which the user's code may be called: of log and progress callbacks, which may wait for a
/// thread that forks, or for the end of the process.
#include <atomic>

#include "base/standstill.h"

namespace lamina {

/// One thread has the turn; those that wait for it stand still (base/standstill.h), so that nobody waits for
/// them. In a child of fork() a thread that is not there has no turn: what it was at is to be done again.
class Turns {
 public:
  /// The calling thread has the turn while it lives; it must not have it already.
  class Mine : private Activity {
   public:
    explicit Mine(Turns& turns);
    ~Mine() override;

   private:
    bool is_of_another(std::thread::id here) const noexcept override { return thread_ != here; }
    void forsaken() noexcept override;

    Turns& turns_;
    const std::thread::id thread_ = std::this_thread::get_id();
    bool has_ = false;
  };

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace lamina
