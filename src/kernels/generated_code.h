#pragma once
/// Generated code that can never be given back.
///
/// oneDNN 3.2 and 3.3 keep the code of their convolutions named "brgconv" in a table of the process. The
/// table is searched by the bytes of the code, and these hold addresses of their own wherever stages behind
/// the sums need constants, so the same convolution made again takes memory again. lamina therefore makes
/// each of them once for the process and keeps it. Where shapes never repeat, other kernels take over after a
/// while.
#include <cstddef>

namespace lamina {

/// How many convolutions are kept whose code cannot be given back: of 20 to 60 KiB each.
inline constexpr std::size_t kMostKeptConvolutions = 2048;

/// While it lives, kernels asked in the calling thread do not offer what would make one more of these, once
/// there are as many as may be kept.
class SparingMemory {
 public:
  SparingMemory() noexcept;
  ~SparingMemory();
  SparingMemory(const SparingMemory&) = delete;
  SparingMemory& operator=(const SparingMemory&) = delete;
  /// Something was not offered for that reason.
  bool spared() const noexcept { return spared_; }
  /// Called by a kernel that does not offer for that reason.
  static void note() noexcept;
  static bool is_here() noexcept;

 private:
  SparingMemory* const outer_;
  bool spared_ = false;
};

/// How many are kept now, and how many more may be while memory is spared. For tests: 0 keeps what there is.
std::size_t kept_convolutions() noexcept;
void keep_most_convolutions(std::size_t count) noexcept;

}  // namespace lamina
