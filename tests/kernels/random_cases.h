#pragma once
/// What random cases of kernels' tests are made of.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "graph/graph.h"
#include "tests/support/convolution_text.h"

namespace lamina::testing {

template <class T, std::size_t N>
const T& pick(SplitMix& random, const T (&values)[N]) {
  return values[random.below(N)];
}

/// A depthwise convolution's picture and window.
struct DepthwiseCase {
  std::int64_t images, channels, height, width, kernel_h, kernel_w, stride_h, stride_w, dilation;
  std::int64_t top, left, bottom, right;

  std::int64_t out_height() const { return window_count(height, kernel_h, stride_h, dilation, top + bottom); }
  std::int64_t out_width() const { return window_count(width, kernel_w, stride_w, dilation, left + right); }
};

/// A random depthwise convolution, whose result may be empty.
inline DepthwiseCase random_depthwise(SplitMix& random) {
  static const std::int64_t channels[] = {2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 32, 33, 48, 64, 100},
                            sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15, 16, 20, 28, 57};
  DepthwiseCase c{};
  c.images = random.below(4) == 0 ? 2 : 1;
  c.channels = pick(random, channels);
  c.height = pick(random, sizes);
  c.width = pick(random, sizes);
  const std::int64_t kernel = pick(random, {3, 3, 3, 5, 5, 1, 2, 7});
  c.kernel_h = random.below(5) == 0 ? pick(random, {1, 2, 3, 4}) : kernel;
  c.kernel_w = kernel;
  c.stride_h = pick(random, {1, 1, 2, 3});
  c.stride_w = random.below(5) == 0 ? pick(random, {1, 2, 3}) : c.stride_h;
  c.dilation = pick(random, {1, 1, 1, 1, 2, 3});
  const auto pad = [&](std::int64_t k) {
    return static_cast<std::int64_t>(random.below(2) == 0 ? k / 2 : random.below(4));
  };
  c.top = pad(c.kernel_h);
  c.bottom = pad(c.kernel_h);
  c.left = pad(c.kernel_w);
  c.right = pad(c.kernel_w);
  return c;
}

/// What a node reads of a graph's inputs and constants; tensors that are not valid for what it has not.
inline std::vector<Tensor> tensors_of(const Graph& g, NodeId id, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> out;
  for (const auto v : g.node(id).inputs) {
    const auto* constant = v.valid() ? g.constant(v) : nullptr;
    const auto at = std::find(g.inputs().begin(), g.inputs().end(), v);
    out.push_back(constant                 ? *constant
                  : at == g.inputs().end() ? Tensor()
                                           : inputs.at(static_cast<std::size_t>(at - g.inputs().begin())));
  }
  return out;
}

}  // namespace lamina::testing
