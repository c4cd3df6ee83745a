#include "base/error.h"

#include "base/text.h"

namespace lamina {

Error::Error(ErrorCode code, std::string_view text) : std::runtime_error(one_line(text)), code_(code) {}
Error::~Error() = default;

}  // namespace lamina
