/// lamina optimize: the offline optimiser. A model of any format becomes an IR, with the options and the
/// output of OpenVINO's Model Optimizer.
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "tool/model_optimizer.h"
#include "tool/optimize.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The way from the command line to the files.
class Optimizing {
 public:
  explicit Optimizing(const OptimizeCommand& command) : c_(command) {}

  int run() {
    const auto begin = Clock::now();
    if (c_.model().empty()) throw UsageError("no model, wanted MODEL or --input_model FILE");
    if (!c_.input_model.empty() && !c_.common.model.empty())
      throw UsageError(fmt::format("two models: {} and {}", c_.common.model, c_.input_model));
    if (c_.input_model.empty() && c_.output_dir.empty()) throw UsageError("no output, wanted -o FILE.xml");
    require_page_name(c_.report);
    files_ = ir_files(c_);
    const auto framework = framework_of(c_);
    auto options = options_of(c_);
    options.progress = [&, said = false](std::string_view, double done) mutable {
      if (!std::exchange(said, true)) say_arguments(framework);
      if (done < 1) progress(done);
    };
    options.log = [this](LogLevel, std::string_view text) { warn(std::string(text)); };
    options.opened = [this](const std::string& path) { refuse_to_overwrite(path); };
    const auto report = optimize(c_.model(), files_.xml, options);
    if (!c_.report.empty()) write_file(c_.report, report.page);
    progress(1);
    if (c_.progress && !c_.stream_output) c_.common.say_text("");
    say(report, std::chrono::duration<double>(Clock::now() - begin).count());
    return 0;
  }

 private:
  void warn(const std::string& text) const {
    if (c_.common.quiet || c_.common.log_level == "error") return;
    tell(c_.as_model_optimizer() ? "[ WARNING ]  " + text : "lamina: warning: " + text);
  }

  /// What comes before the work.
  void say_arguments(const std::string& framework) const {
    if (!c_.input_model.empty() && !c_.is_silent()) c_.common.say_text(argument_table(c_, files_, framework));
    for (const auto& text : c_.idle) warn(text);
  }

  /// `part`: a file of the model.
  void refuse_to_overwrite(const std::string& part) const {
    auto targets = files_.reports;
    targets.insert(targets.end(), {files_.xml, files_.bin});
    for (const auto& target : targets)
      if (std::error_code ignored; fs::equivalent(part, target, ignored))
        throw UsageError(
            fmt::format("{} would be overwritten, which is the model itself; wanted another name", target));
  }

  void progress(double done) {
    if ((!c_.progress && !c_.stream_output) || c_.common.quiet || c_.common.json == "-") return;
    fmt::print("{}{}{}", c_.stream_output ? "" : "\r", progress_bar(done), c_.stream_output ? "\n" : "");
    std::fflush(stdout);
  }

  void say(const OptimizeReport& report, double seconds) const {
    if (!c_.is_silent())
      for (const auto& line : summary_of(report)) c_.common.say("{}", line);
    if (!c_.is_silent() && report.keeps_halves)
      c_.common.say_text(
          "Numbers that f16 holds exactly stay f16, as in the model; --data_type FP32 makes all of them "
          "f32.");
    c_.common.say_text("");
    c_.common.say("[ SUCCESS ] Generated IR version {} model.", report.ir_version);
    c_.common.say("[ SUCCESS ] XML file: {}", report.xml);
    c_.common.say("[ SUCCESS ] BIN file: {}", report.bin);
    c_.common.say("[ SUCCESS ] Total execution time: {:.2f} seconds. ", seconds);
    c_.common.say("[ SUCCESS ] Memory consumed: {:.0f} MB. ", peak_resident_mb());
    write_json(c_.common, nlohmann::json::parse(report.json()));
  }

  const OptimizeCommand& c_;
  IrFiles files_;
};

int run(const OptimizeCommand& c) {
  if (c.version) {
    fmt::print("Version of Model Optimizer is: {}\n", version());
    return 0;
  }
  if (!c.as_model_optimizer()) return Optimizing(c).run();
  try {
    return Optimizing(c).run();
  } catch (const Error& e) {
    tell(error_line(e));
    return 1;
  }
}

}  // namespace

std::map<std::string, std::string> OptimizeCommand::given() const {
  std::map<std::string, std::string> out;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  add("input_model", fs::path(model()).filename().string());  // of folders nobody need know
  add("input_proto", fs::path(input_proto).filename().string());
  add("input_model_is_text", input_model_is_text ? "true" : "");
  add("model_name", model_name);
  add("framework", framework);
  add("input", input);
  add("output", output);
  add("input_shape", input_shape);
  add("batch", batch ? std::to_string(batch) : "");
  add("freeze_placeholder_with_value", freeze);
  add("layout", layout);
  add("source_layout", source_layout);
  add("target_layout", target_layout);
  add("mean_values", mean_values);
  add("scale_values", scale_values);
  add("scale", scale != 0 ? fmt::format("{}", scale) : "");
  add("mean_file", fs::path(mean_file).filename().string());
  add("mean_file_offsets", mean_file_offsets);
  add("reverse_input_channels", reverse_input_channels);
  add("data_type", data_type);
  add("compress_to_fp16", compress_to_fp16);
  add("static_shape", static_shape);
  add("finegrain_fusing", finegrain_fusing);
  add("disable_fusing", disable_fusing ? "true" : "");
  add("disable_gfusing", disable_gfusing ? "true" : "");
  add("disable_resnet_optimization", disable_resnet_optimization ? "true" : "");
  add("disable_weights_compression", disable_weights_compression ? "true" : "");
  return out;
}

namespace {

void add_files(OptionSet& o, OptimizeCommand& c) {
  o.text("-m,-w,--input_model", c.input_model, "FILE", "The model (the Model Optimizer's option for MODEL)");
  o.text("-o,--output_dir", c.output_dir, "FILE.xml|DIR", "The IR to write, or the folder for it");
  o.text("-n,--model_name", c.model_name, "NAME", "Name of the network, and of its files if -o is a folder");
  o.choice("--framework", c.framework, {"onnx", "caffe", "tf", "mxnet", "kaldi", "paddle"}, "F",
           "onnx, caffe or tf, if the name of the file does not tell the format");
  o.text("-d,--input_proto", c.input_proto, "FILE", "The prototxt of a caffemodel, if it is not beside it");
  o.number("--ir_version", c.ir_version, 10, 11, "10|11", "Version of the IR");
  o.text("--report", c.report, "FILE.html", "Write a page about the rewriting, with drawings");
}

void add_surgery(OptionSet& o, OptimizeCommand& c) {
  o.text("--input", c.input, "NAME[SHAPE]{TYPE}->VALUE,...",
         "Where the network begins: names, PORT:NAME, NAME:PORT; with shapes, types, values");
  o.text("--output", c.output, "NAME,...", "Where the network ends: names, NAME:PORT, PORT:NAME");
  o.text("--input_shape", c.input_shape, "[1,3,224,224],...", "Shapes of the inputs in their order");
  add_shape(o, c.common);
  o.number("-b,--batch", c.batch, 1L, 1L << 31, "N", "Batch of all inputs");
  o.text("--freeze_placeholder_with_value", c.freeze, "NAME->VALUE,...", "Inputs that become constants");
  o.text("--layout", c.layout, "NAME(nhwc->nchw),...",
         "The layout of inputs in the model, and the one wanted in the IR");
  o.text("--source_layout", c.source_layout, "NAME(nhwc),...",
         "The layout of inputs in the model (with --target_layout, instead of --layout)");
  o.text("--target_layout", c.target_layout, "NAME(nchw),...",
         "The layout wanted in the IR, with --source_layout");
}

void add_preprocessing(OptionSet& o, OptimizeCommand& c) {
  o.text("--mean_values", c.mean_values, "[R,G,B]",
         "Subtracted from inputs, by channel: [1,2,3] or NAME[1,2,3],...");
  o.text("--scale_values", c.scale_values, "[R,G,B]", "Divisors of inputs, after the means");
  const auto scale = o.number("-s,--scale", c.scale, -1e30, 1e30, "N", "Divides all inputs");
  c.scale_given = [scale] { return scale.given(); };
  o.choice("--reverse_input_channels", c.reverse_input_channels, {"true", "false"}, "",
           "Swap RGB and BGR in inputs with 3 channels");
  o.text("--mean_file", c.mean_file, "FILE.binaryproto", "Caffe's image of means");
  o.text("--mean_file_offsets", c.mean_file_offsets, "(X,Y)",
         "The window of the mean image; by default its centre");
}

void add_switches(OptionSet& o, OptimizeCommand& c) {
  o.choice("--data_type", c.data_type, {"FP16", "FP32", "half", "float"}, "FP16|FP32",
           "Type of the weights in the file");
  o.choice("--compress_to_fp16", c.compress_to_fp16, {"true", "false"}, "", "Store weights as f16");
  o.flag("--disable_fusing", c.disable_fusing, "Do not merge or fuse linear operators");
  o.flag("--disable_gfusing", c.disable_gfusing, "Do not join convolutions to a grouped one");
  o.flag("--disable_resnet_optimization", c.disable_resnet_optimization, "Do not move strides");
  o.flag("--disable_weights_compression", c.disable_weights_compression,
         "Keep the FakeQuantize of weights, and the weights as floats");
  o.text("--finegrain_fusing", c.finegrain_fusing, "NAME_OR_REGEX,...",
         "Nodes that no optimisation touches: expressions for a part of the name");
  o.list("--disable", c.common.disable, "RULE[,RULE]", "Optimisations to leave out, or all", ',');
  o.list("--exempt", c.common.exempt, "NAME_OR_REGEX[,...]",
         "Nodes that no optimisation touches: names, or expressions for the whole name", ',');
  o.choice("--static_shape", c.static_shape, {"true", "false"}, "",
           "Accepted without effect: known sizes are always folded");
  o.text("--transform", c.transform, "NAME", "Refused: lamina has no such transformations");
  o.flag("--input_model_is_text", c.input_model_is_text,
         "Accepted without effect: the file's content tells whether it is text");
  OptionHandle(o.flag("--generate_deprecated_IR_V10", c.generate_ir_v10, "")).hidden();
}

void add_output(OptionSet& o, OptimizeCommand& c) {
  o.choice("--log-level,--log_level", c.common.log_level, {"error", "warning", "info", "debug"}, "LEVEL",
           "error, warning, info or debug; the Model Optimizer's words, too");
  o.choice("--silent", c.silent, {"true", "false"}, "", "Print no argument table and no summary");
  o.flag("--progress", c.progress, "Print the progress, on one line");
  o.flag("--stream_output", c.stream_output, "Print the progress, one line per step");
  o.flag("--version", c.version, "Print the version and exit");
  o.flag("--quiet", c.common.quiet, "Print nothing but errors");
  add_json(o, c.common);
  OptionHandle(o.list("--idle", c.idle, "TEXT", "")).hidden();
  c.as_model_optimizer = [o] { return speaks_model_optimizer(o); };
}

}  // namespace

Verb setup_optimize(OptionSet& options) {
  auto c = std::make_shared<OptimizeCommand>();
  add_model(options, c->common, false);
  add_files(options, *c);
  add_surgery(options, *c);
  add_preprocessing(options, *c);
  add_switches(options, *c);
  add_output(options, *c);
  options.remark(
      "Options of OpenVINO's Model Optimizer (mo) are understood in all its spellings: -ms, --scale 58.8,\n"
      "--compress_to_fp16=False, and unambiguous beginnings. See docs/optimize.md.");
  return [c] { return run(*c); };
}

}  // namespace lamina::tool
