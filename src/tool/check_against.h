#pragma once
/// lamina check QUANTISED --against F32: noise per layer.
#include "tool/inputs.h"

namespace lamina::tool {

struct AgainstOptions {
  std::string f32;   ///< the model before quantisation
  std::string html;  ///< a page; "": none
};

/// Returns the command's exit status.
int check_against(const Common& common, const InputOptions& inputs, const AgainstOptions& options);

}  // namespace lamina::tool
