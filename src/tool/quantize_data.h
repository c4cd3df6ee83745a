#pragma once
/// Samples of a model's inputs from a folder.
#include "lamina/quantize.h"
#include "tool/inputs.h"

namespace lamina::tool {

struct SampleOptions {
  std::string folder;  ///< or one file
  ImageOptions image;
  std::size_t most = 128;     ///< with which the model is calibrated
  std::size_t held_out = 32;  ///< of the others, or of these where there are no others
};

struct SampleFiles {
  Samples calibration, held_out;
  bool measures_others = false;    ///< held_out are none of the calibration
  std::vector<std::string> notes;  ///< a sentence each
};

/// Images, .npy and .npz of the folder, in the order of their names; an array with more samples than the
/// model's batch takes is several. What was read is kept as long as it is not too much. Throws
/// Error(bad_input) for a file that does not fit, and where there is none.
SampleFiles find_samples(const SampleOptions& options, const std::vector<Port>& ports, const Common& common);

}  // namespace lamina::tool
