#pragma once
/// Standard input, output and error of a process.

namespace lamina {

/// Files that are opened later must not become standard output or standard error where these are closed:
/// /dev/null takes their places. What is written to standard output fails as before. For the start of a
/// program.
void occupy_standard_files();

}  // namespace lamina
