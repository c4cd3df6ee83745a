#include "tests/mutation/tree.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace lamina::testing {

bool Tree::operator==(const Tree& other) const {
  const bool same_real = real == other.real || (std::isnan(real) && std::isnan(other.real));
  return same_real &&
         std::tie(name, kind, integer, text, children, role) ==
             std::tie(other.name, other.kind, other.integer, other.text, other.children, other.role);
}

const Tree* Tree::find(std::string_view child) const {
  for (const auto& c : children)
    if (c.name == child) return &c;
  return nullptr;
}

std::int64_t Tree::integer_of(std::string_view child, std::int64_t otherwise) const {
  const auto* found = find(child);
  return found && found->kind == Kind::integer ? found->integer : otherwise;
}

std::string_view name_of(TreeFormat format) {
  constexpr std::string_view names[] = {"onnx", "ir", "legacy_ir", "caffe", "tensorflow", "onednn_graph"};
  return names[static_cast<std::size_t>(format)];
}

namespace {

/// An attribute's name says more than that it is an attribute.
const std::string* key_of(const Tree& tree) {
  if (tree.name != "attribute" && tree.name != "attr") return nullptr;
  for (const auto* key : {"name", "key"})
    if (const auto* found = tree.find(key)) return &found->text;
  return nullptr;
}

void set_roles_below(Tree& tree, const std::string& tail, bool keyed) {
  for (auto& child : tree.children) {
    child.role = tail + "/" + child.name;
    if (child.is_leaf()) continue;
    const auto* key = key_of(child);
    set_roles_below(child, key ? *key : keyed ? tail + "." + child.name : child.name, key != nullptr);
  }
}

}  // namespace

void set_roles(Tree& tree) {
  tree.role = tree.name;
  set_roles_below(tree, tree.name, false);
}

}  // namespace lamina::testing
