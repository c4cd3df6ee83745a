#pragma once
/// Drawings of rewrites, taken while rules rewrite a graph.
#include <optional>
#include <unordered_map>

#include "draw/cutout.h"
#include "draw/graph_box.h"
#include "rewrite/observer.h"

namespace lamina {

struct RewriteDrawings {
  std::string where;  ///< "in a body of 'loop'", or empty
  Scene before, after;
  std::size_t bytes() const { return before.svg.size() + after.svg.size(); }
};

/// Keeps drawings of the first rewrites of each rule, as long as all of them are not too large.
class RewriteAlbum : public RewriteObserver {
 public:
  void before(const SeenRewrite& seen) override;
  void after(const SeenRewrite& seen) override;
  void undone(std::size_t first) override;

  /// Drawings of the ledger's firing of that number; null if there are none.
  const RewriteDrawings* of(std::size_t number) const;

 private:
  /// A rewrite of which only the first half has been seen.
  struct Half {
    Drawing before;
    std::map<NodeId, std::size_t> drawn;
    std::vector<NodeId> matched;
    std::set<NodeId> readers;  // of what the rewrite replaces
  };

  std::optional<Half> half_;
  std::map<std::size_t, RewriteDrawings> drawings_;
  std::unordered_map<std::string, std::size_t> taken_;  // by rule
  std::size_t bytes_ = 0;
};

}  // namespace lamina
