#pragma once
/// Where the bits of a BinaryConvolution lie: the packed picture with its borders, so that every window is
/// whole, and the packed weights.
#include <array>
#include <optional>
#include <vector>

#include "kernels/native/binary_lines.h"
#include "kernels/native/window.h"

namespace lamina::binary {

/// Vectors of outputs that a kernel computes together.
struct Panel {
  std::int64_t group, vector, vectors;
};

/// Where the windows of the outputs along an axis begin, in bytes, and their part of the kind's number.
struct Place {
  std::int64_t offset, kind;
};

/// Of one node for some kernels.
struct Packing {
  windows::Geometry g;
  const Kernels* kernels = nullptr;
  bool depthwise = false;
  int pad_value = 0;
  windows::Triple padded{1, 1, 1};                         ///< what windows read, in points
  std::int64_t units = 1;                                  ///< of a group's channels
  std::int64_t point = 1, line = 1, plane = 1, image = 1;  ///< packed bytes
  std::vector<Segment> segments;                           ///< of a window
  std::int64_t vectors = 1;                                ///< of outputs of a group
  std::vector<Panel> panels;
  std::array<std::vector<Place>, 3> places;

  /// Nothing when windows reach so far that their bits were larger than all tensors.
  static std::optional<Packing> of(const windows::Geometry& g, const Kernels& kernels, bool depthwise,
                                   int pad_value);

  std::int64_t in_channels() const { return g.inputs / g.groups; }
  std::int64_t outputs() const { return depthwise ? g.outputs : g.outputs / g.groups; }
  std::int64_t groups() const { return depthwise ? 1 : g.groups; }  ///< with weights of their own
  std::int64_t vector_bytes() const {
    return (depthwise ? g.taps() : g.taps() * units) * kernels->unit_bytes * kernels->lanes;
  }
  std::int64_t all_lanes() const { return groups() * vectors * kernels->lanes; }
  std::int64_t counted() const { return g.taps() * in_channels(); }
  std::size_t bytes() const { return static_cast<std::size_t>(g.images * image) + 64; }

  /// [group][vector][tap][unit][lane] of the kernels' units; of depthwise [vector][tap][lane] bytes.
  Tensor weights(const Tensor& weights) const;
  /// What counts are taken from: i32 [kind][group][vector][lane]. The border counts as -1; what another
  /// pad_value makes of it is added for each kind of output, corner, border or inside.
  Tensor starts(const Tensor& weights) const;
};

}  // namespace lamina::binary
