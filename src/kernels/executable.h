#pragma once
/// What kernels make.
#include <functional>
#include <memory>

#include "kernels/layout.h"

namespace lamina {

/// Pointers of one run. Absent inputs, and constants that were consumed while making, are null.
struct RunArgs {
  const void* const* in;
  void* const* out;
  void* scratch;
};

/// A kernel bound to pointers: those of one run, then of another request's. It keeps nothing else from run to
/// run. Not thread-safe.
class Step {
 public:
  virtual ~Step() = default;
  /// Called before the first run, and again whenever a pointer changes. Pointers stay valid until the next
  /// call.
  virtual void bind(const RunArgs& args) = 0;
  virtual void run() = 0;
};

/// A kernel made for one node: immutable, shared by streams and threads.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual std::unique_ptr<Step> step() const = 0;
};

/// Makes an Executable of a function that can run on any pointers.
std::unique_ptr<Executable> executable(std::function<void(const RunArgs&)> run);

/// Copies a dense tensor from one layout to another; where one is packed the other is plain.
std::unique_ptr<Executable> make_reorder(ElementType type, const Dims& shape, Layout from, Layout to);

}  // namespace lamina
