/// The machine's limits; see peak.h.
#include "kernels/peak.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <thread>

#include "kernels/native/simd/per_isa.h"
#include "lamina/tensor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/simd/peak.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef LAMINA_PEAK_TABLE
#define LAMINA_PEAK_TABLE
namespace lamina {
/// One per instruction set.
struct PeakTable {
  /// That many rounds; returns the operations done. `sink` keeps the compiler from leaving them out.
  double (*multiply_add)(std::int64_t rounds, float* sink);
  /// Writes from + 1 to `to`; `count` is a multiple of 64.
  void (*pass)(const float* from, float* to, std::size_t count);
};
}  // namespace lamina
#endif

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
constexpr D d;

/// Twelve independent sums hide the latency of an addition.
double multiply_add(std::int64_t rounds, float* sink) {
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 1e-3f);
  auto s0 = hn::Zero(d), s1 = hn::Set(d, 1), s2 = hn::Set(d, 2), s3 = hn::Set(d, 3);
  auto s4 = hn::Set(d, 4), s5 = hn::Set(d, 5), s6 = hn::Set(d, 6), s7 = hn::Set(d, 7);
  auto s8 = hn::Set(d, 8), s9 = hn::Set(d, 9), s10 = hn::Set(d, 10), s11 = hn::Set(d, 11);
  for (std::int64_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, a, b), s1 = hn::MulAdd(s1, a, b), s2 = hn::MulAdd(s2, a, b),
    s3 = hn::MulAdd(s3, a, b);
    s4 = hn::MulAdd(s4, a, b), s5 = hn::MulAdd(s5, a, b), s6 = hn::MulAdd(s6, a, b),
    s7 = hn::MulAdd(s7, a, b);
    s8 = hn::MulAdd(s8, a, b), s9 = hn::MulAdd(s9, a, b), s10 = hn::MulAdd(s10, a, b);
    s11 = hn::MulAdd(s11, a, b);
  }
  s0 = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  s0 = hn::Add(s0, hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)));
  *sink += hn::GetLane(s0);
  return 24.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

void pass(const float* from, float* to, std::size_t count) {
  const auto one = hn::Set(d, 1);
  const std::size_t n = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += 4 * n) {
    hn::Store(hn::Add(hn::Load(d, from + i), one), d, to + i);
    hn::Store(hn::Add(hn::Load(d, from + i + n), one), d, to + i + n);
    hn::Store(hn::Add(hn::Load(d, from + i + 2 * n), one), d, to + i + 2 * n);
    hn::Store(hn::Add(hn::Load(d, from + i + 3 * n), one), d, to + i + 3 * n);
  }
}

PeakTable make_table() { return {multiply_add, pass}; }

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kMakeTable = LAMINA_PER_ISA(make_table);

namespace {

const PeakTable& table() {
  static const PeakTable t = kMakeTable.best()();
  return t;
}

using Clock = std::chrono::steady_clock;

/// Work per second: the best of some pieces, in each of which all threads start together. Others on the
/// same cores disturb some pieces, rarely all.
double best(int threads, int pieces, const std::function<double(int)>& work) {
  const auto n = static_cast<std::size_t>(threads);
  std::vector<Clock::time_point> begin(n), end(n);
  std::vector<double> done(n);
  double most = 0;
  const auto finish = [&]() noexcept {
    double sum = 0;
    for (const auto d : done) sum += d;
    const auto time =
        *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
    most = std::max(most, sum / std::chrono::duration<double>(time).count());
  };
  std::barrier started(threads);
  std::barrier finished(threads, finish);
  const auto body = [&](std::size_t t) {
    for (int p = 0; p < pieces; ++p) {
      started.arrive_and_wait();
      begin[t] = Clock::now();
      done[t] = work(static_cast<int>(t));
      end[t] = Clock::now();
      finished.arrive_and_wait();
    }
  };
  std::vector<std::thread> pool;
  for (std::size_t t = 1; t < n; ++t) pool.emplace_back(body, t);
  body(0);
  for (auto& t : pool) t.join();
  return most;
}

double bandwidth(int threads, std::size_t bytes) {
  // Each thread has its share of two buffers, one read and one written.
  const auto count =
      std::max<std::size_t>(64, bytes / 2 / sizeof(float) / static_cast<std::size_t>(threads) / 64 * 64);
  const Dims dims{threads, static_cast<std::int64_t>(count)};
  const Tensor from(ElementType::f32, dims), to(ElementType::f32, dims);
  const auto at = [&](const Tensor& t, int thread) {
    return reinterpret_cast<float*>(const_cast<std::byte*>(t.raw())) +
           static_cast<std::size_t>(thread) * count;
  };
  const auto passes = std::max<std::size_t>(1, (std::size_t{1} << 21) / (count * sizeof(float)));
  return best(threads, 8, [&](int thread) {
    for (std::size_t p = 0; p < passes; ++p) table().pass(at(from, thread), at(to, thread), count);
    return static_cast<double>(passes * count * sizeof(float) * 2);
  });
}

}  // namespace

MachineLimits measure_limits(int threads) {
  MachineLimits m;
  m.threads = std::max(1, threads);
  for (std::size_t bytes = std::size_t{1} << 16; bytes <= std::size_t{1} << 26; bytes <<= 2)
    m.bandwidth.emplace_back(static_cast<double>(bytes), 0);
  // Rounds, since others on the same cores come and go.
  for (int round = 0; round < 3; ++round) {
    m.flops = std::max(m.flops, best(m.threads, 20, [](int) {
                         float sink = 0;
                         const auto done = table().multiply_add(200'000, &sink);
                         return sink == 0.125f ? 0 : done;
                       }));
    for (auto& [bytes, rate] : m.bandwidth)
      rate = std::max(rate, bandwidth(m.threads, static_cast<std::size_t>(bytes)));
  }
  // Less is never slower than more: where it seems so, somebody else was at work.
  for (std::size_t i = m.bandwidth.size() - 1; i-- > 0;)
    m.bandwidth[i].second = std::max(m.bandwidth[i].second, m.bandwidth[i + 1].second);
  return m;
}

double MachineLimits::bandwidth_at(double bytes) const {
  if (bandwidth.empty()) return 0;
  if (bytes <= bandwidth.front().first) return bandwidth.front().second;
  for (std::size_t i = 1; i < bandwidth.size(); ++i) {
    const auto& [low, slow] = bandwidth[i - 1];
    const auto& [high, fast] = bandwidth[i];
    if (bytes > high) continue;
    const double part = std::log(bytes / low) / std::log(high / low);
    return slow + part * (fast - slow);
  }
  return bandwidth.back().second;
}

double MachineLimits::least_seconds(double work, double bytes) const {
  const double rate = bandwidth_at(bytes);
  return std::max(flops > 0 ? work / flops : 0, rate > 0 ? bytes / rate : 0);
}

}  // namespace lamina
#endif
