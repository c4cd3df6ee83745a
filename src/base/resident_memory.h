#pragma once
/// Memory of the process, as the operating system counts it.

namespace lamina {

/// Resident memory of the process in MiB: now, and at most so far; 0 where it cannot be read.
double resident_mb();
double peak_resident_mb();

}  // namespace lamina
