#pragma once
/// Models with the libraries of this folder.
#include <filesystem>
#include <string>
#include <vector>

#include "lamina/extension.h"
#include "lamina/model.h"
#include "tests/support/ir_text.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {

inline std::string library(const std::string& name) {
  return std::string(LAMINA_TEST_EXTENSIONS) + "/" + name;
}
inline bool has_library(const std::string& name) { return std::filesystem::exists(library(name)); }

inline std::vector<std::string> libraries(std::vector<std::string> names) {
  for (auto& name : names) name = library(name);
  return names;
}

inline Model model_with(const IrText& ir, const std::vector<std::string>& names) {
  const TemporaryFolder folder;
  return Model(ir.write(folder), libraries(names));
}

inline Model model_with(const OnnxGraph& graph, const std::vector<std::string>& names) {
  const TemporaryFolder folder;
  write_file(folder.file("m.onnx"), onnx_model(graph));
  return Model(folder.file("m.onnx"), libraries(names));
}

}  // namespace lamina::testing
