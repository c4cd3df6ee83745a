#include "base/nearest.h"

#include <algorithm>
#include <utility>

#include "base/words.h"

namespace lamina {
namespace {

std::size_t hyphens(std::string_view name) { return std::min(name.find_first_not_of('-'), name.size()); }

std::string letters(std::string_view name) {
  name.remove_prefix(hyphens(name));
  return lower_case(name);
}

/// Edits from one to the other, a swap of neighbours being one.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] != b[j - 1]), row[j - 1] + 1, last[j] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 200;  // no name is meant by more
  const auto wanted = letters(name);
  if (wanted.size() > kLongest) return {};
  std::string best;
  std::size_t most = wanted.size() < 3 ? 0 : std::max<std::size_t>(1, wanted.size() / 3);
  for (const auto& candidate : candidates) {
    const auto other = letters(candidate);
    if (other.size() > wanted.size() + most || wanted.size() > other.size() + most) continue;
    const auto d = distance(wanted, other);
    const bool alike = hyphens(candidate) == hyphens(name);
    if (d > most || (!best.empty() && d == most && (!alike || hyphens(best) == hyphens(name)))) continue;
    most = d;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const auto near = nearest_name(name, candidates);
  return near.empty() ? "" : ", did you mean \"" + near + "\"?";
}

}  // namespace lamina
