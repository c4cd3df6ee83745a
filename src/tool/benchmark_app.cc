#include "tool/benchmark_app.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "tool/common.h"

namespace lamina::tool {
namespace {

/// What becomes of an option.
enum class Meaning {
  renamed,     ///< to `text`, with its value
  model,       ///< its value is the model
  flag,        ///< to `text`, which has no value
  files,       ///< "name:file,file" to one --input per file
  bare,        ///< to `text`, its value without brackets: "[1,2,3]"
  only,        ///< `text` is the only value that means what lamina does; it goes
  impossible,  ///< refused; `text` says what there is instead
};

struct Row {
  std::vector<std::string_view> names;  ///< without dashes: short first, as in the help of benchmark_app
  Meaning meaning;
  std::string_view text;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table{
      {{"m", "path_to_model"}, Meaning::model, ""},
      {{"i", "paths_to_input"}, Meaning::files, "--input"},
      {{"d", "target_device"}, Meaning::only, "CPU"},
      {{"hint", "perf_hint"}, Meaning::renamed, "--hint"},
      {{"api", "api_type"}, Meaning::renamed, "--api"},
      {{"nireq", "number_infer_requests"}, Meaning::renamed, "--requests"},
      {{"nstreams", "number_streams"}, Meaning::renamed, "--streams"},
      {{"nthreads", "number_threads"}, Meaning::renamed, "--threads"},
      {{"niter", "number_iterations"}, Meaning::renamed, "--iterations"},
      {{"t", "time"}, Meaning::renamed, "--seconds"},
      {{"b", "batch_size"}, Meaning::renamed, "--batch"},
      {{"shape"}, Meaning::renamed, "--shape"},
      {{"data_shape"}, Meaning::renamed, "--shape"},
      {{"layout"}, Meaning::renamed, "--layout"},
      {{"mean_values", "imean"}, Meaning::bare, "--mean"},
      {{"scale_values", "iscale"}, Meaning::bare, "--scale"},
      {{"exec_graph_path"}, Meaning::renamed, "--runtime-graph"},
      {{"pc", "perf_counts"}, Meaning::flag, "--pc"},
      {{"h", "help"}, Meaning::flag, "--help"},
      {{"infer_precision"}, Meaning::only, "f32"},
      {{"pin", "infer_threads_pinning"}, Meaning::only, "NO"},
      {{"inference_only"}, Meaning::only, "true"},
      {{"max_irate", "maximum_inference_rate"}, Meaning::impossible, "requests follow each other at once"},
      {{"ip", "input_precision"}, Meaning::impossible, "inputs have the model's types"},
      {{"op", "output_precision"}, Meaning::impossible, "outputs have the model's types"},
      {{"iop", "input_output_precision"}, Meaning::impossible, "inputs and outputs have the model's types"},
      {{"no_warmup"}, Meaning::impossible, "the first inference is measured apart"},
      {{"cdir", "cache_dir"}, Meaning::impossible, "compiled models are not kept yet"},
      {{"lfile", "load_from_file"}, Meaning::impossible, "the model is read, then compiled"},
      {{"extensions", "l"}, Meaning::renamed, "--extensions"},
      {{"c", "path_to_cldnn_config"}, Meaning::impossible, "there is no GPU"},
      {{"use_device_mem"}, Meaning::impossible, "there is no other memory"},
      {{"latency_percentile"}, Meaning::impossible, "median, p90 and p99 are always there"},
      {{"report_type"}, Meaning::impossible, "--json FILE writes all figures, with -pc those of layers"},
      {{"report_folder"}, Meaning::impossible, "--json FILE writes all figures"},
      {{"json_stats"}, Meaning::impossible, "--json FILE writes all figures"},
      {{"pcsort"}, Meaning::impossible, "-pc is in the order of execution, --top K sorts by time"},
      {{"pcseq"}, Meaning::impossible, "one shape is measured at a time"},
      {{"dump_config"}, Meaning::impossible, "--set KEY=VALUE sets, nothing is kept"},
      {{"load_config"}, Meaning::impossible, "--set KEY=VALUE sets"},
      {{"enforcebf16"}, Meaning::impossible, "--precision P"},
      {{"qb"}, Meaning::impossible, "there is no GPU"},
      {{"progress"}, Meaning::impossible, "terminals always show it"},
      {{"stream_output"}, Meaning::impossible, "the output goes by lines"},
  };
  return table;
}

/// lamina has options of these names itself.
bool is_ours(std::string_view name) {
  for (const auto* ours : {"hint", "api", "shape", "layout", "help", "pc"})
    if (name == ours) return true;
  return false;
}

/// A word such as "-niter", "-niter=10" or "--number_iterations".
const Row* find(std::string_view word) {
  if (!word.starts_with("-")) return nullptr;
  word.remove_prefix(1);
  const bool twice = word.starts_with("-");
  if (twice) word.remove_prefix(1);
  const auto name = word.substr(0, word.find('='));
  if (twice && (name.size() == 1 || is_ours(name))) return nullptr;
  for (const auto& row : rows())
    if (std::find(row.names.begin(), row.names.end(), name) != row.names.end()) return &row;
  return nullptr;
}

class Translation {
 public:
  explicit Translation(const std::vector<std::string>& in) : in_(in) {}

  BenchmarkAppWords made() {
    for (at_ = 0; at_ < in_.size(); ++at_) {
      const auto* row = find(in_[at_]);
      if (row)
        take(*row);
      else
        out_.words.push_back(in_[at_]);
    }
    return std::move(out_);
  }

 private:
  void take(const Row& row) {
    typed_ = in_[at_].substr(0, in_[at_].find('='));
    const std::string ours(row.text);
    switch (row.meaning) {
      case Meaning::impossible:
        throw UsageError(fmt::format("{}: lamina benchmark has no such option: {}", typed_, row.text));
      case Meaning::flag:
        if (flag()) out_.words.push_back(ours);
        return;
      case Meaning::only:
        return only(ours);
      case Meaning::model:
        out_.words.push_back(value());
        return;
      case Meaning::files:
        return files(value());
      case Meaning::renamed:
        return add(ours, of_cpu(value()));
      case Meaning::bare: {
        auto v = value();
        if (v.starts_with('[') && v.ends_with(']')) v = v.substr(1, v.size() - 2);
        return add(ours, v);
      }
    }
  }

  /// Of the option at hand: behind its '=' or the next word.
  std::string value() {
    const auto equals = in_[at_].find('=');
    if (equals != std::string::npos) return in_[at_].substr(equals + 1);
    if (at_ + 1 == in_.size()) throw UsageError(fmt::format("{}: wanted a value behind it", typed_));
    return in_[++at_];
  }

  /// The option stands alone, or with true or false behind '=' or as the next word.
  bool flag() {
    const bool equals = in_[at_].find('=') != std::string::npos;
    if (!equals && (at_ + 1 == in_.size() || !truth(in_[at_ + 1]))) return true;
    const auto given = value();
    if (const auto said = truth(given)) return *said;
    throw UsageError(fmt::format("{}={}: wanted true or false", typed_, given));
  }

  void add(const std::string& ours, const std::string& value) {
    out_.words.push_back(ours);
    out_.words.push_back(value);
    out_.typed[ours] = typed_;
  }

  void only(const std::string& wanted) {
    const bool boolean = wanted == "true";
    const bool bare =
        in_[at_].find('=') == std::string::npos && (at_ + 1 == in_.size() || in_[at_ + 1].starts_with("-"));
    if (boolean && bare) return;
    const auto given = of_cpu(value());
    if (given != wanted && !(boolean && truth(given) == true))
      throw UsageError(fmt::format("{} {}: lamina benchmark knows {} only", typed_, given, wanted));
  }

  /// "a.png", "x:a.png,b.png,y:c.npy": files go to the input that was named last.
  void files(const std::string& text) {
    if (text == "random") return;
    std::string name;
    for (std::size_t at = 0; at <= text.size();) {
      const auto end = std::min(text.find(',', at), text.size());
      auto file = text.substr(at, end - at);
      at = end + 1;
      if (const auto colon = file.find(':'); colon != std::string::npos) {
        name = file.substr(0, colon) + "=";
        file.erase(0, colon + 1);
      }
      add("--input", name + file);
    }
  }

  static std::optional<bool> truth(std::string text) {
    for (auto& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (text == "true" || text == "yes" || text == "1") return true;
    if (text == "false" || text == "no" || text == "0") return false;
    return {};
  }
  /// Values may be said for one device: "CPU:4".
  static std::string of_cpu(const std::string& text) {
    return text.starts_with("CPU:") ? text.substr(4) : text;
  }

  const std::vector<std::string>& in_;
  std::size_t at_ = 0;
  std::string typed_;
  BenchmarkAppWords out_;
};

}  // namespace

BenchmarkAppWords translate_benchmark_app(const std::vector<std::string>& words) {
  return Translation(words).made();
}

std::vector<std::string> benchmark_app_names() {
  std::vector<std::string> out;
  for (const auto& row : rows())
    if (row.meaning != Meaning::impossible) out.push_back(fmt::format("-{}", row.names[0]));
  return out;
}

}  // namespace lamina::tool
