/// What `lamina optimize` prints: the Model Optimizer's table, progress and errors, and a summary.
#include <algorithm>
#include <cmath>

#include "tool/optimize.h"

namespace lamina::tool {
namespace {

constexpr std::size_t kMostListed = 12;

std::string names_in_line(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kMostListed); ++i)
    out += (i ? ", " : "") + clipped(names[i], 60);
  if (names.size() > kMostListed) out += fmt::format(" and {} more", names.size() - kMostListed);
  return out;
}

std::string change_of(double before, double after) {
  if (before <= 0 || before == after) return "";
  const auto percent = 100 * (after - before) / before;
  return fmt::format(" ({:.1f} % {})", std::abs(percent), percent < 0 ? "less" : "more");
}

}  // namespace

std::string argument_table(const OptimizeCommand& c, const IrFiles& files, const std::string& framework) {
  std::string out = "Model Optimizer arguments:\nCommon parameters:\n";
  const auto row = [&](std::string_view name, const std::string& value) {
    out += fmt::format("\t- {}: \t{}\n", name, printable(value));
  };
  const auto inherited = [](const std::string& value) {
    return value.empty() ? "Not specified, inherited from the model" : value;
  };
  const auto said = [](const std::string& value) { return value.empty() ? "Not specified" : value; };
  const auto truth = [](bool value) { return std::string(value ? "True" : "False"); };
  row("Path to the Input Model", c.model());
  row("Path for generated IR", files.folder.empty() ? "." : files.folder);
  row("IR output name", files.name);
  row("Log level", c.common.log_level);
  row("Batch", inherited(c.batch ? std::to_string(c.batch) : ""));
  row("Input layers", inherited(c.input));
  row("Output layers", inherited(c.output));
  row("Input shapes", inherited(c.input_shape));
  row("Source layout", said(c.source_layout));
  row("Target layout", said(c.target_layout));
  row("Layout", said(c.layout));
  row("Mean values", said(c.mean_values));
  row("Scale values", said(c.scale_values));
  row("Scale factor", said(c.scale != 0 ? fmt::format("{}", c.scale) : ""));
  row("Precision of IR", c.fp16() ? "FP16" : "FP32");
  row("Enable fusing", truth(!c.disable_fusing));
  row("Enable grouped convolutions fusing", truth(!c.disable_gfusing));
  row("Move mean values to preprocess section", "None");
  row("Reverse input channels", truth(c.reverse_input_channels == "true"));
  if (framework == "caffe") {
    out += "Caffe specific parameters:\n";
    row("Path to Python Caffe* parser generated from caffe.proto", "not needed");
    row("Enable resnet optimization", truth(!c.disable_resnet_optimization));
    row("Path to the Input prototxt", c.input_proto.empty() ? "beside the model" : c.input_proto);
    row("Path to a mean file", said(c.mean_file));
    row("Offsets for a mean file", said(c.mean_file_offsets));
  }
  if (framework == "tf") {
    out += "TensorFlow specific parameters:\n";
    row("Input model in text protobuf format", truth(c.input_model_is_text));
  }
  out += fmt::format("Model Optimizer version: \t{}", version());
  return out;
}

std::string progress_bar(double done) {
  constexpr std::size_t kDots = 20;
  const auto dots = static_cast<std::size_t>(std::lround(done * kDots));
  return fmt::format("Progress: [{:<20}]{:7.2f}% done", std::string(std::min(dots, kDots), '.'), 100 * done);
}

std::vector<std::string> summary_of(const OptimizeReport& r) {
  std::vector<std::string> out, rules;
  for (const auto& [rule, count] : r.rules) rules.push_back(fmt::format("{} {}", rule, count));
  out.push_back(
      fmt::format("rewrites       {}{}{}", r.rewrites, rules.empty() ? "" : ": ", fmt::join(rules, ", ")));
  out.push_back(fmt::format("operators      {} -> {}", r.before.operators, r.after.operators));
  out.push_back(fmt::format("multiply-adds  {:.4g} -> {:.4g}{}{}", r.before.multiply_adds,
                            r.after.multiply_adds, change_of(r.before.multiply_adds, r.after.multiply_adds),
                            !r.before.complete || !r.after.complete ? ", of what has known sizes"
                            : r.before.for_batch_1                  ? ", for a batch of 1"
                                                                    : ""));
  if (!r.unused_inputs.empty()) out.push_back("nothing reads  input " + names_in_line(r.unused_inputs));
  if (!r.dropped_inputs.empty()) out.push_back("cut off        input " + names_in_line(r.dropped_inputs));
  if (!r.exempt.empty()) out.push_back("left alone     (exempt) " + names_in_line(r.exempt));
  for (const auto& note : r.notes) out.push_back("note           " + note);
  return out;
}

std::string error_line(const Error& error) {
  const auto* known = dynamic_cast<const FaqError*>(&error);
  const auto question = known ? known->question() : 0;
  auto line = fmt::format("[ ERROR ]  {}", error.what());
  if (question != 0)
    line += fmt::format("{} For more information please refer to Model Optimizer FAQ, question #{}.",
                        line.ends_with(".") ? "" : ".", question);
  return line;
}

}  // namespace lamina::tool
