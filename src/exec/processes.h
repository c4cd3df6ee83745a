#pragma once
/// fork() and exit() while lamina works.

namespace lamina {

/// Prepares for fork and exit. To be called before any work that takes time begins.
void follow_process();

}  // namespace lamina
