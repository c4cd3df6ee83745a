/// lamina ops: the supported operators.
#include <map>
#include <nlohmann/json.hpp>

#include "lamina/listings.h"
#include "tool/extension_list.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

using nlohmann::json;

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

struct OperatorRow {
  std::string name, doc, kernels;
};

/// "reference" where no other kernel takes the operator.
std::vector<OperatorRow> operator_rows(const json& listing) {
  std::vector<OperatorRow> out;
  for (const auto& r : listing.at("operators")) {
    const auto kernels = r.at("kernels").get<std::string>();
    out.push_back({r.at("name"), r.at("doc"), kernels.empty() ? "reference" : kernels});
  }
  return out;
}

/// Names of the operators of a format.
std::vector<std::string> names_of(const json& listing, const std::string& format) {
  return listing.at(format).get<std::vector<std::string>>();
}

/// Layer types of IR by the operation set that brought them.
std::map<int, std::vector<std::string>> ir_by_opset(const json& listing) {
  std::map<int, std::vector<std::string>> out;
  for (const auto& layer : listing.at("ir")) out[layer.at("opset")].push_back(layer.at("type"));
  return out;
}

/// docs/operators.md.
void say_page(const Common& c, const json& listing) {
  c.say_text(
      "# Supported operators\n\n`lamina ops --format markdown` makes this page. Every operator runs: "
      "operators "
      "and element types\nwithout a kernel of their own run on the reference implementation.\n\n"
      "## lamina's operators\n\n| operator | meaning | kernels |\n| --- | --- | --- |");
  for (const auto& r : operator_rows(listing))
    c.say("| {} | {} | {} |", r.name, table_cell(r.doc), r.kernels);
  c.say_text(
      fmt::format("\n## ONNX, operator sets 7 and later\n\n{}", fmt::join(names_of(listing, "onnx"), ", ")));
  c.say_text(fmt::format(
      "\n## OpenVINO IR 10 and 11\n\nThe table lists layers by the operation set that introduced "
      "them; each is also read in all later sets, up to opset{}. A layer that names\nan older set, "
      "or an unknown one, is not supported, like a layer of an unknown type.\n\n"
      "| since | layers |\n| --- | --- |",
      listing.at("newest_opset").get<int>()));
  for (const auto& [opset, types] : ir_by_opset(listing))
    c.say("| opset{} | {} |", opset, fmt::join(types, ", "));
  c.say_text(
      fmt::format("\n## OpenVINO IR 2 to 7\n\nUpper and lower case are the same, as in all IR. Layers that "
                  "these versions share with later ones (MatMul, GatherElements, ...) are read, too.\n\n{}",
                  fmt::join(names_of(listing, "ir_2_to_7"), ", ")));
  c.say_text(
      fmt::format("\n## Caffe\n\nThese layers are read, also by their names of V1 (`CONVOLUTION`). "
                  "See [caffe.md](caffe.md).\n\n{}",
                  fmt::join(names_of(listing, "caffe"), ", ")));
  c.say_text(
      fmt::format("\n## TensorFlow, frozen graphs\n\n{}", fmt::join(names_of(listing, "tensorflow"), ", ")));
  c.say_text(fmt::format(
      "\n## oneDNN Graph, JSON\n\n[onednn-graph.md](onednn-graph.md) describes attributes, types and "
      "inputs.\n\n{}",
      fmt::join(names_of(listing, "onednn_graph"), ", ")));
}

void say_as(const OpsOptions& o, const json& listing) {
  const auto& c = o.common;
  for (const char* format : {"onnx", "caffe", "tensorflow", "onednn_graph"})
    if (o.format == format)
      for (const auto& name : names_of(listing, format)) c.say("{}", name);
  if (o.format == "ir") {
    for (const auto& layer : listing.at("ir"))
      c.say("{:<28} opset{}", layer.at("type").get<std::string>(), layer.at("opset").get<int>());
    for (const auto& type : names_of(listing, "ir_2_to_7")) c.say("{:<28} IR 2 to 7", type);
  }
  if (o.format == "markdown") say_page(c, listing);
  if (o.format == "text" && c.extensions.empty())
    for (const auto& r : operator_rows(listing)) c.say("{:<28} {:<20} {}", r.name, r.kernels, r.doc);
}

int run(const OpsOptions& o) {
  const auto listing = json::parse(list_operators(o.common.extensions));
  say_as(o, listing);
  say_extensions(o.common, listing.at("extensions"));  // in the place of ours where text is wanted
  write_json(o.common, listing);
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
