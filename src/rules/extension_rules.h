#pragma once
/// Rules of libraries.
#include <memory>

#include "extension/extensions.h"
#include "rules/rules.h"

namespace lamina {

/// The rules of all these libraries; null where there are none. Throws Error(bad_file) for a text that is
/// none, an operator that neither lamina nor a library has, and a name that a rule of lamina's has.
std::shared_ptr<const Rules> extension_rules(const std::shared_ptr<const ExtensionSet>& extensions);

/// Element-wise operators join the epilogue of a library's operation that takes stages; among
/// extension_rules() where there is one.
Rule fuse_custom_simple();

}  // namespace lamina
