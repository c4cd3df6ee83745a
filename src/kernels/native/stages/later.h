#pragma once
/// The stages of an epilogue that a kernel leaves over, behind it in the same step.
#include "kernels/kernel.h"

namespace lamina {

/// Makes offers that take only the first stages of the node's epilogue take all of them: the later ones pass
/// over the output once more, in place, as soon as it is written. Offers where that is not possible stay as
/// they are, with a sentence that says why.
void add_later_stages(const NodeView& view, Answers& answers);

}  // namespace lamina
