#include "base/work_bounds.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory_left.h"

namespace lamina {
namespace {

thread_local const WorkBounds* bounds_here = nullptr;

/// What is asked of the system before it is taken.
constexpr std::size_t kWorthAsking = std::size_t{4} << 20;
/// A tensor that is larger, and out of proportion to what was given, is no sane model's.
constexpr std::uint64_t kAlwaysFine = std::uint64_t{1} << 30, kProportion = 1024;

/// Asks the system for what is left, but not at each tensor: a part of the last answer may be taken before
/// the next question.
class System {
 public:
  /// Nothing when it has so much.
  static std::optional<MemoryLeft> lacks(std::size_t bytes) {
    auto credit = credit_.load(std::memory_order_relaxed);
    while (credit >= bytes)
      if (credit_.compare_exchange_weak(credit, credit - bytes, std::memory_order_relaxed)) return {};
    constexpr std::uint64_t kPart = 16;
    auto left = memory_left();
    if (bytes > left.bytes) return left;
    credit_.store((left.bytes - bytes) / kPart, std::memory_order_relaxed);
    return {};
  }

 private:
  static inline std::atomic<std::uint64_t> credit_{0};
};

// What the memory is for is asked of `what` where there is not enough.

template <class What>
void require_of_system(const What& what, std::size_t bytes) {
  if (bytes < kWorthAsking) return;
  if (const auto left = System::lacks(bytes))
    fail(ErrorCode::out_of_memory, "{}: {} bytes, {} has {} left", what(), bytes, left->of, left->bytes);
}

template <class What>
void require_proportion(const What& what, std::size_t bytes, const WorkBounds& here) {
  if (here.memory || here.given == 0 || bytes <= kAlwaysFine || bytes / kProportion <= here.given) return;
  fail(ErrorCode::over_limit,
       "{}: {} bytes, from a model and inputs of {} bytes: give LIMIT_MEMORY a number of bytes to allow "
       "that",
       what(), bytes, here.given);
}

template <class What>
[[noreturn]] void fail_of_account(const What& what, std::size_t bytes, const MemoryAccount& account) {
  fail(ErrorCode::over_limit, "{}: {} bytes beside {} that are taken, LIMIT_MEMORY is {}", what(), bytes,
       account.taken(), account.most());
}

}  // namespace

/// What does not fit is at no time counted: another thread's smaller part would be refused meanwhile.
bool MemoryAccount::take(std::size_t bytes) noexcept {
  const auto below = below_ ? below_->taken() : 0;
  auto before = taken_.load(std::memory_order_relaxed);
  do {
    if (bytes > most_ || before > most_ - bytes || below > most_ - bytes - before) return false;
  } while (!taken_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

std::uint64_t MemoryAccount::taken() const noexcept {
  return taken_.load(std::memory_order_relaxed) + (below_ ? below_->taken() : 0);
}

Within::Within(const WorkBounds* bounds) noexcept : outer_(std::exchange(bounds_here, bounds)) {}
Within::~Within() { bounds_here = outer_; }
const WorkBounds* Within::here() noexcept { return bounds_here; }

void require_elements(std::string_view what, std::span<const std::int64_t> shape) {
  if (!bounds_here || bounds_here->elements == WorkBounds::kNone) return;
  const auto count = extent_of(shape);
  if (count && static_cast<std::uint64_t>(*count) <= bounds_here->elements) return;
  fail(ErrorCode::over_limit, "{} has shape [{}]{}, LIMIT_ELEMENTS is {}", what, fmt::join(shape, ","),
       count ? fmt::format(" with {} elements", *count) : "", bounds_here->elements);
}

void require_outputs(std::size_t outputs) {
  if (bounds_here && outputs > bounds_here->outputs)
    fail(ErrorCode::over_limit, "more than {} outputs, LIMIT_OUTPUTS is {}", bounds_here->outputs,
         bounds_here->outputs);
}

void count_node_made(std::size_t outputs) {
  if (!bounds_here) return;
  require_outputs(outputs);
  if (bounds_here->nodes_made && ++*bounds_here->nodes_made > bounds_here->nodes)
    fail(ErrorCode::over_limit, "more than {} nodes, LIMIT_NODES is {}", bounds_here->nodes,
         bounds_here->nodes);
}

void count_node_erased() noexcept {
  if (bounds_here && bounds_here->nodes_made) --*bounds_here->nodes_made;
}

void require_within_bounds(std::string_view what, std::size_t bytes) {
  const auto* const here = bounds_here;
  if (here == nullptr) return;
  const auto name = [&] { return what; };
  if (here->memory && bytes > here->memory->left()) fail_of_account(name, bytes, *here->memory);
  require_proportion(name, bytes, *here);
}

void require_memory(std::string_view what, std::size_t bytes) {
  require_within_bounds(what, bytes);
  require_of_system([&] { return what; }, bytes);
}

template <class What>
void TakenMemory::take(std::size_t bytes, const What& what) {
  require_of_system(what, bytes);
  const auto* const here = bounds_here;
  if (here == nullptr) return;
  require_proportion(what, bytes, *here);
  if (!here->memory) return;
  if (!here->memory->take(bytes)) fail_of_account(what, bytes, *here->memory);
  account_ = here->memory;
  bytes_ = bytes;
}

TakenMemory::TakenMemory(std::string_view what, std::size_t bytes) {
  take(bytes, [&] { return what; });
}

TakenMemory::TakenMemory(ElementType type, std::span<const std::int64_t> shape, std::size_t bytes) {
  take(bytes, [&] { return fmt::format("a tensor {}[{}]", name_of(type), fmt::join(shape, ",")); });
}

/// Takes memory in pieces that grow with it, so that there are few of them.
void GrowingMemory::grow() {
  constexpr std::size_t kLeast = std::size_t{1} << 12;
  while (taken_ < total_) {
    const auto piece = std::max(kLeast, taken_ / 8);
    pieces_.emplace_back(what_, piece);
    taken_ += piece;
  }
}

}  // namespace lamina
