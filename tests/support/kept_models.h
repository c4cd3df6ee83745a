#pragma once
/// Small models that tests read are kept as seeds of tests/mutation where LAMINA_KEEP_MODELS names a folder.
#include <string_view>

namespace lamina::testing {

/// Keeps a model that could be read, as FOLDER/SUITE.TEST.NUMBER.EXTENSION, and its weights beside it. Only a
/// few of each test, and none of more than 32 kB.
void keep_model(std::string_view extension, std::string_view model, std::string_view weights_extension = {},
                std::string_view weights = {});

}  // namespace lamina::testing
