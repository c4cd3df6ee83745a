/// Constants and placeholders, and what is known of them before anything is built.
#include <algorithm>

#include "base/nearest.h"
#include "formats/frozen.h"
#include "formats/tensorflow/importer.h"
#include "formats/tensorflow/tensors.h"
#include "ops/eval.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::tensorflow {
namespace {

constexpr std::int64_t kScalarsAreKnown = 24;  // before, a placeholder's shape [] was an unknown one

}  // namespace

/// Booleans that are known before anything is built: they decide what is.
std::vector<std::optional<bool>> Importer::known_booleans() {
  std::vector<std::optional<bool>> known(links_.size());
  for (std::uint32_t n = 0; n < links_.size(); ++n) {
    const auto& node = def_.nodes[n];
    naming(node, [&] {
      const Call c(*this, node, {});
      const auto type = c.find("dtype");
      if (!type || element_type_of(type->i) != ElementType::boolean) return;
      std::optional<Tensor> value = frozen(node, {ElementType::boolean, {}});
      if (node.op == "Const")
        if (const auto t = c.tensor("value"); t && element_type_of(t->type) == ElementType::boolean)
          value = read_tensor(*t, owner_, constants_budget).data;
      if (value && value->size() == 1) known[n] = value->raw()[0] != std::byte{0};
    });
  }
  for (std::uint32_t n = 0; n < links_.size(); ++n)
    if (def_.nodes[n].op == "PlaceholderWithDefault" && !known[n] && links_[n].inputs.size() == 1 &&
        !settable_.contains(def_.nodes[n].name))
      known[n] = known[links_[n].inputs[0].node];
  return known;
}

Values Importer::import_constant(const NodeDef& node) {
  const Call c(*this, node, {});
  const auto t = c.tensor("value");
  if (!t) c.fail("has no value");
  if (element_type_of(t->type) == ElementType::undefined) {
    list_unsupported(node, fmt::format("elements of type {}", name_of_type(t->type)));
    return make_opaque(node, {});
  }
  auto& graph = this->graph();
  auto read = read_tensor(*t, owner_, constants_budget);
  if (!read.repeated) return {graph.add_constant(std::move(read.data), std::string(node.name))};
  const auto one = graph.add_constant(std::move(read.data));
  const auto shape = graph.add_constant(from_ints(ElementType::i64, {std::ssize(read.shape)}, read.shape));
  return {graph.add(Broadcast{}, {one, shape})};
}

Values Importer::import_placeholder(const NodeDef& node) {
  const Call c(*this, node, {});
  const std::string name(node.name);
  const auto type = c.find("dtype");
  TensorType t{type ? element_type_of(type->i) : ElementType::undefined,
               c.shape_attribute("shape").value_or(Shape())};
  if (t.shape.ranked() && t.shape.rank() == 0 && def_.producer < kScalarsAreKnown) t.shape = Shape();
  if (const auto asked = settings_.shapes.find(name); asked != settings_.shapes.end())
    t.shape = asked->second;
  if (auto value = frozen(node, t)) return {graph().add_constant(std::move(*value), name)};
  if (t.element == ElementType::undefined)
    list_unsupported(node, type ? "an input of type " + name_of_type(type->i) : "an input without a type");
  return {graph().add_input(name, std::move(t))};
}

/// Imports a PlaceholderWithDefault: its value, unless callers may set it.
Values Importer::import_default(const NodeDef& node, const Values& inputs) {
  const Call c(*this, node, inputs);
  const auto& type = c.type(c.in(0));
  const auto it = settable_.find(node.name);
  if (auto value = frozen(node, type))
    return {graph().add_constant(std::move(*value), std::string(node.name))};
  if (it == settable_.end()) {
    if (c.graph().constant(c.in(0))) return inputs;
    return {graph().add(Identity{}, {c.in(0)})};
  }
  const auto value = c.known(c.in(0));
  if (!value) c.fail("its value is computed from data");
  auto shape = c.shape_attribute("shape").value_or(type.shape);
  if (!shape.fits(Shape::of(value->shape())))
    c.fail("its value is {}, wanted {}", to_string(value->shape()), to_string(shape));
  if (const auto asked = settings_.shapes.find(node.name); asked != settings_.shapes.end())
    shape = asked->second;
  loaded_.defaults.emplace(*it, *value);
  settable_.erase(it);
  return {graph().add_input(std::string(node.name), {type.element, std::move(shape)})};
}

std::optional<Tensor> Importer::frozen(const NodeDef& node, const TensorType& type) {
  const auto it = settings_.frozen.find(node.name);
  if (it == settings_.frozen.end()) return std::nullopt;
  return frozen_value(node.name, it->second, type);
}

/// Placeholders with a default that stay constants, and whether all that is to be frozen is there.
void Importer::note_optional_inputs() {
  Strings names;
  for (const auto& node : def_.nodes) {
    const bool optional = node.op == "PlaceholderWithDefault";
    if (!optional && !is_placeholder(node.op)) continue;
    names.emplace_back(node.name);
    if (optional && !settings_.frozen.contains(node.name) && !settable_.contains(node.name))
      loaded_.optional_inputs.emplace_back(node.name);
  }
  for (const auto& [name, value] : settings_.frozen)
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(ErrorCode::bad_option, "\"{}\" is to have a value: there is no such input{}", name,
           did_you_mean(name, names));
}

}  // namespace lamina::tensorflow
