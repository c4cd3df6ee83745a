#include "tool/benchmark_app_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tool/benchmark_app.h"

namespace lamina::tool {

const std::vector<AppOption>& app_options() {
  using M = AppMeaning;
  static const std::vector<AppOption> table{
      {{"h", "help"}, M::flag, "--help", ""},
      {{"m", "path_to_model"}, M::model, "", "The model; benchmark_app's defaults and output"},
      {{"i", "paths_to_input"},
       M::files,
       "--input",
       "Files, folders, NAME:FILE,FILE,NAME2:..., random, image_info"},
      {{"d", "target_device"}, M::device, "", "CPU (AUTO, MULTI:CPU and HETERO:CPU mean it)"},
      {{"hint", "perf_hint"}, M::renamed, "--hint", ""},
      {{"api", "api_type"}, M::renamed, "--api", ""},
      {{"nireq", "number_infer_requests"}, M::renamed, "--requests", ""},
      {{"nstreams", "number_streams"}, M::of_cpu, "--streams", ""},
      {{"nthreads", "number_threads"}, M::of_cpu, "--threads", ""},
      {{"pin", "infer_threads_pinning"}, M::pin, "", "YES, NO, NUMA or HYBRID_AWARE: sets CPU_BIND_THREAD"},
      {{"infer_precision"}, M::precision, "", "f32, bf16 or f16: sets INFERENCE_PRECISION_HINT"},
      {{"enforcebf16", "enforce_bfloat16"}, M::bf16, "", "Sets ENFORCE_BF16"},
      {{"niter", "number_iterations"}, M::renamed, "--iterations", ""},
      {{"t", "time"}, M::renamed, "--seconds", ""},
      {{"max_irate", "maximum_inference_rate"}, M::renamed, "--max-rate", ""},
      {{"b", "batch_size"}, M::renamed, "--batch", ""},
      {{"shape"}, M::renamed, "--shape", ""},
      {{"data_shape"}, M::renamed, "--data-shape", ""},
      {{"layout"}, M::renamed, "--layout", ""},
      {{"ip", "input_precision"}, M::types, "--types", "Element type of inputs, if not the model's"},
      {{"op", "output_precision"}, M::types, "--types", "Element type of outputs, likewise"},
      {{"iop", "input_output_precision"}, M::types, "--types", "Both by name: \"x:f16, y:f32\""},
      {{"mean_values", "imean"}, M::renamed, "--mean-values", ""},
      {{"scale_values", "iscale"}, M::renamed, "--scale-values", ""},
      {{"inference_only"}, M::boolean, "--inference-only", ""},
      {{"no_warmup"}, M::flag, "--no-warmup", ""},
      {{"latency_percentile"}, M::renamed, "--percentile", ""},
      {{"cdir", "cache_dir"}, M::cache, "", "Sets CACHE_DIR"},
      {{"lfile", "load_from_file"}, M::flag, "--from-file", ""},
      {{"extensions", "l"}, M::renamed, "--extensions", ""},
      {{"report_type"}, M::renamed, "--report-type", ""},
      {{"report_folder"}, M::renamed, "--report-folder", ""},
      {{"json_stats"}, M::flag, "--json-stats", ""},
      {{"pc", "perf_counts", "report_performance_counters"}, M::flag, "--pc", ""},
      {{"pcsort", "perf_counts_sort"}, M::renamed, "--pcsort", ""},
      {{"pcseq", "perf_counts_sequence"}, M::flag, "--pcseq", ""},
      {{"exec_graph_path"}, M::renamed, "--runtime-graph", ""},
      {{"dump_config"}, M::renamed, "--dump-config", ""},
      {{"load_config"}, M::renamed, "--load-config", ""},
      {{"c", "path_to_cldnn_config"}, M::idle, "it is for GPUs", ""},
      {{"use_device_mem"}, M::idle_flag, "it is for GPUs", ""},
      {{"stream_output"}, M::idle_flag, "the output is written line by line", ""},
      {{"progress"}, M::idle_flag, "progress is always shown on terminals", ""},
      {{"qb", "quantization_bits"}, M::idle, "it is for GNA devices", ""},
  };
  return table;
}

const AppOption* find_app_option(std::string_view word) {
  if (!word.starts_with("-")) return nullptr;
  word.remove_prefix(1);
  if (word.starts_with("-")) word.remove_prefix(1);
  const auto name = word.substr(0, word.find('='));
  for (const auto& row : app_options())
    if (std::find(row.names.begin(), row.names.end(), name) != row.names.end()) return &row;
  return nullptr;
}

std::vector<std::string> benchmark_app_names() {
  std::vector<std::string> out;
  for (const auto& row : app_options())
    for (const auto name : row.names) out.push_back(fmt::format("-{}", name));
  return out;
}

std::string benchmark_app_help() {
  std::string out = "Options of benchmark_app, with one dash or two, values after a space or '=':\n";
  for (const auto& row : app_options()) {
    std::string names;
    for (const auto name : row.names) names += fmt::format("{}-{}", names.empty() ? "" : ", ", name);
    const auto idle = row.meaning == AppMeaning::idle || row.meaning == AppMeaning::idle_flag;
    out += fmt::format("  {:<38} {}\n", names,
                       idle               ? fmt::format("No effect: {}", row.text)
                       : row.help.empty() ? fmt::format("As {}", row.text)
                                          : std::string(row.help));
  }
  return out;
}

}  // namespace lamina::tool
