#pragma once
/// Stored indices that a TopK chose: whether the scores at them are as good as those of the reference.
#include <vector>

#include "check/agreement.h"
#include "check/index_trail.h"

namespace lamina::checking {

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

/// Judges stored indices by the scores of the reference. The score at the stored index of each place must be
/// as good as the score that belongs to the place. Beyond the tolerance it may be worse by one level of the
/// quantiser and by the noise that samples show: three times that of its own row and once that of the
/// noisiest row, at most three times the latter. All losses but the two largest may add up to three times the
/// largest sum in a sample, and a level in one of 25 elements. An index outside of the axis is wrong, and so
/// is one that occurs twice in a row. Rows are in the order that the TopK's `sort` asks for; equal scores in
/// any.
Agreement judge_indices(const IndexCase& c);

}  // namespace lamina::checking
