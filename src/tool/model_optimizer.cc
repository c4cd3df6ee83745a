#include "tool/model_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "base/words.h"
#include "tool/common.h"

namespace lamina::tool {
namespace {

/// What becomes of an option.
enum class OptionMeaning {
  value,      ///< to the first name, with its value
  flag,       ///< to the first name
  boolean,    ///< the same with true or false, which may be said
  optional_,  ///< goes where its value is empty
  level,      ///< --log_level to --log-level
  idle,       ///< has a value and no effect; `text` says why
  idle_flag,  ///< the same without a value
  refused,    ///< `text` says why
};

struct OptionRow {
  std::vector<std::string_view> names;  ///< long ones without dashes
  OptionMeaning meaning;
  std::string_view text = {};
};

constexpr std::string_view kFrozen = "wanted a frozen graph: --input_model FILE.pb or FILE.pbtxt";
constexpr std::string_view kRewrites =
    "graphs are not rewritten as configuration files of the Model Optimizer say";
constexpr std::string_view kMxnet = "it is for MXNet, which is not read";
constexpr std::string_view kKaldi = "it is for Kaldi, which is not read";
constexpr std::string_view kOldIr = "IR 10 and 11 can be written (--ir_version)";

const std::vector<OptionRow>& optimizer_rows() {
  using M = OptionMeaning;
  static const std::vector<OptionRow> table{
      {{"input_model", "m", "w"}, M::value},
      {{"model_name", "n"}, M::value},
      {{"output_dir", "o"}, M::value},
      {{"framework"}, M::value},
      {{"input"}, M::optional_},
      {{"output"}, M::optional_},
      {{"input_shape"}, M::optional_},
      {{"batch", "b"}, M::value},
      {{"mean_values", "ms"}, M::optional_},
      {{"scale_values"}, M::optional_},
      {{"scale", "s"}, M::value},
      {{"data_type"}, M::value},
      {{"layout"}, M::optional_},
      {{"source_layout"}, M::optional_},
      {{"target_layout"}, M::optional_},
      {{"freeze_placeholder_with_value"}, M::optional_},
      {{"finegrain_fusing"}, M::optional_},
      {{"input_proto", "d"}, M::value},
      {{"mean_file", "mf"}, M::value},
      {{"mean_file_offsets", "mo"}, M::value},
      {{"transform"}, M::optional_},
      {{"extensions"}, M::optional_},
      {{"log_level"}, M::level},
      {{"reverse_input_channels"}, M::boolean},
      {{"compress_to_fp16"}, M::boolean},
      {{"silent"}, M::boolean},
      {{"static_shape"}, M::boolean},
      {{"progress"}, M::flag},
      {{"stream_output"}, M::flag},
      {{"version"}, M::flag},
      {{"disable_fusing"}, M::flag},
      {{"disable_gfusing"}, M::flag},
      {{"disable_resnet_optimization"}, M::flag},
      {{"disable_weights_compression"}, M::flag},
      {{"input_model_is_text"}, M::flag},
      {{"generate_deprecated_IR_V10"}, M::flag},
      {{"enable_concat_optimization"}, M::idle_flag, "Concats are merged anyway"},
      {{"move_to_preprocess"}, M::idle_flag, "means become operators, as in IR 10 and 11"},
      {{"keep_shape_ops"}, M::idle_flag, "operators on shapes are kept where sizes are unknown"},
      {{"use_new_frontend"}, M::idle_flag, "there is one reader for each format"},
      {{"use_legacy_frontend"}, M::idle_flag, "there is one reader for each format"},
      {{"legacy_ir_generation"}, M::idle_flag, "there is one writer"},
      {{"disable_nhwc_to_nchw"},
       M::idle_flag,
       "inputs and outputs keep the layout of the model (--layout changes it)"},
      {{"disable_omitting_optional"}, M::idle_flag, "attributes are written as the operations have them"},
      {{"enable_flattening_nested_params"},
       M::idle_flag,
       "attributes are written as the operations have them"},
      {{"share_weights"}, M::idle_flag, "equal constants are written once"},
      {{"caffe_parser_path"}, M::idle, "the reader needs no parser"},
      {{"k"}, M::idle, "custom layers come from libraries (--extensions)"},
      {{"tensorboard_logdir"}, M::idle, "lamina graph draws models"},
      {{"generate_deprecated_IR_V2"}, M::refused, kOldIr},
      {{"generate_deprecated_IR_V7"}, M::refused, kOldIr},
      {{"transformations_config"}, M::refused, kRewrites},
      {{"tensorflow_use_custom_operations_config"}, M::refused, kRewrites},
      {{"tensorflow_custom_operations_config_update"}, M::refused, kRewrites},
      {{"tensorflow_object_detection_api_pipeline_config"}, M::refused, kRewrites},
      {{"tensorflow_custom_layer_libraries"}, M::refused, "TensorFlow's own libraries cannot be used here"},
      {{"example_input"}, M::refused, "it is for models in Python's memory"},
      {{"input_checkpoint"}, M::refused, kFrozen},
      {{"input_meta_graph"}, M::refused, kFrozen},
      {{"saved_model_dir"}, M::refused, kFrozen},
      {{"saved_model_tags"}, M::refused, kFrozen},
      {{"input_symbol"}, M::refused, kMxnet},
      {{"nd_prefix_name"}, M::refused, kMxnet},
      {{"pretrained_model_name"}, M::refused, kMxnet},
      {{"save_params_from_nd"}, M::refused, kMxnet},
      {{"legacy_mxnet_model"}, M::refused, kMxnet},
      {{"enable_ssd_gluoncv"}, M::refused, kMxnet},
      {{"counts"}, M::refused, kKaldi},
      {{"remove_output_softmax"}, M::refused, kKaldi},
      {{"remove_memory"}, M::refused, kKaldi},
  };
  return table;
}

std::string dashed(std::string_view name) { return (name.size() > 2 ? "--" : "-") + std::string(name); }

bool names(const OptionRow& row, std::string_view name) {
  return std::find(row.names.begin(), row.names.end(), name) != row.names.end();
}

/// The row of that name; null: none.
const OptionRow* find_row(std::string_view name, bool is_long) {
  for (const auto& row : optimizer_rows())
    if (names(row, name) && is_long == (name.size() > 2 || name == "k")) return &row;
  for (const auto& row : optimizer_rows())
    if (names(row, name) && !is_long) return &row;
  return nullptr;
}

/// The row of "-ms", "--mean_values" or "--mean_v"; null: none.
const OptionRow* find(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() < 2 || word[0] != '-') return nullptr;
  const auto option = std::string_view(word).substr(0, word.find('='));
  const bool is_long = option.starts_with("--");
  if (const auto* row = find_row(option.substr(is_long ? 2 : 1), is_long)) return row;
  if (!is_long || option.size() == 2) return nullptr;
  std::set<std::string> meant;
  for (const auto& name : known) {
    if (name == option) return nullptr;
    if (name.starts_with(option)) meant.insert(name);
  }
  for (const auto& row : optimizer_rows())
    if (const auto name = dashed(row.names[0]); name.starts_with(option)) meant.insert(name);
  if (meant.size() > 1) throw UsageError(fmt::format("option {} may be {}", option, fmt::join(meant, ", ")));
  return meant.empty() ? nullptr : find_row(std::string_view(*meant.begin()).substr(2), true);
}

std::optional<bool> truth(const std::string& text) {
  const auto word = lower_case(text);
  if (word == "true" || word == "yes" || word == "1") return true;
  if (word == "false" || word == "no" || word == "0") return false;
  return std::nullopt;
}

/// The Model Optimizer's levels in lamina's words.
std::string level_of(const std::string& text) {
  const auto word = upper_case(text);
  if (word == "CRITICAL" || word == "ERROR") return "error";
  if (word == "WARN" || word == "WARNING") return "warning";
  if (word == "INFO") return "info";
  if (word == "DEBUG" || word == "NOTSET") return "debug";
  throw UsageError(
      fmt::format("--log_level {}: wanted CRITICAL, ERROR, WARN, WARNING, INFO, DEBUG or NOTSET", text));
}

class ModelOptimizerTranslation {
 public:
  ModelOptimizerTranslation(const std::vector<std::string>& in, const std::vector<std::string>& known)
      : in_(in), known_(known) {}

  ModelOptimizerWords made() && {
    bool ended = false;
    for (at_ = 0; at_ < in_.size(); ++at_) {
      ended |= in_[at_] == "--";
      const auto* row = ended ? nullptr : find(in_[at_], known_);
      if (!row) {
        out_.words.push_back(in_[at_]);
        continue;
      }
      take(*row);
    }
    return std::move(out_);
  }

 private:
  void take(const OptionRow& row) {
    typed_ = in_[at_].substr(0, in_[at_].find('='));
    const auto ours = dashed(row.names[0]);
    if (ours != typed_) out_.typed[ours] = typed_;
    switch (row.meaning) {
      case OptionMeaning::value:
        if (const auto given = value(); !given.empty()) return add(ours, given);
        throw UsageError(fmt::format("{}: wanted a value after it", typed_));
      case OptionMeaning::flag:
        if (in_[at_].find('=') == std::string::npos || flag()) out_.words.push_back(ours);
        return;
      case OptionMeaning::boolean:
        return add(ours, flag() ? "true" : "false");
      case OptionMeaning::optional_:
        if (const auto given = value(); !given.empty()) add(ours, given);
        return;
      case OptionMeaning::level:
        return add("--log-level", level_of(value()));
      case OptionMeaning::idle:
        value();
        return add("--idle", fmt::format("{}: {}", typed_, row.text));
      case OptionMeaning::idle_flag:
        if (in_[at_].find('=') != std::string::npos && !flag()) return;
        return add("--idle", fmt::format("{}: {}", typed_, row.text));
      case OptionMeaning::refused:
        throw UsageError(fmt::format("option {} cannot be used: {}", typed_, row.text));
    }
  }

  void add(const std::string& option, const std::string& text) { out_.words.push_back(option + "=" + text); }

  /// The value of the current option: after its '=', or the next word.
  std::string value() {
    const auto equals = in_[at_].find('=');
    if (equals != std::string::npos) return in_[at_].substr(equals + 1);
    if (at_ + 1 == in_.size()) throw UsageError(fmt::format("{}: wanted a value after it", typed_));
    return in_[++at_];
  }

  /// The option stands alone, or with true or false behind '=' or as the next word.
  bool flag() {
    const bool equals = in_[at_].find('=') != std::string::npos;
    if (!equals && (at_ + 1 == in_.size() || !truth(in_[at_ + 1]))) return true;
    const auto given = value();
    if (const auto said = truth(given)) return *said;
    throw UsageError(fmt::format("{}={}: wanted True or False", typed_, given));
  }

  const std::vector<std::string>& in_;
  const std::vector<std::string>& known_;
  std::size_t at_ = 0;
  std::string typed_;
  ModelOptimizerWords out_;
};

}  // namespace

ModelOptimizerWords translate_model_optimizer(const std::vector<std::string>& words,
                                              const std::vector<std::string>& known) {
  return ModelOptimizerTranslation(words, known).made();
}

/// Options that lamina's own form has, too, do not count.
bool speaks_model_optimizer(const OptionSet& options) {
  if (options.given("--idle")) return true;
  return std::any_of(optimizer_rows().begin(), optimizer_rows().end(), [&](const OptionRow& row) {
    const bool of_both =
        row.names[0] == "output_dir" || row.names[0] == "extensions" || row.meaning == OptionMeaning::level;
    const bool has_one = row.meaning <= OptionMeaning::optional_;
    return has_one && !of_both && options.given(dashed(row.names[0]));
  });
}

std::vector<std::string> model_optimizer_names() {
  std::vector<std::string> out;
  for (const auto& row : optimizer_rows())
    for (const auto name : row.names) out.push_back(dashed(name));
  return out;
}

}  // namespace lamina::tool
