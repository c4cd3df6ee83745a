/// lamina ops: the supported operators.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/supported.h"
#include "kernels/kernel.h"
#include "ops/operators.h"
#include "tool/extension_list.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct OpsOptions {
  Common common;
  std::string format = "text";
};

/// Text as a cell of a Markdown table.
std::string table_cell(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

/// Kernels other than the reference that take the operator.
std::vector<std::string> kernel_names(const Op& op) {
  std::vector<std::string> out;
  const auto all = kernels();
  for (const auto& k : *all) {
    const auto whose = k.name.substr(0, k.name.find('.'));
    if (whose != "reference" && k.takes(op) && std::find(out.begin(), out.end(), whose) == out.end())
      out.push_back(whose);
  }
  return out;
}

struct OperatorRow {
  std::string name, doc, kernels;
};

std::vector<OperatorRow> operator_rows() {
  std::vector<OperatorRow> out;
  for (const auto& name : operators().names()) {
    const auto* prototype = operators().find(name);
    const Op op{std::shared_ptr<const AnyOp>(prototype->copy())};
    out.push_back(
        {name, std::string(prototype->info().doc), fmt::format("{}", fmt::join(kernel_names(op), ", "))});
  }
  return out;
}

/// Layer types of IR by the operation set that brought them.
std::map<int, std::vector<std::string>> ir_by_opset() {
  std::map<int, std::vector<std::string>> out;
  for (const auto& layer : supported_ir()) out[layer.opset].push_back(layer.type);
  return out;
}

/// Formats whose operators are names.
struct NamedFormat {
  std::string_view name;
  std::vector<std::string> (*operators)();
};
constexpr NamedFormat kNamed[] = {{"onnx", supported_onnx},
                                  {"caffe", supported_caffe},
                                  {"tensorflow", supported_tensorflow},
                                  {"onednn_graph", supported_onednn_graph}};

nlohmann::json operators_json(const std::vector<OperatorRow>& list) {
  nlohmann::json j{{"operators", nlohmann::json::array()},
                   {"ir", nlohmann::json::array()},
                   {"ir_2_to_7", supported_legacy_ir()}};
  for (const auto& format : kNamed) j[format.name] = format.operators();
  for (const auto& layer : supported_ir()) j["ir"].push_back({{"type", layer.type}, {"opset", layer.opset}});
  for (const auto& r : list)
    j["operators"].push_back({{"name", r.name}, {"doc", r.doc}, {"kernels", r.kernels}});
  return j;
}

std::string kernels_of(const OperatorRow& r) { return r.kernels.empty() ? "reference" : r.kernels; }

/// docs/operators.md.
void say_page(const Common& c, const std::vector<OperatorRow>& list) {
  c.say_text(
      "# Supported operators\n\n`lamina ops --format markdown` makes this page. Every operator runs: "
      "operators "
      "and element types\nwithout a kernel of their own run on the reference implementation.\n\n"
      "## lamina's operators\n\n| operator | meaning | kernels |\n| --- | --- | --- |");
  for (const auto& r : list) c.say("| {} | {} | {} |", r.name, table_cell(r.doc), kernels_of(r));
  c.say_text(fmt::format("\n## ONNX, operator sets 7 and later\n\n{}", fmt::join(supported_onnx(), ", ")));
  c.say_text(fmt::format(
      "\n## OpenVINO IR 10 and 11\n\nThe table lists layers by the operation set that introduced "
      "them; each is also read in all later sets, up to opset{}. A layer that names\nan older set, "
      "or an unknown one, is not supported, like a layer of an unknown type.\n\n"
      "| since | layers |\n| --- | --- |",
      newest_ir_opset()));
  for (const auto& [opset, types] : ir_by_opset()) c.say("| opset{} | {} |", opset, fmt::join(types, ", "));
  c.say_text(
      fmt::format("\n## OpenVINO IR 2 to 7\n\nUpper and lower case are the same, as in all IR. Layers that "
                  "these versions share with later ones (MatMul, GatherElements, ...) are read, too.\n\n{}",
                  fmt::join(supported_legacy_ir(), ", ")));
  c.say_text(
      fmt::format("\n## Caffe\n\nThese layers are read, also by their names of V1 (`CONVOLUTION`). "
                  "See [caffe.md](caffe.md).\n\n{}",
                  fmt::join(supported_caffe(), ", ")));
  c.say_text(fmt::format("\n## TensorFlow, frozen graphs\n\n{}", fmt::join(supported_tensorflow(), ", ")));
  c.say_text(fmt::format(
      "\n## oneDNN Graph, JSON\n\n[onednn-graph.md](onednn-graph.md) describes attributes, types and "
      "inputs.\n\n{}",
      fmt::join(supported_onednn_graph(), ", ")));
}

void say_as(const OpsOptions& o, const std::vector<OperatorRow>& list) {
  const auto& c = o.common;
  for (const auto& format : kNamed)
    if (o.format == format.name)
      for (const auto& name : format.operators()) c.say("{}", name);
  if (o.format == "ir") {
    for (const auto& layer : supported_ir()) c.say("{:<28} opset{}", layer.type, layer.opset);
    for (const auto& type : supported_legacy_ir()) c.say("{:<28} IR 2 to 7", type);
  }
  if (o.format == "markdown") say_page(c, list);
  if (o.format == "text" && c.extensions.empty())
    for (const auto& r : list) c.say("{:<28} {:<20} {}", r.name, kernels_of(r), r.doc);
}

int run(const OpsOptions& o) {
  const auto list = operator_rows();
  auto j = operators_json(list);
  say_as(o, list);
  j["extensions"] = list_extensions(o.common);  // in the place of ours where text is wanted
  write_json(o.common, j);
  return 0;
}

}  // namespace

Verb setup_ops(OptionSet& options) {
  auto o = std::make_shared<OpsOptions>();
  options.choice("--format", o->format,
                 {"text", "onnx", "ir", "caffe", "tensorflow", "onednn_graph", "markdown"}, "FORMAT",
                 "text, onnx, ir, caffe, tensorflow, onednn_graph or markdown");
  add_extensions(options, o->common);
  add_json(options, o->common);
  return [o] { return run(*o); };
}

}  // namespace lamina::tool
