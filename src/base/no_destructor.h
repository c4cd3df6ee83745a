#pragma once
/// Static objects that exit() does not destroy (NoDestructor): other threads, and other static objects, may
/// need them until the process has ended. Their memory is in the library, not on the heap, so that a library
/// that is closed and opened again leaks nothing.
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace lamina {

/// An object that is never destroyed, since threads may be using it. Its heap memory is not freed.
template <class T>
class NoDestructor {
 public:
  template <class... Arguments>
  explicit NoDestructor(Arguments&&... arguments) {
    new (bytes_) T(std::forward<Arguments>(arguments)...);
  }
  NoDestructor(const NoDestructor&) = delete;
  NoDestructor& operator=(const NoDestructor&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(bytes_)); }
  const T& operator*() const { return *std::launder(reinterpret_cast<const T*>(bytes_)); }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};

/// True while the library with this code is being closed (dlclose) and the process goes on.
bool library_closes() noexcept;

/// A process-lifetime object: the result of `make`, which is destroyed only when its library is closed.
template <class T>
class ProcessLifetime {
 public:
  template <class F>
  requires std::is_invocable_r_v<T, F>
  explicit ProcessLifetime(const F& make) { new (bytes_) T(make()); }
  ~ProcessLifetime() {
    if (library_closes()) (**this).~T();
  }
  ProcessLifetime(const ProcessLifetime&) = delete;
  ProcessLifetime& operator=(const ProcessLifetime&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(bytes_)); }
  const T& operator*() const { return *std::launder(reinterpret_cast<const T*>(bytes_)); }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};
template <class F>
ProcessLifetime(F) -> ProcessLifetime<std::invoke_result_t<F>>;

}  // namespace lamina
