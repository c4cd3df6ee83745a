#pragma once
/// Complex numbers: two values, the real parts and the imaginary ones, that an Opaque node holds together.
#include <optional>

#include "formats/tensorflow/call.h"

namespace lamina::tensorflow {

bool is_complex(const Graph& graph, ValueId v);
bool is_complex_type(std::int64_t data_type);
/// What a node makes of inputs some of which are complex: parts by themselves where that is right. Nothing
/// for operators that do not take complex numbers.
std::optional<Values> convert_complex(Call& c, Converter converter);
ValueId make_complex(Call& c, ValueId real, ValueId imaginary);
/// Erases complex numbers that nothing reads.
void erase_unread_complex(Graph& graph);

}  // namespace lamina::tensorflow
