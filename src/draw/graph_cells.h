#pragma once
/// The data of the steps of the layout: a graph in ranks, where each rank is a row of cells.
#include <cstdint>
#include <vector>

#include "draw/graph_layout.h"

namespace lamina {

/// A box, or a point where a line passes through a rank.
struct Cell {
  std::size_t rank = 0;
  double width = 0;
  bool line = false;
};

/// Offsets are from the middle of the cell.
struct CellEdge {
  std::uint32_t cell = 0;      ///< the other one
  double here = 0, there = 0;  ///< where the line meets this cell and the other one
};

struct Cells {
  std::vector<Cell> cells;
  std::vector<std::vector<CellEdge>> up, down;    ///< to the rank above and below
  std::vector<std::vector<std::uint32_t>> ranks;  ///< from left to right
};

/// Sets the order within the ranks so that few lines cross.
void order_cells(Cells& cells);
/// x of the middle of every cell; the smallest left side is at 0.
std::vector<double> align_cells(const Cells& cells, const LayoutOptions& options);

}  // namespace lamina
