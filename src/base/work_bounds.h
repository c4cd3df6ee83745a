#pragma once
/// The limits of the model that a thread works for (ModelLimits), where code that makes tensors and graphs
/// finds them: nobody has to hand them down.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/command_api.h"
#include "lamina/tensor.h"

namespace lamina {

/// Bytes that are taken under one limit. Thread-safe.
class MemoryAccount {
 public:
  /// At most that many bytes; what is taken from `below`, the account of the model that this one was compiled
  /// of, counts, too.
  explicit MemoryAccount(std::uint64_t most, std::shared_ptr<const MemoryAccount> below = nullptr)
      : most_(most), below_(std::move(below)) {}
  /// False: so many bytes more would be too many; nothing is taken then.
  bool take(std::size_t bytes) noexcept;
  void give_back(std::size_t bytes) noexcept { taken_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t taken() const noexcept;
  std::uint64_t most() const noexcept { return most_; }
  std::uint64_t left() const noexcept { return most_ - std::min(most_, taken()); }

 private:
  const std::uint64_t most_;
  const std::shared_ptr<const MemoryAccount> below_;
  std::atomic<std::uint64_t> taken_{0};
};

class GrowingMemory;

/// What bounds a piece of work.
struct WorkBounds {
  static constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t elements = kNone;  ///< of one tensor
  /// Limit of the nodes of all graphs that are made, which `nodes_made` counts; null: they are not counted.
  std::uint64_t nodes = kNone;
  std::atomic<std::uint64_t>* nodes_made = nullptr;
  std::uint64_t outputs = kNone;                    ///< of a graph, and of a node
  std::shared_ptr<MemoryAccount> memory = nullptr;  ///< null: no number of bytes is given
  /// Bytes of files and inputs that the work is about. Without a number of bytes a tensor must not be out of
  /// all proportion to them. 0: not known.
  std::uint64_t given = 0;
  /// What readers make of the text of a file, while they do; null: nobody counts.
  GrowingMemory* parsed = nullptr;
};

/// While it lives, the calling thread works within these bounds; loops of base/parallel.h that it begins
/// do, too. Null: within none. Objects of one thread nest, and the innermost counts.
class Within {
 public:
  explicit Within(const WorkBounds* bounds) noexcept;
  ~Within();
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  /// Null: no bounds.
  static const WorkBounds* here() noexcept;

 private:
  const WorkBounds* outer_;
};

/// Throws Error(over_limit) for a tensor of more elements (beside zeros) than is allowed here.
/// `what`: "input \"x\"".
void require_elements(std::string_view what, std::span<const std::int64_t> shape);
/// A node more, with so many outputs. Throws Error(over_limit).
void count_node_made(std::size_t outputs);
void count_node_erased() noexcept;
/// Throws Error(over_limit) for a graph or a node with more outputs than is allowed here.
void require_outputs(std::size_t outputs);

/// Throws where so many bytes more cannot be had: Error(over_limit) beyond the limit here,
/// Error(out_of_memory) where the machine or a control group has not so much left. Takes nothing: for what is
/// no tensor, or will be one later. `what`: "a tensor f32[3,4]"
LAMINA_COMMAND_API void require_memory(std::string_view what, std::size_t bytes);
/// Checks by the bounds of the current work alone, not by what is left here: for plans of this machine or of
/// another one.
void require_within_bounds(std::string_view what, std::size_t bytes);

/// Bytes taken from the account here until this goes; nothing where there is no account.
class TakenMemory {
 public:
  TakenMemory() = default;
  /// Throws as require_memory().
  TakenMemory(std::string_view what, std::size_t bytes);
  /// For a tensor.
  TakenMemory(ElementType type, std::span<const std::int64_t> shape, std::size_t bytes);
  TakenMemory(TakenMemory&& other) noexcept
      : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}
  TakenMemory& operator=(TakenMemory&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~TakenMemory() {
    if (account_) account_->give_back(bytes_);
  }
  bool nothing() const noexcept { return account_ == nullptr; }

 private:
  template <class What>
  void take(std::size_t bytes, const What& what);
  std::shared_ptr<MemoryAccount> account_;
  std::size_t bytes_ = 0;
};

/// Memory that grows bit by bit and is given back at once, counted about.
class GrowingMemory {
 public:
  explicit GrowingMemory(std::string what) : what_(std::move(what)) {}
  /// Throws as require_memory().
  void add(std::size_t bytes) {
    total_ += bytes;
    if (total_ > taken_) grow();
  }

 private:
  void grow();
  std::string what_;
  std::size_t total_ = 0, taken_ = 0;
  std::vector<TakenMemory> pieces_;
};

/// For readers: about `bytes` bytes of the file's text are kept in memory. Throws as require_memory().
inline void note_parsed(std::size_t bytes) {
  if (const auto* const here = Within::here(); here && here->parsed) here->parsed->add(bytes);
}

}  // namespace lamina
