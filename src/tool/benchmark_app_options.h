#pragma once
/// The table of benchmark_app's options.
#include <string_view>
#include <vector>

namespace lamina::tool {

/// What becomes of an option.
enum class AppMeaning {
  renamed,  ///< to `text`, with its value
  of_cpu,   ///< the same, where values may be said by device: "CPU:4,GPU:2"
  model,    ///< an option whose value is the model
  flag,     ///< to `text`, which has no value
  boolean,  ///< to `text`, with true or false
  files,    ///< "name:file,file" to one --input per file
  device,   ///< a name of the CPU; it goes
  pin,      ///< to --set, and the following ones
  precision,
  bf16,
  cache,
  types,      ///< to `text`, with the option's own name in front
  idle,       ///< has a value and no effect; `text` says why
  idle_flag,  ///< the same without a value
};

struct AppOption {
  std::vector<std::string_view> names;  ///< without dashes: short first, as in the help of benchmark_app
  AppMeaning meaning;
  std::string_view text;
  std::string_view help;
};

const std::vector<AppOption>& app_options();
/// The option of a word such as "-niter", "-niter=10" or "--number_iterations"; null if it is none.
const AppOption* find_app_option(std::string_view word);

}  // namespace lamina::tool
