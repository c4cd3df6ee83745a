#pragma once
/// XML of IR, JSON of oneDNN Graph, and Caffe's prototxt as trees.
#include "tests/mutation/tree.h"

namespace lamina::testing {

/// Constants of few elements become a leaf "@values" of their element: 1,2,3.
Tree xml_tree(std::string_view text, std::string_view bin);
/// Appends the values to `bin`.
std::string xml_text(const Tree& tree, std::string& bin);
/// As many values as the shape of a Const wants.
void repair_xml(Tree& tree);

Tree json_tree(std::string_view text);
std::string json_text(const Tree& tree);

Tree prototext_tree(const std::string& text);
std::string prototext(const Tree& tree);

std::vector<std::string> split(std::string_view text, char separator);

}  // namespace lamina::testing
