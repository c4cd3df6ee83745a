// How what a file of IR holds is called.
#include "formats/ir/write/net_writer.h"

namespace lamina::ir {

/// A result of the same value whose names are those of the value itself.
bool NetWriter::joins_result_before(const Result& result) const {
  const auto& notes = writing_.loaded.ir_notes;
  const auto own = notes.results.find(result.name);
  const auto tensor = notes.tensors.find(graph_.value(result.value).name);
  return own != notes.results.end() && tensor != notes.tensors.end() && own->second == tensor->second.names;
}

/// OpenVINO finds outputs by the names of their tensors. So of several results of one value all but one get a
/// layer of their own, whose tensor is called as they are. In IR 10, where names of layers count as well, an
/// input is no result unless both have one name.
void NetWriter::plan_results() {
  const bool old = writing_.options.version == 10;
  for (std::size_t i = 0; i < graph_.results().size(); ++i) {
    const Result& result = graph_.results()[i];
    const Value& value = graph_.value(result.value);
    const auto [end, is_first] = ends_.emplace(result.value.index, i);
    if (!is_first && result.name == value.name) end->second = i;
    if (old && value.kind == ValueKind::input && graph_.results()[end->second].name != value.name)
      ends_.erase(end);
  }
  for (std::size_t i = 0; i < graph_.results().size(); ++i) {
    const Result& result = graph_.results()[i];
    const auto end = ends_.find(result.value.index);
    if (end != ends_.end() && (end->second == i || (!old && joins_result_before(result)))) continue;
    // of an unknown type there are no copies
    if (graph_.type(result.value).element == ElementType::undefined) continue;
    copies_.insert(i);
    copied_names_.insert(result.name);
  }
  if (!old) return;
  for (const auto& result : graph_.results()) border_names_.insert(result.name);
  for (const auto v : graph_.inputs())
    for (const auto& name : names_of(v)) border_names_.insert(name);
}

std::string NetWriter::parameter_name(ValueId v) const {
  const std::string& name = graph_.value(v).name;
  if (is_body_) return name;
  const auto& notes = writing_.loaded.ir_notes.tensors;
  const auto note = notes.find(name);
  if (note == notes.end() || note->second.layer.empty()) return name;
  const bool is_taken = ends_.contains(v.index) || border_names_.contains(note->second.layer);
  return writing_.options.version == 10 && is_taken ? name : note->second.layer;
}

/// In IR 10 an output is called as the layer that gives it, too: not by the name of something else.
std::string NetWriter::layer_name(const Node& node) const {
  if (node.outputs.empty()) return node.name;
  const std::string& name = node.name.empty() ? graph_.value(node.outputs[0]).name : node.name;
  if (!border_names_.contains(name)) return name;
  const auto end = ends_.find(node.outputs[0].index);
  return end == ends_.end() ? inner_name(name) : graph_.results()[end->second].name;
}

/// A name for a layer that is neither input nor output.
std::string NetWriter::inner_name(const std::string& name) const {
  return border_names_.contains(name) ? name + "/inner" : name;
}

/// The name, and what an IR file said besides.
Strings NetWriter::names_of(const Result& result) const {
  Strings names = {result.name};
  const auto& notes = writing_.loaded.ir_notes.results;
  if (const auto it = notes.find(result.name); it != notes.end())
    names.insert(names.end(), it->second.begin(), it->second.end());
  return names;
}

/// In IR 10 outputs keep their names, whatever inner layers are named.
Strings NetWriter::names_of(ValueId v) const {
  const auto& value = graph_.value(v);
  const auto end = ends_.find(v.index);
  const bool is_own = value.kind == ValueKind::input ||
                      (end != ends_.end() && graph_.results()[end->second].name == value.name);
  Strings names = {is_own ? value.name : inner_name(value.name)};
  std::set<std::string> known = {names[0]};
  const auto add_new = [&](const Strings& more) {
    for (const auto& name : more)
      if (!copied_names_.contains(name) && known.insert(name).second) names.push_back(name);
  };
  const auto& notes = writing_.loaded.ir_notes.tensors;
  if (const auto it = notes.find(value.name); !is_body_ && it != notes.end()) add_new(it->second.names);
  if (const auto it = legal_.aliases.find(v.index); it != legal_.aliases.end()) add_new(it->second);
  if (end == ends_.end()) return names;
  const auto own = names_of(graph_.results()[end->second]);
  const ValueId other = graph_.find_value(own[0]);
  const bool gives_way =
      other.valid() && border_names_.contains(own[0]) && graph_.value(other).kind != ValueKind::input;
  if (!other.valid() || gives_way) add_new(own);
  return names;
}

}  // namespace lamina::ir
