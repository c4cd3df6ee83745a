#pragma once
/// Ctrl-C that lets a measurement end early and tell what it has.

namespace lamina::tool {

/// While one exists, the first interrupt or request to terminate (SIGINT, SIGTERM) is only noted; a second
/// one ends the process as usual. One at a time.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};

/// The signal that was noted since the last Interruptible began; 0: none. Any thread may ask.
int interrupted();

}  // namespace lamina::tool
