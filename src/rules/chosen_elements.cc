#include "rules/chosen_elements.h"

#include <algorithm>

#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/resize.h"
#include "rules/support.h"
#include "rules/windows.h"

namespace lamina {
namespace {

bool is_nearest(const Node& n) {
  const auto* op = n.op.as<Interpolate>();
  return op && op->mode == InterpolateMode::nearest &&
         op->coordinate_transformation_mode != CoordinateMode::tf_crop_and_resize &&
         std::all_of(op->pads_begin.begin(), op->pads_begin.end(), [](auto p) { return p == 0; }) &&
         std::all_of(op->pads_end.begin(), op->pads_end.end(), [](auto p) { return p == 0; });
}

}  // namespace

bool chooses_elements(const Node& n) {
  if (!n.bodies.empty() || n.inputs.empty() || !n.inputs[0].valid()) return false;
  if (n.op.is<GatherTree>()) return false;  // it computes with what it reads
  return moves_elements(n) || n.op.has(Trait::reads_part) || n.op.is<Concat>() || n.op.is<Split>() ||
         n.op.is<VariadicSplit>() || is_nearest(n);
}

bool keeps_levels(const Graph& g, const Node& n) {
  if (!n.bodies.empty() || n.inputs.empty() || !n.inputs[0].valid()) return false;
  if (const auto* op = n.op.as<MaxPool>()) return n.outputs.size() == 1 && pooling_windows_have_elements(*op);
  if (const auto* op = n.op.as<Pad>())
    return op->pad_mode != PadMode::constant || !has_input(n, 3) || uniform_value(g, n.inputs[3]) == 0.0;
  return chooses_elements(n);
}

std::size_t data_inputs(const Node& n) { return n.op.is<Concat>() ? n.inputs.size() : 1; }

}  // namespace lamina
