#pragma once
/// Where the bits of a BinaryConvolution lie: the packed picture with its borders, so that every window is
/// whole, and the packed weights.
#include <array>
#include <optional>
#include <vector>

#include "kernels/native/binary/lines.h"
#include "kernels/native/convolution/window.h"
#include "kernels/rows.h"
#include "kernels/weights.h"

namespace lamina::binary {

/// Vectors of outputs that a kernel computes together.
struct Panel {
  std::int64_t group, vector, vectors;
};

/// Where the windows of the outputs along an axis begin, in bytes, and their part of the kind's number.
struct Place {
  std::int64_t offset, kind;
};

/// The picture as its windows read it, in points of some bytes.
struct Picture {
  windows::Geometry g;
  int pad_value = 0;
  windows::Triple padded{1, 1, 1};                         ///< points
  std::int64_t point = 1, line = 1, plane = 1, image = 1;  ///< bytes
  std::array<std::vector<Place>, 3> places;

  /// Nothing when windows reach so far that their bits were larger than all tensors. `point_bytes`: of all
  /// parts in which points are kept. `as_it_lies`: no window reaches outside, and no point is left out.
  static std::optional<Picture> of(const windows::Geometry& g, int pad_value, std::int64_t point,
                                   std::int64_t point_bytes, bool as_it_lies = false);

  std::int64_t in_channels() const { return g.inputs / g.groups; }
  std::int64_t counted() const { return g.taps() * in_channels(); }
  /// What counts are taken from: f32 [kind][group][output], `stride` outputs to a group. The border counts as
  /// -1; what another pad_value makes of it is added for each kind of output, corner, border or inside.
  Tensor starts(const Tensor& weights, std::int64_t groups, std::int64_t stride) const;
  /// What they depend on beside the weights and their own shape.
  std::string starts_key() const;
  PackedSize starts_size(std::int64_t groups, std::int64_t stride) const;
};

/// How one node's input is packed for some kernels.
struct Packing : Picture {
  const Kernels* kernels = nullptr;
  std::int64_t units = 1;         ///< of a group's channels
  std::vector<Segment> segments;  ///< of a window
  std::int64_t vectors = 1;       ///< of outputs of a group
  std::vector<Panel> panels;
  bool as_it_lies = false;  ///< windows read the input itself

  /// Nothing when windows reach far outside.
  static std::optional<Packing> of(const windows::Geometry& g, const Kernels& kernels, int pad_value,
                                   bool as_it_lies = false);

  std::int64_t outputs() const { return g.outputs / g.groups; }  ///< of a group
  std::int64_t vector_bytes() const { return g.taps() * units * kernels->unit_bytes * kernels->lanes; }
  std::int64_t all_lanes() const { return g.groups * vectors * kernels->lanes; }
  /// The packing for an input with these rows: bits are read in place if they are in the order of windows.
  Packing reading(const Rows& in) const;
  /// Bytes of the packed image, and of what kernels read behind it.
  std::size_t bytes() const { return static_cast<std::size_t>(g.images * image) + 64; }
  /// The bytes that pack() fills.
  std::size_t scratch_bytes() const { return as_it_lies ? 0 : bytes(); }
  /// Packs the pictures, if need be, on the threads of the current arena.
  void pack(const Rows& in, const void* from, void* scratch) const;
  /// What windows read.
  const std::uint8_t* source(const void* from, const void* scratch) const {
    return static_cast<const std::uint8_t*>(as_it_lies ? from : scratch);
  }
  /// For the cost table: pairs of bits, as many as a lookup would count in the same time.
  double work(const Machine& machine) const;

  /// [group][vector][tap][unit][lane] of the kernels' units.
  Tensor weights(const Tensor& weights) const;
  PackedSize weights_size() const;
  /// What counts are taken from, [kind][group][vector][lane].
  Tensor starts(const Tensor& weights) const {
    return Picture::starts(weights, g.groups, vectors * kernels->lanes);
  }
  PackedSize starts_size() const { return Picture::starts_size(g.groups, vectors * kernels->lanes); }
  /// The differences with which what starts tell is not above 0 any more, u16, in the order of lanes: those
  /// of even ones, then those of odd ones of each vector.
  Tensor limits(const Tensor& starts) const;
};

/// Signs of a constant of any type, by element: true above 0.
std::vector<std::uint8_t> signs_of(const Tensor& weights);

}  // namespace lamina::binary
