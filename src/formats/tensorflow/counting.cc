#include "formats/tensorflow/counting.h"

#include <set>

namespace lamina::tensorflow {
namespace {

constexpr std::size_t kMostBounds = 16;
constexpr int kMostSteps = 64;  // Identity nodes one behind the other

bool flag_of(const NodeDef& node, std::string_view name) {
  for (const auto& [key, message] : node.attributes)
    if (key == name) return parse_attribute(message).i != 0;
  return false;
}

}  // namespace

LoopShape::LoopShape(const GraphDef& graph, const Links& links, const LoopFrame& frame)
    : graph_(graph), links_(links), frame_(frame) {
  for (auto exit : frame.exits)
    if (links[exit].inputs.size() == 1) ++exits_[links[exit].inputs[0].node];
}

/// The reference without the Identity nodes before it.
Ref LoopShape::behind(Ref ref) const {
  for (int steps = 0; steps < kMostSteps; ++steps) {
    const auto& inputs = links_[ref.node].inputs;
    if (op(ref.node) == "Identity" && inputs.size() == 1)
      ref = inputs[0];
    else if (op(ref.node) == "IdentityN" && ref.port < inputs.size())
      ref = inputs[ref.port];
    else
      break;
  }
  return ref;
}

/// The Merge of the variable whose value in an iteration this is.
std::optional<std::uint32_t> LoopShape::carried(Ref ref) const {
  ref = behind(ref);
  const auto& inputs = links_[ref.node].inputs;
  const bool goes_on = is_switch(op(ref.node)) && ref.port == 1 && inputs.size() == 2 &&
                       inputs[1].node == frame_.condition && inputs[0].port == 0;
  return goes_on ? std::optional(inputs[0].node) : std::nullopt;
}

bool LoopShape::stays(const LoopVariable& v) const {
  const auto& inputs = links_[v.next].inputs;
  return !inputs.empty() && carried(inputs[0]) == v.merge;
}

std::optional<std::uint32_t> LoopShape::step(const LoopVariable& v) const {
  const auto& next = links_[v.next].inputs;
  if (next.empty()) return std::nullopt;
  const auto sum = behind(next[0]);
  const auto& terms = links_[sum.node].inputs;
  if ((op(sum.node) != "Add" && op(sum.node) != "AddV2") || terms.size() != 2) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    auto other = behind(terms[1 - i]);
    if (is_enter(op(other.node)) && links_[other.node].inputs.size() == 1)
      other = behind(links_[other.node].inputs[0]);
    if (carried(terms[i]) == v.merge && op(other.node) == "Const") return other.node;
  }
  return std::nullopt;
}

std::vector<Bound> LoopShape::bounds() const {
  std::vector<Bound> found;
  std::vector<Ref> open(links_[frame_.condition].inputs);
  while (!open.empty()) {
    const auto ref = behind(open.back());
    open.pop_back();
    const auto& inputs = links_[ref.node].inputs;
    const bool less = op(ref.node) == "Less", greater = op(ref.node) == "Greater";
    if (inputs.size() != 2 || found.size() >= kMostBounds) return {};
    if (op(ref.node) == "LogicalAnd" && open.size() < kMostBounds) {
      open.insert(open.end(), inputs.begin(), inputs.end());
    } else if (less || greater) {
      const auto value = behind(inputs[less ? 0 : 1]);
      if (!is_merge(op(value.node)) || value.port != 0) return {};
      found.push_back({value.node, inputs[less ? 1 : 0]});
    } else {
      return {};
    }
  }
  return found;
}

/// No other node may read the list while it is written.
std::optional<Appending> LoopShape::appends(const LoopVariable& v) const {
  const auto& next = links_[v.next].inputs;
  if (next.size() != 1) return std::nullopt;
  const auto write = behind(next[0]).node;
  for (auto n = next[0].node; n != write; n = links_[n].inputs[0].node)
    if (op(n) != "Identity" || links_.reads(n) != 1) return std::nullopt;
  const auto& inputs = links_[write].inputs;
  const bool array = op(write).starts_with("TensorArrayWrite") && inputs.size() == 4,
             list = op(write) == "TensorListSetItem" && inputs.size() == 3;
  if (!array && !list) return std::nullopt;
  auto before = inputs[array ? 3 : 0];
  if (carried(before) != v.merge || links_.reads(write) != 1 || links_.reads(v.merge) != 1)
    return std::nullopt;
  for (; op(before.node) == "Identity"; before = links_[before.node].inputs[0])  // as far as carried() went
    if (links_.reads(before.node) != 1) return std::nullopt;
  const auto exits = exits_.find(before.node);
  const std::size_t left = exits == exits_.end() ? 0 : exits->second;
  const auto place = carried(inputs[1]);
  if (links_.reads(before.node) != left + 1 || !place) return std::nullopt;
  Appending out{inputs[2], *place, false};
  if (list)
    out.grows = flag_of(graph_.nodes[write], "resize_if_index_out_of_bounds");
  else
    out.grows = flag_of(graph_.nodes[behind(links_[v.enter].inputs.at(0)).node], "dynamic_size");
  return out;
}

bool LoopShape::is_only_joined(const LoopVariable& list, const std::vector<bool>& needed) const {
  std::vector<Ref> open;
  for (auto exit : frame_.exits) {
    const auto& from = links_[exit].inputs;
    if (from.empty() || !needed[exit] || !is_switch(op(from[0].node))) continue;
    const auto& inputs = links_[from[0].node].inputs;
    if (!inputs.empty() && inputs[0].node == list.merge) open.push_back({exit, 0});
  }
  bool joins = false;
  while (!open.empty()) {
    const auto read = open.back();
    open.pop_back();
    if (!links_.is_read(read.node)) return false;  // a result of the graph
    for (auto n : std::set(links_.readers(read.node).begin(), links_.readers(read.node).end())) {
      const auto& inputs = links_[n].inputs;
      for (std::uint32_t port = 0; port < inputs.size(); ++port) {
        if (inputs[port] != read) continue;
        if (op(n) == "Identity" || op(n) == "IdentityN")
          open.push_back({n, port});
        else if (op(n).starts_with("TensorArrayConcat") || op(n).starts_with("TensorListConcat"))
          joins = true;
        else if (!op(n).starts_with("TensorArraySize") && op(n) != "TensorListLength")
          return false;
      }
    }
  }
  return joins;
}

bool LoopShape::begins_unwritten(const LoopVariable& v) const {
  const auto& enter = links_[v.enter].inputs;
  if (enter.size() != 1) return false;
  const auto made = op(behind(enter[0]).node);
  return made == "TensorListReserve" || made == "EmptyTensorList" || made == "TensorArray" ||
         made == "TensorArrayV2" || made == "TensorArrayV3";
}

}  // namespace lamina::tensorflow
