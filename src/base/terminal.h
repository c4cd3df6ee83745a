#pragma once
namespace lamina {
/// True when the file descriptor (1: standard output, 2: standard error) is a terminal.
bool is_terminal(int descriptor);
}  // namespace lamina
