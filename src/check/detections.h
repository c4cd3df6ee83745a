#pragma once
/// Rows of DetectionOutput on two sides, in pairs.
#include <vector>

#include "lamina/tensor.h"

namespace lamina::checking {

/// Appends five numbers for each detection: the score, and the box times the score, so that weak detections
/// count little. Detections of the same image and label that are nearest by score and box form pairs, in
/// whatever order they stand; one without a partner stands beside zeros. Both tensors are [1, 1, rows, 7].
void pair_detections(const Tensor& a, const Tensor& b, std::vector<double>& of_a, std::vector<double>& of_b);

}  // namespace lamina::checking
