#pragma once
/// Shortening in the middle, by the width that characters take.
#include "base/text.h"

namespace lamina {

/// The first and last characters that fit a budget, with an ellipsis between; `cost` of one character.
template <class Cost>
std::string shorten(std::string_view text, double budget, double ellipsis, Cost&& cost) {
  const auto all = characters(text);
  double whole = 0;
  for (const auto c : all) whole += cost(c);
  if (whole <= budget) return std::string(text);
  double used = ellipsis;
  std::size_t head = 0, tail = 0;
  // Two of three characters from the end.
  for (std::size_t turn = 0; head + tail < all.size(); ++turn) {
    const bool front = turn % 3 == 2;
    const auto c = front ? all[head] : all[all.size() - 1 - tail];
    if (used + cost(c) > budget) break;
    used += cost(c);
    ++(front ? head : tail);
  }
  std::string out;
  for (std::size_t i = 0; i < head; ++i) out += all[i];
  out += kEllipsis;
  for (std::size_t i = all.size() - tail; i < all.size(); ++i) out += all[i];
  return out;
}

}  // namespace lamina
