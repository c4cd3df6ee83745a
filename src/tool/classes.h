#pragma once
/// Outputs that score classes: the best of them, and their names.
#include <string>
#include <vector>

#include "lamina/tensor.h"

namespace lamina::tool {

/// Reads labels, one on each line; empty lines at the end of the file do not count. Throws Error(bad_file).
std::vector<std::string> read_labels(const std::string& path);

/// True for one long row of floats, a list of scores; with labels, for one row of as many floats.
bool looks_like_classes(const Tensor& t, std::size_t labels = 0);

/// The places of the largest values, the first of equals first; NaN comes last.
std::vector<std::size_t> best(const std::vector<double>& values, std::size_t count);

}  // namespace lamina::tool
