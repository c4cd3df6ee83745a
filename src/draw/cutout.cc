#include "draw/cutout.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace lamina {
namespace {

constexpr std::size_t kMostNodes = 24;   // that are asked for
constexpr std::size_t kMostSources = 8;  // makers of what they read
constexpr std::size_t kMostReaders = 4;  // of one value
constexpr std::size_t kMostNeighbours = 24;
constexpr std::size_t kTooltip = 700, kShortTooltip = 240, kName = 120;  // characters

class CutMaker {
 public:
  CutMaker(const Graph& g, const Cut& cut) : g_(g), cut_(cut) {}

  Drawing make(std::map<NodeId, std::size_t>* index) {
    for (const auto id : cut_.nodes) {
      if (g_.node(id).erased() || at_.contains(id)) continue;
      if (at_.size() == kMostNodes) {
        ++left_out_;
        continue;
      }
      at_[id] = add(g_, id);
    }
    core_ = at_;
    for (const auto& [id, at] : core_) connect_inputs(id, at);
    for (const auto& [id, at] : core_) connect_outputs(id, at);
    for (const auto v : cut_.values) connect_value(v);
    if (left_out_ > 0) p_.nodes.push_back(remark(fmt::format("and {} more nodes", left_out_)));
    if (index) *index = core_;
    return std::move(p_);
  }

 private:
  std::size_t add(const Graph& g, NodeId id) {
    p_.nodes.push_back(drawing_of(g, id));
    auto& n = p_.nodes.back();
    n.name = clipped(n.name, kName);
    n.tooltip = clipped_lines(n.tooltip, kTooltip);
    if (!n.bodies.empty()) n.lines.push_back(n.bodies.size() == 1 ? "with a body" : "with bodies");
    n.bodies.clear();
    return p_.nodes.size() - 1;
  }
  static std::string clipped_lines(std::string text, std::size_t most) {
    if (text.size() <= most) return text;
    const auto end = text.rfind('\n', most);
    text.resize(end == std::string::npos ? most : end);
    return text + "\n\xE2\x80\xA6";
  }
  static DrawingNode remark(std::string words) {
    DrawingNode n;
    n.form = DrawingNode::Form::small;
    n.title = n.tooltip = std::move(words);
    n.faded = true;
    return n;
  }
  DrawingNode pill(const std::string& name, const TensorType& type, const char* what) const {
    DrawingNode n;
    n.form = DrawingNode::Form::pill;
    n.hue = kPort;
    n.title = name;
    n.tooltip = fmt::format("{} \"{}\" {}", what, name, to_string(type));
    n.ports = {short_type(type)};
    return n;
  }

  /// The node as a neighbour, once.
  std::optional<std::size_t> neighbour(NodeId id) {
    if (const auto it = at_.find(id); it != at_.end()) return it->second;
    if (cut_.hidden.contains(id) || at_.size() - core_.size() >= kMostNeighbours) return std::nullopt;
    const auto at = add(g_, id);
    auto& n = p_.nodes[at];
    n.faded = true;
    n.lines.clear();
    n.stages.clear();
    n.tooltip = clipped_lines(n.tooltip, kShortTooltip);
    return at_[id] = at;
  }
  void connect(std::size_t from, std::size_t port, std::size_t to, ValueId v) {
    const auto& type = g_.type(v);
    p_.edges.push_back(
        {from, port, to, fmt::format("{} {}", g_.value(v).name, to_string(type)),
         !is_float(type.element) && type.shape.known() && element_count(type.shape.sizes()) <= 64});
  }
  /// What makes a value that is no constant, and which of its outputs it is.
  std::optional<std::pair<std::size_t, std::size_t>> maker(ValueId v) {
    if (const auto p = g_.producer(v); p.valid()) {
      const auto at = neighbour(p);
      if (!at) return std::nullopt;
      return std::pair(*at, std::size_t{g_.value(v).output});
    }
    if (const auto it = pills_.find(v); it != pills_.end()) return std::pair(it->second, std::size_t{0});
    if (pills_.size() >= kMostNeighbours) return std::nullopt;
    pills_[v] = p_.nodes.size();
    auto n = pill(g_.value(v).name, g_.type(v), g_.constant(v) ? "constant" : "input");
    if (g_.constant(v)) n.form = DrawingNode::Form::small, n.title = "constant " + n.title;
    p_.nodes.push_back(std::move(n));
    return std::pair(p_.nodes.size() - 1, std::size_t{0});
  }

  void connect_inputs(NodeId id, std::size_t at) {
    std::size_t drawn = 0, more = 0;
    for (const auto v : g_.node(id).inputs) {
      if (!v.valid() || g_.constant(v)) continue;  // the box names those that say something
      const auto from = drawn < kMostSources || core_.contains(g_.producer(v)) ? maker(v) : std::nullopt;
      if (from)
        ++drawn, connect(from->first, from->second, at, v);
      else
        ++more;
    }
    if (more == 0) return;
    p_.nodes.push_back(remark(fmt::format("{} more", more)));
    p_.edges.push_back({p_.nodes.size() - 1, 0, at, "", false});
  }
  void connect_outputs(NodeId id, std::size_t at) {
    for (const auto v : g_.node(id).outputs) connect_readers(v, at, g_.value(v).output, nullptr);
  }
  /// Readers among `only`, or all that are no core nodes: these have drawn their lines.
  void connect_readers(ValueId v, std::size_t from, std::size_t port, const std::set<NodeId>* only) {
    std::size_t drawn = 0, more = 0;
    std::set<NodeId> seen;
    for (const auto& use : g_.value(v).uses) {
      if (core_.contains(use.node) || cut_.hidden.contains(use.node)) continue;
      if ((only && !only->contains(use.node)) || !seen.insert(use.node).second) continue;
      const auto at = drawn < kMostReaders ? neighbour(use.node) : std::nullopt;
      if (at)
        ++drawn, connect(from, port, *at, v);
      else
        ++more;
    }
    for (const auto& r : g_.results()) {
      if (r.value != v) continue;
      p_.nodes.push_back(pill(r.name, g_.type(v), "output"));
      p_.nodes.back().ports.clear();
      connect(from, port, p_.nodes.size() - 1, v);
    }
    if (more == 0) return;
    p_.nodes.push_back(remark(fmt::format("{} more", more)));
    connect(from, port, p_.nodes.size() - 1, v);
  }
  void connect_value(ValueId v) {
    if (core_.contains(g_.producer(v))) return;
    if (const auto from = maker(v)) connect_readers(v, from->first, from->second, &cut_.readers);
  }

  const Graph& g_;
  const Cut& cut_;
  Drawing p_;
  std::map<NodeId, std::size_t> at_, core_;
  std::map<ValueId, std::size_t> pills_;
  std::size_t left_out_ = 0;
};

}  // namespace

Drawing drawing_of(const Graph& graph, const Cut& cut, std::map<NodeId, std::size_t>* index) {
  return CutMaker(graph, cut).make(index);
}

}  // namespace lamina
