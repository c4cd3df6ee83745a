#pragma once
/// fork() and exit() beside what lamina does.

namespace lamina {

/// From here on it stops for both. Called before anything that takes time begins.
void follow_process();

}  // namespace lamina
