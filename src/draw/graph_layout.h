#pragma once
/// Layered layout of a directed graph: sizes of boxes in, coordinates out. Pure and deterministic.
///
/// Ranks by longest path, order within a rank by barycenter sweeps, x by Brandes and Koepf's four alignments.
/// Edges over several ranks go through points of their own; edges that leave one port share them.
#include <cstddef>
#include <vector>

namespace lamina {

struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};

struct LayoutNode {
  double width = 0, height = 0;
};

struct LayoutEdge {
  std::size_t from = 0, to = 0;
  std::size_t port = 0;    ///< of `from`: edges of one port are bundled
  double from_offset = 0;  ///< where it leaves, from the middle of the lower side
  double to_offset = 0;    ///< where it enters, from the middle of the upper side
};

struct LayoutOptions {
  double rank_gap = 22;  ///< between ranks; more where lines go far
  double node_gap = 22;  ///< between boxes of a rank
  double line_gap = 12;  ///< beside a passing line
  /// Ranks to use, one per node, edges lead downwards in them; empty: longest_path_ranks().
  std::vector<std::size_t> ranks;
};

struct GraphLayout {
  std::vector<Point> nodes;        ///< upper left corners
  std::vector<std::size_t> ranks;  ///< 0 is the uppermost
  /// From the lower side of `from` to the upper side of `to`. Points come in pairs: a vertical line within a
  /// rank, and between the pairs a curve from rank to rank. Edges against the direction run upwards.
  std::vector<std::vector<Point>> edges;
  double width = 0, height = 0;
};

GraphLayout lay_out(const std::vector<LayoutNode>& nodes, const std::vector<LayoutEdge>& edges,
                    const LayoutOptions& options = {});

/// A long graph is cut where few lines pass and set in columns side by side, like the text of a newspaper.
/// `columns`: at most so many; 0: as many as bring width : height near `ratio`. Paths go from column to
/// column through the gutter: straight lines between points of pairs, and curves of no length between the
/// pairs.
GraphLayout lay_out_in_columns(const std::vector<LayoutNode>& nodes, const std::vector<LayoutEdge>& edges,
                               std::size_t columns, double ratio, const LayoutOptions& options = {});

/// The ranks alone.
std::vector<std::size_t> longest_path_ranks(std::size_t nodes, const std::vector<LayoutEdge>& edges);

}  // namespace lamina
