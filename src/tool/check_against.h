#pragma once
/// lamina check QUANTISED --against F32: noise per layer.
#include "tool/inputs.h"

namespace lamina::tool {

struct AgainstOptions {
  std::string f32;          ///< the model before quantisation
  std::string html;         ///< a page; "": none
  std::string data;         ///< a folder with samples of the inputs; "": one sample, of the inputs' options
  std::size_t samples = 8;  ///< of the folder
};

/// Returns the command's exit status.
int check_against(const Common& common, const InputOptions& inputs, const AgainstOptions& options);

}  // namespace lamina::tool
