#pragma once
/// What gathers and scatters share: indices of either width, and copies that are known beforehand.
#include <cstring>

#include "kernels/kernel.h"

namespace lamina {

/// i64 or i32 indices at run time.
class Indices {
 public:
  Indices(const void* data, bool wide) : data_(data), wide_(wide) {}
  std::int64_t operator[](std::int64_t i) const {
    return wide_ ? static_cast<const std::int64_t*>(data_)[i] : static_cast<const std::int32_t*>(data_)[i];
  }
  /// Counted from the end where negative; an error outside of the axis.
  std::int64_t within(std::int64_t i, std::int64_t size, std::string_view op) const {
    return checked((*this)[i], size, op);
  }
  /// The index as a position on the axis, or -1 outside of it.
  std::int64_t found(std::int64_t i, std::int64_t size) const {
    const auto index = (*this)[i];
    return index < -size || index >= size ? -1 : (index < 0 ? index + size : index);
  }
  static std::int64_t checked(std::int64_t index, std::int64_t size, std::string_view op) {
    if (index < -size || index >= size)
      fail(ErrorCode::bad_input, "{}: index {} for an axis of {}", op, index, size);
    return index < 0 ? index + size : index;
  }

 private:
  const void* data_;
  bool wide_;
};

/// Says no to index types other than i32 and i64.
Verdict takes_indices(const NodeView& v, std::size_t input);

/// `bytes` bytes from one offset to another.
struct ByteRun {
  std::int64_t to, from, bytes;
};

/// A list of copies in order, where neighbours become one.
class ByteRuns {
 public:
  void add(std::int64_t to, std::int64_t from, std::int64_t bytes) {
    bytes_ += bytes;
    if (!runs_.empty() && runs_.back().to + runs_.back().bytes == to &&
        runs_.back().from + runs_.back().bytes == from)
      runs_.back().bytes += bytes;
    else
      runs_.push_back({to, from, bytes});
  }
  /// The whole list so many times, each so many bytes further.
  void repeat(std::int64_t times, std::int64_t to_step, std::int64_t from_step) {
    times_ = times, to_step_ = to_step, from_step_ = from_step;
  }
  /// Runs in the list, without repetitions.
  std::size_t size() const { return runs_.size(); }
  /// Runs with all repetitions.
  std::int64_t count() const { return times_ * static_cast<std::int64_t>(runs_.size()); }
  /// On threads where they pay; runs must not overlap then.
  void run(const std::byte* from, std::byte* to, bool on_threads) const;

 private:
  std::vector<ByteRun> runs_;
  std::int64_t bytes_ = 0, times_ = 1, to_step_ = 0, from_step_ = 0;
};

/// Copies few bytes without a call.
inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  switch (bytes) {
    case 1:
      *to = *from;
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    default:
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace lamina
