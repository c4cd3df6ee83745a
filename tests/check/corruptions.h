#pragma once
/// Ways in which stored outputs are wrong.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "ops/eval.h"

namespace lamina::testing {

/// `apply` gives an invalid tensor where the tensor does not change.
struct Corruption {
  std::string name;
  std::function<Tensor(const Tensor&)> apply;
};

/// The elements of the axis in an order of their own: `from` gives where each comes from.
inline Tensor with_axis(const Tensor& t, std::size_t axis,
                        const std::function<std::size_t(std::size_t)>& from) {
  const auto values = to_doubles(t.to_aligned());
  auto out = values;
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < t.rank(); ++i) inner *= static_cast<std::size_t>(t.shape()[i]);
  const auto size = static_cast<std::size_t>(t.shape()[axis]);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto place = i / inner % size;
    out[i] = values[i - place * inner + from(place) * inner];
  }
  return out == values ? Tensor() : from_doubles(t.element_type(), t.shape(), out);
}

inline Tensor each(const Tensor& t, const std::function<double(double)>& f) {
  auto values = to_doubles(t.to_aligned());
  const auto before = values;
  for (auto& v : values) v = f(v);
  return values == before ? Tensor() : from_doubles(t.element_type(), t.shape(), values);
}

inline double largest(const Tensor& t) {
  double out = 0;
  for (const double v : to_doubles(t.to_aligned())) out = std::max(out, std::fabs(v));
  return out;
}

/// The axis of channels or classes: the first one behind the batch that is longer than 1; npos: none.
inline std::size_t channels(const Tensor& t) {
  for (std::size_t i = 1; i < t.rank(); ++i)
    if (t.shape()[i] > 1) return i;
  return std::string::npos;
}
inline std::size_t last(const Tensor& t) {
  for (std::size_t i = t.rank(); i-- > 0;)
    if (t.shape()[i] > 1) return i;
  return std::string::npos;
}

inline std::vector<Corruption> corruptions() {
  const auto rolled = [](const Tensor& t, std::size_t axis) {
    if (axis == std::string::npos) return Tensor();
    const auto size = static_cast<std::size_t>(t.shape()[axis]);
    return with_axis(t, axis, [=](std::size_t i) { return (i + size - 1) % size; });
  };
  return {
      {"classes rolled by one", [=](const Tensor& t) { return rolled(t, last(t)); }},
      {"channels rolled by one", [=](const Tensor& t) { return rolled(t, channels(t)); }},
      {"boxes shuffled",
       [](const Tensor& t) {
         const auto axis = channels(t);
         if (axis == std::string::npos) return Tensor();
         const auto size = static_cast<std::size_t>(t.shape()[axis]);
         // A step that has no divisor in common with the size reaches every place.
         std::size_t step = size / 3 + 1;
         while (std::gcd(step, size) != 1) ++step;
         return with_axis(t, axis, [=](std::size_t i) { return i * step % size; });
       }},
      {"pictures permuted",
       [](const Tensor& t) {
         if (t.rank() == 0 || t.shape()[0] < 2) return Tensor();
         const auto size = static_cast<std::size_t>(t.shape()[0]);
         return with_axis(t, 0, [=](std::size_t i) { return size - 1 - i; });
       }},
      {"halved", [](const Tensor& t) { return each(t, [](double v) { return v / 2; }); }},
      {"doubled", [](const Tensor& t) { return each(t, [](double v) { return v * 2; }); }},
      {"negated", [](const Tensor& t) { return each(t, [](double v) { return -v; }); }},
      {"all zero", [](const Tensor& t) { return each(t, [](double) { return 0.0; }); }},
      {"offset",
       [](const Tensor& t) {
         const double by = 0.1 * largest(t);
         return each(t, [=](double v) { return v + by; });
       }},
      {"one channel missing",
       [](const Tensor& t) {
         const auto axis = channels(t);
         if (axis == std::string::npos) return Tensor();
         // That of the largest element.
         const auto values = to_doubles(t.to_aligned());
         std::size_t inner = 1, most = 0;
         for (std::size_t i = axis + 1; i < t.rank(); ++i) inner *= static_cast<std::size_t>(t.shape()[i]);
         const auto size = static_cast<std::size_t>(t.shape()[axis]);
         for (std::size_t i = 0; i < values.size(); ++i)
           if (std::fabs(values[i]) > std::fabs(values[most])) most = i;
         auto out = values;
         for (std::size_t i = 0; i < out.size(); ++i)
           if (i / inner % size == most / inner % size) out[i] = 0;
         return out == values ? Tensor() : from_doubles(t.element_type(), t.shape(), out);
       }},
  };
}

}  // namespace lamina::testing
