#pragma once
/// Objects that outlive all others.
#include <cstddef>
#include <new>
#include <utility>

namespace lamina {

/// A static object that is never destroyed: threads and other static objects may need it until the process is
/// gone. It lies in the library, not on the heap, so that one that is closed and opened again leaves nothing.
template <class T>
class Immortal {
 public:
  template <class... Arguments>
  explicit Immortal(Arguments&&... arguments) {
    new (bytes_) T(std::forward<Arguments>(arguments)...);
  }
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(bytes_)); }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};

}  // namespace lamina
