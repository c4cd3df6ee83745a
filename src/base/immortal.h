#pragma once
/// Static objects that exit() does not destroy: other threads, and other static objects, may need them until
/// the process is gone. They lie in the library, not on the heap, so that one that is closed and opened again
/// leaves nothing.
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace lamina {

/// Never destroyed: threads may stand in it. What it holds on the heap is not given back.
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
  const T& operator*() const { return *std::launder(reinterpret_cast<const T*>(bytes_)); }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};

/// The library that this code is in is being closed (dlclose), while the process goes on.
bool library_closes() noexcept;

/// What `make` returns, until its library is closed.
template <class T>
class Lasting {
 public:
  template <class F>
  requires std::is_invocable_r_v<T, F>
  explicit Lasting(const F& make) { new (bytes_) T(make()); }
  ~Lasting() {
    if (library_closes()) (**this).~T();
  }
  Lasting(const Lasting&) = delete;
  Lasting& operator=(const Lasting&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(bytes_)); }
  const T& operator*() const { return *std::launder(reinterpret_cast<const T*>(bytes_)); }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};
template <class F>
Lasting(F) -> Lasting<std::invoke_result_t<F>>;

}  // namespace lamina
