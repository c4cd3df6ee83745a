#pragma once
/// What a caller lends, with the function that lets go of it.
#include <memory>

#include "lamina/c.h"

namespace lamina::c_interface {

/// Calls the caller's function when it is destroyed, if the call that took it has succeeded.
class Lent {
 public:
  Lent(lamina_c_release release, void* user) noexcept : user_(user), release_(release) {}
  ~Lent() {
    if (!taken_ || release_ == nullptr) return;
    try {
      release_(user_);
    } catch (...) {  // it must not throw; nobody is there to be told
    }
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  void* user() const noexcept { return user_; }
  /// From now on it is lamina's. To be called by the thread that has made this, at the end.
  void take() noexcept { taken_ = true; }

 private:
  void* user_;
  lamina_c_release release_;
  bool taken_ = false;
};

inline std::shared_ptr<Lent> lent(lamina_c_release release, void* user) {
  return std::make_shared<Lent>(release, user);
}

}  // namespace lamina::c_interface
