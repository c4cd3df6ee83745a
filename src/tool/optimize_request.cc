/// Turns the options of `lamina optimize` into the request of a conversion.
#include <algorithm>
#include <filesystem>

#include "base/words.h"
#include "offline/faq.h"
#include "offline/mean_file.h"
#include "tool/asked_sizes.h"
#include "tool/named_lists.h"
#include "tool/optimize.h"

namespace lamina::tool {
namespace {

namespace fs = std::filesystem;

std::string suffix_of(const std::string& path) { return lower_case(fs::path(path).extension().string()); }

/// The framework that the file's ending tells.
std::string deduced_framework(const std::string& path) {
  const auto suffix = suffix_of(path);
  if (suffix == ".caffemodel" || suffix == ".prototxt") return "caffe";
  if (suffix == ".pb" || suffix == ".pbtxt") return "tf";
  if (suffix == ".onnx") return "onnx";
  if (suffix == ".json") return "onednn_graph";
  if (suffix == ".xml") return "ir";
  if (suffix == ".lamina") return "lamina";
  return {};
}

/// Two options that say the same thing otherwise.
void exclude(int question, const char* a, bool has_a, const char* b, bool has_b) {
  if (has_a && has_b) fail_faq(ErrorCode::bad_option, question, "both {} and {}, wanted one of them", a, b);
}

void check_pairs(const OptimizeCommand& c) {
  exclude(56, "--input_shape", !c.input_shape.empty(), "--batch", c.batch != 0);
  exclude(19, "--scale", c.scale != 0, "--scale_values", !c.scale_values.empty());
  exclude(17, "--mean_file", !c.mean_file.empty(), "--mean_values", !c.mean_values.empty());
  if (c.scale_given && c.scale_given() && c.scale == 0)
    throw UsageError("--scale 0: wanted a number to divide by");
  if (!c.layout.empty() && !(c.source_layout + c.target_layout).empty())
    throw UsageError("--layout: wanted without --source_layout and --target_layout");
  if (!c.mean_file_offsets.empty() && c.mean_file.empty())
    throw UsageError("--mean_file_offsets: wanted with --mean_file");
  if (c.data_type == "FP32" || c.data_type == "float")
    if (c.compress_to_fp16 == "true") throw UsageError("--compress_to_fp16: wanted without --data_type FP32");
}

/// --source_layout and --target_layout in one.
std::vector<LayoutRequest> layouts_of(const OptimizeCommand& c) {
  if (!c.layout.empty()) return parse_layouts("--layout", c.layout);
  std::vector<LayoutRequest> out;
  if (!c.source_layout.empty()) out = parse_layouts("--source_layout", c.source_layout);
  for (const auto& l : out)
    if (!l.target.empty()) throw UsageError(fmt::format("--source_layout {}: wanted no ->", c.source_layout));
  if (c.target_layout.empty()) return out;
  for (const auto& t : parse_layouts("--target_layout", c.target_layout)) {
    if (!t.target.empty()) throw UsageError(fmt::format("--target_layout {}: wanted no ->", c.target_layout));
    const auto source = std::find_if(out.begin(), out.end(), [&](auto& l) { return l.name == t.name; });
    if (source == out.end())
      throw UsageError(
          fmt::format("--target_layout {}: wanted --source_layout of the same inputs", c.target_layout));
    source->target = t.source;
  }
  return out;
}

/// Names as the Model Optimizer looks for them: somewhere in the name of the node.
std::vector<std::string> searched(const std::string& list) {
  std::vector<std::string> out;
  for (const auto piece : pieces_of(list)) {
    if (piece.empty()) continue;
    try {
      Exemptions({std::string(piece)});
    } catch (const Error& e) {
      throw UsageError(fmt::format("--finegrain_fusing: {}", e.what()));
    }
    out.emplace_back(piece);
  }
  return out;
}

OptimizeOptions rewriting_of(const OptimizeCommand& c) {
  OptimizeOptions o;
  o.disable = c.common.disable;
  if (std::erase(o.disable, "all") != 0)
    for (const auto& rule : all_rules()) o.disable.push_back(rule.name);
  if (c.disable_fusing) o.disable.insert(o.disable.end(), {"merge-linear", "fuse-linear"});
  if (c.disable_gfusing) o.disable.push_back("fuse-group-conv");
  if (c.disable_resnet_optimization) o.disable.push_back("move-strides");
  if (c.disable_weights_compression) o.disable.push_back("compress-weights");
  o.exempt = c.common.exempt;
  return o;
}

/// --shape, as other verbs have it.
void add_own_shapes(const OptimizeCommand& c, ConversionRequest& r) {
  for (const auto& text : c.common.shape)
    for (const auto& [name, list] : named_lists("--shape", text)) {
      std::vector<Dim> dims;
      for (const auto& s : sizes_of("--shape " + text, list))
        dims.push_back(s.open() ? Dim(s.least, s.most == kAnySize ? Dim::kUnbounded : s.most) : Dim(s.least));
      if (name.empty())
        r.shapes.emplace_back(std::move(dims));
      else if (!r.own_shapes.emplace(name, Shape(std::move(dims))).second)
        throw UsageError(fmt::format("--shape: two shapes for input \"{}\"", name));
    }
}

}  // namespace

bool OptimizeCommand::fp16() const {
  if (!compress_to_fp16.empty()) return compress_to_fp16 == "true";
  return data_type == "FP16" || data_type == "half";
}

namespace {

/// True if both paths are the same file: of two outputs written there one would be lost.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored) ||
         fs::equivalent(a, b, ignored);
}

void add_reports(IrFiles& files, const OptimizeCommand& c) {
  for (const auto& [option, path] : {std::pair("--json", c.common.json), std::pair("--report", c.report)}) {
    if (path.empty() || path == "-") continue;
    if (same_file(path, files.xml) || same_file(path, files.bin))
      throw UsageError(fmt::format("{} {}: is a file of the model that is written", option, path));
    files.reports.push_back(path);
  }
}

}  // namespace

IrFiles ir_files(const OptimizeCommand& c) {
  const fs::path model(c.model()), out(c.output_dir);
  IrFiles files;
  files.name = c.model_name.empty() ? model.stem().string() : c.model_name;
  if (files.name.find('/') != std::string::npos || files.name == "." || files.name == "..")
    throw UsageError(fmt::format("--model_name {}: wanted the name of a file, without /", files.name));
  const auto suffix = suffix_of(c.output_dir);
  if (suffix == ".xml" && !fs::is_directory(out)) {
    files.xml = c.output_dir;
    files.folder = out.parent_path().string();
    if (c.model_name.empty()) files.name = out.stem().string();
  } else {
    for (const auto* other : {".onnx", ".bin", ".lamina", ".pb", ".caffemodel", ".json"})
      if (suffix == other && !fs::is_directory(out))
        throw UsageError(fmt::format("-o {}: wanted FILE.xml or a folder", c.output_dir));
    files.folder = c.output_dir;
    files.xml = (out / (files.name + ".xml")).string();
  }
  files.bin = fs::path(files.xml).replace_extension(".bin").string();
  add_reports(files, c);
  return files;
}

std::string framework_of(const OptimizeCommand& c) {
  const auto deduced = deduced_framework(c.model());
  if (c.framework.empty()) {
    if (!deduced.empty() || c.input_model.empty()) return deduced;
    fail_faq(ErrorCode::bad_option, 15,
             "{}: the framework cannot be deduced from the name, wanted --framework onnx, caffe or tf",
             c.model());
  }
  if (c.framework != "onnx" && c.framework != "caffe" && c.framework != "tf")
    throw UsageError(fmt::format("--framework {}: models of it are not read", c.framework));
  if (!deduced.empty() && deduced != c.framework)
    throw UsageError(fmt::format("--framework {}: {} is a model of {}", c.framework, c.model(), deduced));
  return c.framework;
}

ConversionRequest request_of(const OptimizeCommand& c) {
  check_pairs(c);
  ConversionRequest r;
  if (!c.input.empty()) r.cut.inputs = parse_inputs("--input", c.input);
  if (!c.freeze.empty()) r.cut.frozen = parse_inputs("--freeze_placeholder_with_value", c.freeze);
  r.cut.outputs = parse_names(c.output);
  if (!c.input_shape.empty()) r.shapes = parse_shapes("--input_shape", c.input_shape);
  add_own_shapes(c, r);
  if (c.batch != 0) r.batch = c.batch;
  r.border.layouts = layouts_of(c);
  if (!c.mean_values.empty()) r.border.means = parse_numbers("--mean_values", c.mean_values);
  if (!c.scale_values.empty()) r.border.scales = parse_numbers("--scale_values", c.scale_values);
  if (c.scale != 0) r.border.scale = c.scale;
  r.border.reverse_channels = c.reverse_input_channels == "true";
  r.mean_file = c.mean_file;
  if (!c.mean_file_offsets.empty()) r.mean_file_offsets = parse_offsets(c.mean_file_offsets);
  for (const auto& name : outer_pieces(c.transform))
    if (!name.empty())
      throw UsageError(
          fmt::format("--transform: Transformation {} is not available.", name.substr(0, name.find('['))));
  r.rewriting = rewriting_of(c);
  r.finegrain = searched(c.finegrain_fusing);
  return r;
}

}  // namespace lamina::tool
