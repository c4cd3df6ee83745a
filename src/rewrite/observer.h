#pragma once
/// Observers of rewrites, such as a report with drawings. An observer changes nothing.
#include "rewrite/ledger.h"
#include "rewrite/rule.h"

namespace lamina {

/// One rewrite as it is seen.
struct SeenRewrite {
  const Rule& rule;
  const Rewrite& rewrite;
  const Graph& graph;      ///< graph that the rewrite changes: the model's, or a body in it
  const Graph& outermost;  ///< the model's
  const NodePath& where;   ///< the way from there to `graph`, empty where they are the same
  std::size_t number;      ///< it is the ledger's firing of that number, counted from 0
};

class RewriteObserver {
 public:
  virtual ~RewriteObserver() = default;
  /// The new nodes are there and nobody outside of them reads them; what goes is still there.
  virtual void before(const SeenRewrite& seen) = 0;
  /// The old ones are gone, names and types are those that stay.
  virtual void after(const SeenRewrite& seen) = 0;
  /// Rewrites from that number on never were: all is done anew, without a rule that does not end.
  virtual void undone(std::size_t first) = 0;
};

}  // namespace lamina
