#pragma once
/// A vector whose elements stay where they are while it grows: references to them remain valid.
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace lamina {

/// Elements lie in blocks of 4, 8, 16, ... that never move. A copy has blocks of its own; what is moved takes
/// its blocks along. Thread-safe for reading.
template <class T>
class StableVector {
 public:
  StableVector() = default;
  explicit StableVector(std::vector<T>&& elements) {
    for (auto& e : elements) push_back(std::move(e));
  }
  StableVector(const StableVector& other) { append(other); }
  StableVector(StableVector&& other) noexcept
      : blocks_(std::exchange(other.blocks_, {})), size_(std::exchange(other.size_, 0)) {}
  StableVector& operator=(const StableVector& other) {
    if (this != &other) *this = StableVector(other);
    return *this;
  }
  StableVector& operator=(StableVector&& other) noexcept {
    blocks_ = std::exchange(other.blocks_, {});
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~StableVector() = default;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t i) const { return blocks_[block_of(i)][place_of(i)]; }
  T& operator[](std::size_t i) { return blocks_[block_of(i)][place_of(i)]; }

  void push_back(T element) {
    const auto block = block_of(size_);
    if (block == blocks_.size()) {
      std::vector<T> next;
      next.reserve(kFirst << block);  // before it is one of the blocks: this may find no memory
      blocks_.push_back(std::move(next));
    }
    blocks_[block].push_back(std::move(element));  // never beyond what is reserved, so nothing moves
    ++size_;
  }

  /// Calls f with every element in order.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& block : blocks_)
      for (const auto& element : block) f(element);
  }
  template <class F>
  void for_each(F&& f) {
    for (auto& block : blocks_)
      for (auto& element : block) f(element);
  }

 private:
  static constexpr std::size_t kFirst = 4;  // elements of the first block
  static std::size_t block_of(std::size_t i) {
    return static_cast<std::size_t>(std::bit_width(i / kFirst + 1)) - 1;
  }
  static std::size_t place_of(std::size_t i) { return i + kFirst - (kFirst << block_of(i)); }
  void append(const StableVector& other) {
    for (const auto& block : other.blocks_) {
      auto& mine = blocks_.emplace_back();
      mine.reserve(kFirst << (blocks_.size() - 1));
      mine.insert(mine.end(), block.begin(), block.end());
    }
    size_ = other.size_;
  }

  std::vector<std::vector<T>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace lamina
