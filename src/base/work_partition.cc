#include "base/work_partition.h"

#include <algorithm>
#include <cstdint>

namespace lamina {
namespace {

constexpr std::int64_t kUnitsOfAThread = 4;    // where units are cut for the threads
constexpr std::int64_t kPiecesOfAThread = 16;  // where there are more units than that

/// a / b, rounded down and within [1, most]; b may be 0, a huge.
std::int64_t clamped(double a, double b, std::int64_t most) {
  return b > 0 && a / b < static_cast<double>(most)
             ? std::max<std::int64_t>(1, static_cast<std::int64_t>(a / b))
             : std::max<std::int64_t>(1, most);
}

}  // namespace

WorkPartition partition_work(std::int64_t units, double microseconds, std::int64_t threads) {
  auto d = partition_units(units, clamped(kWorthAThread, microseconds, units), threads);
  d.most = clamped(kLongestPiece, microseconds, units);
  return d;
}

WorkPartition partition_units(std::int64_t units, std::int64_t worth, std::int64_t threads) {
  worth = std::max<std::int64_t>(1, worth);
  const auto slots = std::clamp<std::int64_t>(ceil_div(units, worth), 1, std::max<std::int64_t>(1, threads));
  constexpr double kMostWorths = 64;  // what is worth a thread is often taken to be more than it is
  const auto most = worth == 1 ? 1 : clamped(kMostWorths * static_cast<double>(worth), 1, units);
  if (slots == 1) return {units, std::max<std::int64_t>(1, units), 1, most};
  return {units, std::max(worth, units / (slots * kPiecesOfAThread)), slots, most};
}

std::int64_t units_wanted(double microseconds, std::int64_t threads) {
  return threads <= 1 ? 1 : clamped(microseconds, kWorthAThread, threads * kUnitsOfAThread);
}

}  // namespace lamina
