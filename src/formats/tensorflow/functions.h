#pragma once
/// Functions of a GraphDef's library.
#include "formats/tensorflow/proto.h"

namespace lamina::tensorflow {

/// Puts the bodies of called functions in place of the calls, and for If both branches between Switch and
/// Merge. Throws Error(bad_file) for functions that call each other too deep or expand to too many nodes.
void inline_functions(GraphDef& graph);

}  // namespace lamina::tensorflow
