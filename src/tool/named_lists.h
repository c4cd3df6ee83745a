#pragma once
/// Values of options that belong to an input each, in lamina's form and in that of OpenVINO's tools.
#include <string>
#include <utility>
#include <vector>

namespace lamina::tool {

/// "NAME=LIST" and "LIST", or "NAME[LIST],NAME[LIST]" and "[LIST]": pairs of name and LIST, the name "" where
/// there is none. Throws UsageError, which begins with the option.
std::vector<std::pair<std::string, std::string>> named_lists(const std::string& option,
                                                             const std::string& text);

}  // namespace lamina::tool
