#pragma once
/// The command line and the output of `lamina optimize`.
#include "lamina/optimize.h"
#include "tool/common.h"

namespace lamina::tool {

/// The options, as they were written. Booleans that may be said are "true", "false" or "".
struct OptimizeCommand {
  Common common;
  std::string input_model, model_name, output_dir, framework, input_proto;
  std::string input, output, input_shape, freeze, layout, source_layout, target_layout;
  std::string mean_values, scale_values, mean_file, mean_file_offsets, reverse_input_channels;
  std::string data_type, compress_to_fp16, silent, static_shape, transform, finegrain_fusing, report;
  std::vector<std::string> idle;  ///< options without an effect, and why
  long batch = 0;                 ///< 0: the model's
  double scale = 0;               ///< 0: none
  std::function<bool()> scale_given;
  int ir_version = 11;
  bool disable_fusing = false, disable_gfusing = false, disable_resnet_optimization = false;
  bool disable_weights_compression = false;
  bool progress = false, stream_output = false, version = false;
  bool input_model_is_text = false, generate_ir_v10 = false;
  /// True if an option of the Model Optimizer was given: errors then have its form, with numbers of its FAQ.
  std::function<bool()> as_model_optimizer;

  const std::string& model() const { return input_model.empty() ? common.model : input_model; }
  int version_of_ir() const { return generate_ir_v10 ? 10 : ir_version; }
  bool fp16() const;
  bool is_silent() const { return silent == "true"; }
  /// The Model Optimizer's options that were given and are of the model, for its file: name and value.
  std::map<std::string, std::string> given() const;
};

/// The files of the IR to write.
struct IrFiles {
  std::string folder, name;  ///< of the network
  std::string xml, bin;
  std::vector<std::string> reports;  ///< of --json and --report
};
/// Throws UsageError, FaqError.
IrFiles ir_files(const OptimizeCommand& command);

/// "onnx", "caffe", "tf" or "ir". Throws UsageError, FaqError(15).
std::string framework_of(const OptimizeCommand& command);

/// The options of the conversion; what is printed and written meanwhile is the caller's. Throws UsageError,
/// FaqError.
OptimizeOptions options_of(const OptimizeCommand& command);

/// The Model Optimizer's table of arguments.
std::string argument_table(const OptimizeCommand& command, const IrFiles& files,
                           const std::string& framework);

/// "Progress: [....      ]  20.00% done"
std::string progress_bar(double done);

/// Rewrites by rule, operators and multiply-adds before and after, inputs that nothing reads, ...: lines.
std::vector<std::string> summary_of(const OptimizeReport& report);

/// "[ ERROR ]  text For more information please refer to Model Optimizer FAQ, question #60."
std::string error_line(const Error& error);

}  // namespace lamina::tool
