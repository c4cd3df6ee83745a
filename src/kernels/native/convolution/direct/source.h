#pragma once
/// What convolutions as products (gemm/product.h) read: how the input lies, which taps of it k runs over, and
/// the weights in that order.
#include "kernels/native/convolution/window.h"
#include "kernels/native/gemm/product.h"

namespace lamina::convolutions {

/// How the input lies, in its elements.
struct Source {
  bool plain;
  std::int64_t point, line, plane;  ///< from one point to the next along width, height and depth
  std::int64_t channel;
  std::int64_t in_word = 1;  ///< elements of a k of the product (gemm::Units)
  std::int64_t words = 0;    ///< k of a tap, where these are more than its channels fill
};
Source source_of(const windows::Geometry& g, const Rows& in);

/// Segments of the taps z, y, x that are inside, from the first of them on. Of a channels-last tensor k is
/// tap by tap, channel after channel; of a plain one channel by channel, tap after tap.
std::vector<gemm::Segment> segments_of(const windows::Geometry& g, const Source& s, const windows::Run& z,
                                       const windows::Run& y, const windows::Run& x);
/// A product of all groups, images and regions of outputs that have the same taps. Where sums begin with what
/// their taps give (integers), list (z * ys + y) * xs + x belongs to the taps of runs z, y and x. Divided for
/// so many threads: those of the offer, whose scratch memory is for them.
void add_regions(const windows::Geometry& g, const Source& s, std::int64_t threads, gemm::Product& p);
/// Regions: each plane of a volume has its own.
std::int64_t regions_of(const windows::Geometry& g);
/// Limit of regions: their number must not grow with the data.
inline constexpr std::int64_t kMostRegions = 4096;
/// Limit of an axis: regions are found by walking along the outputs of each axis, while the offer is made.
inline constexpr std::int64_t kLongestAxis = 1 << 28;
/// Floats of k that lie together.
std::int64_t run_length(const windows::Geometry& g, const Source& s);

/// The weights of all groups, packed for `p`; `tap_columns` taps of a transposed one are columns.
Tensor packed_weights(const Tensor& source, const windows::Geometry& g, std::int64_t tap_columns,
                      const gemm::Product& p, bool plain, WeightStore& store);

}  // namespace lamina::convolutions
