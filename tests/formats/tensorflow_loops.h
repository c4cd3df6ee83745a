#pragma once
/// Loops of TensorFlow graphs, for tests: their nodes are added to a graph by hand.
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/tensorflow_graph.h"

namespace lamina::testing::tf {

using List = std::vector<float>;

inline Tensor whole(std::int32_t v) { return Tensor::scalar<std::int32_t>(v); }

inline Tensor shape_of(std::initializer_list<std::int32_t> sizes) {
  return Tensor::of<std::int32_t>({std::ssize(sizes)}, std::vector<std::int32_t>(sizes));
}

inline Attr of(std::string_view frame) { return word("frame_name", frame); }

/// What goes around: `name`/merge before the loop's Switch, `name` behind it, `next` closes it.
inline void carry(TensorflowGraph& g, const std::string& name, const std::string& initial,
                  const std::string& next, std::string_view frame = "while") {
  g.node("Enter", name + "/enter", {initial}, {of(frame)});
  g.node("Merge", name + "/merge", {name + "/enter", name + "/next"});
  g.node("Switch", name + "/switch", {name + "/merge", std::string(frame) + "/cond"});
  g.node("Identity", name, {name + "/switch:1"}).node("NextIteration", name + "/next", {next});
}

/// i from 0, as long as it is less than `limit`.
inline void count(TensorflowGraph& g, const std::string& limit, std::string_view frame = "while") {
  const std::string f(frame);
  g.constant(f + "/zero", whole(0)).constant(f + "/one", whole(1));
  g.node("Enter", f + "/limit", {limit}, {of(frame), flag("is_constant", true)});
  carry(g, f + "/i", f + "/zero", f + "/i/more", frame);
  g.node("Add", f + "/i/more", {f + "/i", f + "/one"})
      .node("Less", f + "/less", {f + "/i/merge", f + "/limit"});
  g.node("LoopCond", f + "/cond", {f + "/less"});
}

}  // namespace lamina::testing::tf
