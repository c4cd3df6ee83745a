#include "formats/tensorflow/frames.h"

#include "base/error.h"
#include "formats/tensorflow/links.h"

namespace lamina::tensorflow {

bool is_enter(std::string_view op) { return op == "Enter" || op == "RefEnter"; }
bool is_exit(std::string_view op) { return op == "Exit" || op == "RefExit"; }
bool is_merge(std::string_view op) { return op == "Merge" || op == "RefMerge"; }
bool is_switch(std::string_view op) { return op == "Switch" || op == "RefSwitch"; }
bool is_next(std::string_view op) { return op == "NextIteration" || op == "RefNextIteration"; }

namespace {

std::string_view frame_name(const NodeDef& node) {
  for (const auto& [key, message] : node.attributes)
    if (key == "frame_name")
      if (const auto value = parse_attribute(message); value.kind == AttrValue::text) return value.bytes;
  fail(ErrorCode::bad_file, "node \"{}\" ({}) has no frame_name", node.name, node.op);
}

}  // namespace

Frames::Frames(const GraphDef& graph, const Links& links, const std::vector<std::uint32_t>& order) {
  bool any_loop = false;
  for (const auto& node : graph.nodes) any_loop = any_loop || is_enter(node.op);
  if (!any_loop) return;
  of_.assign(graph.nodes.size(), 0);
  for (auto n : order) place(graph, links, n);
  for (auto n : order) {
    frames_[of_[n]].nodes.push_back(n);
    find_variable(graph, links, n);
  }
}

/// The deepest frame of what a node reads and waits for.
std::uint32_t Frames::inputs_frame(const LinkedNode& node, const GraphDef& graph) const {
  std::uint32_t deepest = 0;
  const auto join = [&](std::uint32_t from) {
    if (!is_next(graph.nodes[from].op) && depth(of_[from]) > depth(deepest)) deepest = of_[from];
  };
  for (auto ref : node.inputs) join(ref.node);
  for (auto from : node.controls) join(from);
  return deepest;
}

void Frames::place(const GraphDef& graph, const Links& links, std::uint32_t n) {
  const auto& node = graph.nodes[n];
  if (node.op.starts_with("Placeholder")) return;  // whatever it waits for
  const auto around = inputs_frame(links[n], graph);
  of_[n] = around;
  if (is_exit(node.op) && around != 0) {
    frames_[around].exits.push_back(n);
    left_by_[n] = around;
    of_[n] = frames_[around].parent;
  }
  if (!is_enter(node.op)) return;
  const auto [it, added] = by_name_.try_emplace(frame_name(node), static_cast<std::uint32_t>(frames_.size()));
  if (added) {
    frames_.emplace_back();
    frames_.back().name = it->first;
    frames_.back().parent = around;
  }
  of_[n] = it->second;
  enter(node, it->second, around);
}

/// A loop is within the innermost of the frames that its Enters read from.
void Frames::enter(const NodeDef& node, std::uint32_t frame, std::uint32_t around) {
  auto& parent = frames_[frame].parent;
  if (is_within(around, frame) || !(is_within(around, parent) || is_within(parent, around)))
    fail(ErrorCode::bad_file, "node \"{}\" ({}) enters the loop \"{}\" from elsewhere than others do",
         node.name, node.op, frames_[frame].name);
  if (is_within(around, parent)) parent = around;
  if (depth(frame) > kDeepest) fail(ErrorCode::bad_file, "loops are nested more than {} deep", kDeepest);
}

bool Frames::is_within(std::uint32_t frame, std::uint32_t outer) const {
  while (frame != 0 && frame != outer) frame = frames_[frame].parent;
  return frame == outer;
}

std::uint32_t Frames::depth(std::uint32_t frame) const {
  std::uint32_t depth = 0;
  for (; frame != 0; frame = frames_[frame].parent) ++depth;
  return depth;
}

/// Merges that a NextIteration closes, and the LoopCond.
void Frames::find_variable(const GraphDef& graph, const Links& links, std::uint32_t n) {
  if (of_[n] == 0) return;
  auto& frame = frames_[of_[n]];
  const auto& node = graph.nodes[n];
  if (node.op == "LoopCond") {
    if (frame.has_condition)
      fail(ErrorCode::bad_file, "the loop \"{}\" has two conditions, \"{}\" and \"{}\"", frame.name,
           graph.nodes[frame.condition].name, node.name);
    frame.condition = n;
    frame.has_condition = true;
  }
  const auto& inputs = links[n].inputs;
  if (!is_merge(node.op) || inputs.size() != 2) return;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto enter = inputs[i], next = inputs[1 - i];
    if (is_enter(graph.nodes[enter.node].op) && is_next(graph.nodes[next.node].op)) {
      frame.variables.push_back({enter.node, n, next.node});
    }
  }
}

}  // namespace lamina::tensorflow
