#include "tool/steps.h"

#include <array>
#include <string_view>

#include "base/log.h"

namespace lamina::tool {
namespace {

/// To the letter, as scripts look for them.
constexpr std::array<std::string_view, 11> kNames{"Parsing and validating input arguments",
                                                  "Loading OpenVINO Runtime",
                                                  "Setting device configuration",
                                                  "Reading model files",
                                                  "Resizing model to match image sizes and given batch",
                                                  "Configuring input of the model",
                                                  "Loading the model to the device",
                                                  "Querying optimal runtime parameters",
                                                  "Creating infer requests and preparing input tensors",
                                                  "Measuring performance",
                                                  "Dumping statistics report"};

void line(std::string_view text) {
  fmt::print("{}\n", printable(text));
  std::fflush(stdout);  // scripts and people follow it
}

}  // namespace

void Steps::step(int number, const std::string& more) const {
  if (speaks())
    line(fmt::format("[Step {}/{}] {}{}", number, kNames.size(),
                     kNames.at(static_cast<std::size_t>(number - 1)),
                     more.empty() ? "" : fmt::format(" ({})", more)));
}

void Steps::info(const std::string& text) const {
  if (speaks()) line("[ INFO ] " + text);
}

void Steps::warn(const std::string& text) const {
  if (speaks())
    line("[ WARNING ] " + text);
  else
    common_.note({text});
}

void Steps::note(const std::string& text) const {
  if (speaks())
    line("[ INFO ] " + text);
  else
    common_.note({text});
}

LogCallback Steps::log(LogCallback own) const {
  if (!speaks()) return own;
  const auto level = level_named(common_.log_level).value_or(LogLevel::warning);
  return [level](LogLevel l, std::string_view text) {
    if (l > level) return;
    const auto* head = l == LogLevel::error ? "ERROR" : l == LogLevel::warning ? "WARNING" : "INFO";
    line(fmt::format("[ {} ] {}", head, text));
  };
}

}  // namespace lamina::tool
