#pragma once
/// fork() and exit() beside what lamina does.

namespace lamina {

/// From here on it stops for both. Called before anything that takes time begins.
void follow_process();

/// The calling thread is in a callback that something waits for, which may be what shutdown() waits for.
class InCallback {
 public:
  InCallback() noexcept;
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
};

}  // namespace lamina
