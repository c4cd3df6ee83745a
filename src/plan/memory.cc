#include "plan/memory.h"

#include <algorithm>
#include <numeric>

#include "base/work_partition.h"

namespace lamina {
namespace {
constexpr std::size_t kAlignment = 64;
std::size_t rounded(std::size_t bytes) { return round_up(bytes, kAlignment); }
}  // namespace

std::size_t place(std::vector<Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<std::size_t> placed;  // sorted by offset
  std::size_t size = 0;
  for (const auto i : order) {
    auto& block = blocks[i];
    std::size_t at = 0;
    for (const auto j : placed) {
      const auto& other = blocks[j];
      if (other.last < block.first || block.last < other.first) continue;
      if (at + rounded(block.bytes) <= other.offset) break;
      at = std::max(at, other.offset + rounded(other.bytes));
    }
    block.offset = at;
    size = std::max(size, at + rounded(block.bytes));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), at,
                         [&](std::size_t offset, std::size_t j) { return offset < blocks[j].offset; }),
        i);
  }
  return size;
}

std::size_t live_bound(const std::vector<Block>& blocks) {
  std::uint32_t last = 0;
  for (const auto& b : blocks) last = std::max(last, b.last);
  std::vector<std::ptrdiff_t> change(last + 2, 0);
  for (const auto& b : blocks) {
    change[b.first] += static_cast<std::ptrdiff_t>(rounded(b.bytes));
    change[b.last + 1] -= static_cast<std::ptrdiff_t>(rounded(b.bytes));
  }
  std::ptrdiff_t now = 0, most = 0;
  for (auto c : change) most = std::max(most, now += c);
  return static_cast<std::size_t>(most);
}

}  // namespace lamina
