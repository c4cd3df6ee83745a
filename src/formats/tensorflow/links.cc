#include "formats/tensorflow/links.h"

#include <charconv>
#include <queue>

#include "formats/read_error.h"
#include "formats/reading_points.h"

namespace lamina::tensorflow {

Reference parse_reference(std::string_view text) {
  Reference r;
  r.name = text;
  if (text.starts_with('^')) {
    r.control = true;
    r.name.remove_prefix(1);
    return r;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return r;
  const auto digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), r.port);
  if (error != std::errc() || end != digits.data() + digits.size() || r.port > 100'000)
    fail(ErrorCode::bad_file, "the reference \"{}\" has no output number behind the colon", text);
  r.name = text.substr(0, colon);
  return r;
}

Links::Links(const GraphDef& graph)
    : nodes_(graph.nodes.size()), read_(graph.nodes.size()), readers_(graph.nodes.size()) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    note_read(kReadOfNode);
    if (node.name.empty()) fail(ErrorCode::bad_file, "a node ({}) has no name", node.op);
    if (node.op.empty()) fail(ErrorCode::bad_file, "node '{}' has no op", node.name);
    if (!by_name_.emplace(node.name, static_cast<std::uint32_t>(n)).second)
      fail(ErrorCode::bad_file, "two nodes have the name \"{}\"", node.name);
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (auto text : graph.nodes[n].inputs) {
      note_read(kReadOfNode);
      const auto reference = parse_reference(text);
      const auto from = find(reference.name);
      if (!from)
        fail(ErrorCode::bad_file, "node \"{}\" ({}) reads \"{}\", which no node makes", graph.nodes[n].name,
             graph.nodes[n].op, text);
      if (reference.control) {
        nodes_[n].controls.push_back(*from);
      } else {
        nodes_[n].inputs.push_back({*from, reference.port});
        read_[*from] = true;
        readers_[*from].push_back(n);
      }
    }
  order_ = sorted(graph);
  frames_ = Frames(graph, *this, order_);
  if (frames_.any()) {
    order_ = sorted(graph);
    frames_ = Frames(graph, *this, order_);
  }
  note_waiting(graph);
}

/// What others wait for is no result either, unless only NoOp nodes do that in the end: those group results.
void Links::note_waiting(const GraphDef& graph) {
  std::vector<bool> goes_on(nodes_.size());  // not to NoOp nodes alone
  for (auto n = order_.rbegin(); n != order_.rend(); ++n) {
    if (graph.nodes[*n].op != "NoOp") goes_on[*n] = true;
    if (!goes_on[*n]) continue;
    for (auto from : nodes_[*n].controls) {
      goes_on[from] = true;
      read_[from] = true;
    }
  }
}

std::optional<std::uint32_t> Links::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? std::nullopt : std::optional(it->second);
}

/// What goes around in a loop of TensorFlow 1 is read before it is made. An Exit waits for all of its loop:
/// for a place in the order behind the nodes', one for each frame.
std::vector<std::uint32_t> Links::sorted(const GraphDef& graph) const {
  const auto places = nodes_.size() + frames_.size();
  std::vector<std::vector<std::uint32_t>> readers(places);
  std::vector<std::size_t> waiting(places, 0);
  const auto wait = [&](std::uint32_t from, std::uint32_t node) {
    note_read(16);
    readers[from].push_back(node);
    ++waiting[node];
  };
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    for (auto ref : nodes_[n].inputs)
      if (!is_next(graph.nodes[ref.node].op)) wait(ref.node, n);
    for (auto from : nodes_[n].controls)
      if (!is_next(graph.nodes[from].op)) wait(from, n);
  }
  for (std::uint32_t f = 1; f < frames_.size(); ++f) {
    const auto place = static_cast<std::uint32_t>(nodes_.size() + f);
    for (auto n : frames_[f].nodes) wait(n, place);
    for (auto n : frames_[f].exits) wait(place, n);
  }
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t n = 0; n < places; ++n)
    if (waiting[n] == 0) ready.push(n);
  std::vector<std::uint32_t> order;
  order.reserve(places);
  while (!ready.empty()) {
    const auto n = ready.top();
    ready.pop();
    if (n < nodes_.size()) order.push_back(n);
    note_read(kReadOfNode + 16 * readers[n].size());
    for (auto r : readers[n])
      if (--waiting[r] == 0) ready.push(r);
  }
  for (std::uint32_t n = 0; n < nodes_.size() && order.size() != nodes_.size(); ++n)
    if (waiting[n] != 0)
      fail_reading(FileProblem::cycle, "the nodes form a cycle with \"{}\" ({})", graph.nodes[n].name,
                   graph.nodes[n].op);
  return order;
}

}  // namespace lamina::tensorflow
