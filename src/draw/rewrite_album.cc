#include "draw/rewrite_album.h"

#include <algorithm>
#include <utility>

#include "draw/graph_draw.h"

namespace lamina {
namespace {

constexpr std::size_t kMostOfARule = 120;
constexpr std::size_t kMostBytes = std::size_t{24} << 20;
constexpr int kGone = 3, kNew = 2;  // colours of groups: red, green

/// The way to the graph in words.
std::string place(const SeenRewrite& seen) {
  if (seen.where.size() < 2) return "";
  const Graph* g = &seen.outermost;
  std::string out;
  for (std::size_t i = 0; i + 1 < seen.where.size(); i += 2) {
    const NodeId owner{seen.where[i]};
    out += fmt::format("{}in a body of '{}'", out.empty() ? "" : ", ", g->label(owner));
    g = &g->node(owner).bodies.at(seen.where[i + 1]);
  }
  return out;
}

void append_unique(std::vector<NodeId>& to, const std::vector<NodeId>& from) {
  for (const auto id : from)
    if (id.valid() && std::find(to.begin(), to.end(), id) == to.end()) to.push_back(id);
}

/// Nothing of a drawing without nodes.
Scene scene(const Drawing& p, const std::string& prefix) {
  return p.nodes.empty() ? Scene() : drawn(p, prefix);
}

}  // namespace

void RewriteAlbum::before(const SeenRewrite& seen) {
  half_.reset();
  if (taken_[seen.rule.name] >= kMostOfARule || bytes_ >= kMostBytes) return;
  const auto& r = seen.rewrite;
  auto& half = half_.emplace();
  append_unique(half.matched, r.match().nodes());
  append_unique(half.matched, r.absorbed());
  append_unique(half.matched, {r.heir()});
  for (const auto& [old, value] : r.replaced())
    for (const auto& use : seen.graph.value(old).uses) half.readers.insert(use.node);
  const auto added = r.added();
  Cut cut{half.matched, {}, {}, {added.begin(), added.end()}};
  half.before = drawing_of(seen.graph, cut, &half.drawn);
}

void RewriteAlbum::after(const SeenRewrite& seen) {
  if (!half_) return;
  const auto& g = seen.graph;
  auto half = *std::exchange(half_, std::nullopt);
  for (const auto& [id, at] : half.drawn)
    if (g.node(id).erased()) half.before.nodes[at].group = kGone;
  Cut cut{seen.rewrite.added(), {}, half.readers, {}};
  append_unique(cut.nodes, half.matched);  // those that stay
  for (const auto& [old, value] : seen.rewrite.replaced())
    if (std::find(cut.values.begin(), cut.values.end(), value) == cut.values.end())
      cut.values.push_back(value);
  std::map<NodeId, std::size_t> drawn;
  auto after = drawing_of(g, cut, &drawn);
  for (const auto id : seen.rewrite.added())
    if (const auto it = drawn.find(id); it != drawn.end()) after.nodes[it->second].group = kNew;
  RewriteDrawings p{place(seen), scene(half.before, fmt::format("r{}b", seen.number)),
                    scene(after, fmt::format("r{}a", seen.number))};
  bytes_ += p.bytes();
  ++taken_[seen.rule.name];
  drawings_.insert_or_assign(seen.number, std::move(p));
}

void RewriteAlbum::undone(std::size_t first) {
  half_.reset();
  drawings_.erase(drawings_.lower_bound(first), drawings_.end());
  taken_.clear();
  bytes_ = 0;
  for (const auto& [number, p] : drawings_) bytes_ += p.bytes();
}

const RewriteDrawings* RewriteAlbum::of(std::size_t number) const {
  const auto it = drawings_.find(number);
  return it == drawings_.end() ? nullptr : &it->second;
}

}  // namespace lamina
