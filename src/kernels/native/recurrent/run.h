#pragma once
/// Recurrent networks: what offer.cc prepares and run.cc runs.
#include <vector>

#include "base/work_partition.h"
#include "kernels/kernel.h"
#include "kernels/native/recurrent/steps.h"

namespace lamina {

enum class RecurrentCell : std::uint8_t { lstm, gru, gru_linear, rnn };

/// Sizes of a node, and how it is cut: tasks of one direction and some sequences, the time in chunks.
struct RecurrentSizes {
  const RecurrentTable* table;
  std::int64_t batch, time, input, hidden, gates, directions;
  std::int64_t lanes, blocks, padded;
  std::int64_t width;  ///< of a row of gates, padding included
  std::int64_t task_rows, chunk;
  double product_us;  ///< of a multiply-add
  WorkPartition tasks;
  std::size_t gates_floats, state_floats, slot_bytes;  ///< scratch of a slot of tasks
};

/// Panels per direction; what a cell has not is invalid.
struct RecurrentWeights {
  Tensor w, r, r_candidate, bias, r_bias, peepholes;
};

struct RecurrentLayer {
  RecurrentCell cell;
  bool sequence;
  bool reverse;      ///< the first direction; the second always is
  int lengths = -1;  ///< input, or -1
  bool wide_lengths = false;
  bool coupled;
  float clip;
  std::size_t outputs;
  RecurrentSizes sizes;
  RecurrentWeights weights;
  std::vector<GateActivation> activations;  ///< three per direction
};

/// Adds threads where they pay.
void run_recurrent(const RecurrentLayer& code, const RunArgs& args);

}  // namespace lamina
