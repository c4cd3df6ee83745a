#pragma once
/// Static objects that exit() does not destroy (NoDestructor): other threads, and other static objects, may
/// need them until the process has ended. Their memory is in the library, not on the heap, so that a library
/// that is closed and opened again leaks nothing.
///
/// They are made when they are first asked for, without the compiler's guards: a child of fork() would wait
/// for ever for a thread of the parent that was making one. It makes such an object again (MakeOnce).
#include <atomic>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace lamina {

/// What one thread of the process makes while others wait for it. Where that throws, the next one tries
/// again.
class MakeOnce {
 public:
  constexpr MakeOnce() noexcept = default;
  template <class F>
  void operator()(const F& make) {
    if (maker_.load(std::memory_order_acquire) == kMade || !begin()) return;
    try {
      make();
    } catch (...) {
      end(kNobody);
      throw;
    }
    end(kMade);
  }

 private:
  static constexpr int kNobody = 0, kMade = -1;
  /// False: it has been made by another thread.
  bool begin() noexcept;
  void end(int maker) noexcept;
  std::atomic<int> maker_{kNobody};  // else the process in which a thread makes it
};

/// An object that is never destroyed, since threads may be using it. Its heap memory is not freed.
template <class T>
class NoDestructor {
 public:
  constexpr NoDestructor() noexcept = default;
  NoDestructor(const NoDestructor&) = delete;
  NoDestructor& operator=(const NoDestructor&) = delete;

  T& operator*() {
    once_([this] { new (bytes_) T(); });
    return *std::launder(reinterpret_cast<T*>(bytes_));
  }

 private:
  MakeOnce once_;
  alignas(T) std::byte bytes_[sizeof(T)] = {};
};

/// True while the library with this code is being closed (dlclose) and the process goes on.
bool library_closes() noexcept;

/// An object in the list of those that are destroyed when their library is closed, the last one first.
class DestroyedAtClose {
 public:
  constexpr DestroyedAtClose() noexcept = default;
  /// Puts the object into the list, unless it is there: a child of fork() makes an object again in the same
  /// place.
  void enlist(void (*destroy)(void*), void* object) noexcept;
  static void destroy_all();

 private:
  void (*destroy_)(void*) = nullptr;
  void* object_ = nullptr;
  DestroyedAtClose* older_ = nullptr;
};

/// A process-lifetime object: the result of `make`, which is destroyed only when its library is closed.
template <class Make>
class ProcessLifetime {
 public:
  using T = std::invoke_result_t<Make>;
  constexpr explicit ProcessLifetime(Make make) noexcept : make_(make) {}
  ProcessLifetime(const ProcessLifetime&) = delete;
  ProcessLifetime& operator=(const ProcessLifetime&) = delete;

  T& operator*() { return made(); }
  const T& operator*() const { return made(); }

 private:
  T& made() const {
    once_([this] {
      new (bytes_) T(make_());
      at_close_.enlist([](void* bytes) { std::launder(static_cast<T*>(bytes))->~T(); }, bytes_);
    });
    return *std::launder(reinterpret_cast<T*>(bytes_));
  }

  Make make_;
  mutable MakeOnce once_;
  mutable DestroyedAtClose at_close_;
  alignas(T) mutable std::byte bytes_[sizeof(T)] = {};
};

}  // namespace lamina
