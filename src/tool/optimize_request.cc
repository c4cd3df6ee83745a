/// Turns the options of `lamina optimize` into those of the library.
#include <algorithm>
#include <filesystem>

#include "base/words.h"
#include "tool/named_lists.h"
#include "tool/optimize.h"
#include "tool/shape_option.h"

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

void check_pairs(const OptimizeCommand& c) {
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
void set_layouts(const OptimizeCommand& c, OptimizeOptions& o) {
  if (!c.layout.empty()) return o.set("layout", c.layout);
  for (const auto& [option, text] :
       {std::pair("source_layout", c.source_layout), std::pair("target_layout", c.target_layout)}) {
    if (text.find("->") != std::string::npos)
      throw UsageError(fmt::format("--{} {}: wanted no ->", option, text));
    if (!text.empty()) o.set(option, text);
  }
  for (const auto& layout : o.layout)
    if (layout.source.empty())
      throw UsageError(
          fmt::format("--target_layout {}: wanted --source_layout of the same inputs", c.target_layout));
}

/// Names as the Model Optimizer looks for them: somewhere in the name of the node.
void set_finegrain(const OptimizeCommand& c, OptimizeOptions& o) {
  try {
    o.set("finegrain_fusing", c.finegrain_fusing);
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
}

/// A beginning of a name that ends with a "[": "X" of "X[a=1],Y".
void refuse_transformations(const std::string& list) {
  int depth = 0;
  std::string name;
  const auto refuse = [&] {
    name.erase(0, name.find_first_not_of(" \t"));
    name.erase(name.find_last_not_of(" \t") + 1);
    if (!name.empty())
      throw UsageError(
          fmt::format("--transform: Transformation {} is not available.", name.substr(0, name.find('['))));
  };
  for (const char c : list) {
    depth += (c == '[' || c == '(' || c == '{') - (c == ']' || c == ')' || c == '}');
    if (c != ',' || depth > 0) {
      name += c;
      continue;
    }
    refuse();
    name.clear();
  }
  refuse();
}

/// --shape, as other verbs have it.
void add_own_shapes(const OptimizeCommand& c, OptimizeOptions& o) {
  for (const auto& text : c.common.shape)
    for (const auto& [name, list] : named_lists("--shape", text)) {
      auto sizes = sizes_of("--shape " + text, list);
      if (name.empty())
        o.input_shape.push_back(std::move(sizes));
      else if (!o.shape.emplace(name, std::move(sizes)).second)
        throw UsageError(fmt::format("--shape: two shapes for input \"{}\"", name));
    }
}

/// What the weights become; nothing: the user does not say.
std::optional<bool> halves_asked(const OptimizeCommand& c) {
  if (c.compress_to_fp16.empty() && c.data_type.empty()) return std::nullopt;
  return c.fp16();
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
    throw FaqError(
        ErrorCode::bad_option, 15,
        fmt::format("{}: the framework cannot be deduced from the name, wanted --framework onnx, caffe or tf",
                    c.model()));
  }
  if (c.framework != "onnx" && c.framework != "caffe" && c.framework != "tf")
    throw UsageError(fmt::format("--framework {}: models of it are not read", c.framework));
  if (!deduced.empty() && deduced != c.framework)
    throw UsageError(fmt::format("--framework {}: {} is a model of {}", c.framework, c.model(), deduced));
  return c.framework;
}

OptimizeOptions options_of(const OptimizeCommand& c) {
  check_pairs(c);
  if (!c.input_proto.empty() && !c.common.weights.empty())
    throw UsageError("--weights: wanted without --input_proto, which names the model's other file, too");
  OptimizeOptions o;
  o.dashes = true;
  o.reading = c.common.reading();
  o.reading.weights = c.input_proto + c.common.weights;
  o.model_name = c.model_name;
  for (const auto& [option, text] : {std::pair("input", &c.input),
                                     {"freeze_placeholder_with_value", &c.freeze},
                                     {"output", &c.output},
                                     {"input_shape", &c.input_shape},
                                     {"mean_values", &c.mean_values},
                                     {"scale_values", &c.scale_values},
                                     {"mean_file_offsets", &c.mean_file_offsets}})
    if (!text->empty()) o.set(option, *text);
  set_layouts(c, o);
  refuse_transformations(c.transform);
  set_finegrain(c, o);
  o.batch = c.batch;
  add_own_shapes(c, o);
  if (c.scale != 0) o.scale = c.scale;
  o.reverse_input_channels = c.reverse_input_channels == "true";
  o.mean_file = c.mean_file;
  o.disable_fusing = c.disable_fusing;
  o.disable_gfusing = c.disable_gfusing;
  o.disable_resnet_optimization = c.disable_resnet_optimization;
  o.disable_weights_compression = c.disable_weights_compression;
  o.disable = c.common.disable;
  o.exempt = c.common.exempt;
  o.ir_version = c.version_of_ir();
  o.compress_to_fp16 = halves_asked(c);
  for (const auto& [name, value] : c.given()) o.rt_info["conversion_parameters." + name] = value;
  o.page = !c.report.empty();
  return o;
}

}  // namespace lamina::tool
