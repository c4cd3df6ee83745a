#pragma once
/// lamina check QUANTISED --against F32: the noise of each layer.
#include "tool/inputs.h"

namespace lamina::tool {

struct AgainstOptions {
  std::string f32;          ///< the model before quantisation
  std::string html;         ///< file for an HTML page; "": none
  std::string data;         ///< folder with samples of the inputs; "": one sample, from the options of inputs
  std::size_t samples = 8;  ///< how many samples of the folder are used
};

/// Returns the command's exit status.
int check_against(const Common& common, const InputOptions& inputs, const AgainstOptions& options);

}  // namespace lamina::tool
