#pragma once
/// Operators of which several have one name (versions of a library's): another name for files of compiled
/// models.
#include <string>

namespace lamina {

/// A base of such an operator, beside AnyOp.
class HasSavedName {
 public:
  virtual ~HasSavedName() = default;
  virtual std::string saved_name() const = 0;
};

}  // namespace lamina
