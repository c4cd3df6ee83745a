#pragma once
/// Stored indices that a TopK chose: whether the scores at them are as good as those of the reference.
#include <vector>

#include "check/agreement.h"
#include "check/index_trail.h"

namespace lamina::check {

/// Everything that is known of a result of indices.
struct IndexCase {
  const IndexReader& reader;  ///< of the reference's run
  const Node& chooser;        ///< the TopK
  const Tensor& got;
  const Tensor& stored;
  bool got_is_right = false;
  /// The TopK's scores and indices in runs with noise (check/noise.h); invalid where a run had none.
  std::vector<Tensor> scores = {}, indices = {};
  double step = 0;       ///< how far one level of the last quantiser moves a score, or 0
  double tolerance = 0;  ///< share of a score by which arithmetic alone may be off
};

/// The stored index of each place must have a score that is as good as the place's own in the reference:
/// beyond the tolerance it may be worse by three times what samples with noise show of the scores, and by one
/// level. A row whose scores move little in samples may be as far off as any row was, and three times its own
/// noise. All of that together, but for the two largest losses, may be three times as much as in a sample,
/// and a level in one of 25 elements. An index outside of the axis is wrong, and so is one that stands twice
/// in a row. Rows come in the order that the TopK's `sort` asks for; equal scores in any order.
Agreement judge_indices(const IndexCase& c);

}  // namespace lamina::check
