#include "base/no_destructor.h"

namespace lamina {
namespace {

bool closes = false;

/// exit() destroys static objects first and comes here then; dlclose() comes here first. That is the order of
/// DT_FINI_ARRAY, in which the compiler's own entry for static objects is the first one and the last to be
/// called.
[[gnu::destructor]] void on_close() { closes = true; }

}  // namespace

bool library_closes() noexcept { return closes; }

}  // namespace lamina
