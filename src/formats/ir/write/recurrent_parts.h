#pragma once
/// Recurrent networks in simpler operators.
#include "formats/ir/write/legalise.h"
#include "ops/recurrent.h"

namespace lamina::ir {

// Cells.
std::vector<ValueId> lstm_in_parts(Legalisation& c);
std::vector<ValueId> gru_in_parts(Legalisation& c);
std::vector<ValueId> rnn_in_parts(Legalisation& c);

/// Inputs of a sequence; all are there.
struct SequenceInputs {
  ValueId x, lengths;
  std::vector<ValueId> states;      ///< [N,D,h]
  std::vector<ValueId> parameters;  ///< of the cell, with an axis of directions in front: W, R, B?, P?
};
/// Y and the last states. `cells`: for each direction.
std::vector<ValueId> sequence_in_steps(Legalisation& c, const SequenceInputs& in,
                                       const std::vector<Op>& cells, Direction direction);

}  // namespace lamina::ir
