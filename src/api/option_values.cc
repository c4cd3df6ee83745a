#include "api/option_values.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers.h"
#include "base/words.h"

namespace lamina {
namespace {

/// The words, and all that are said for yes and no.
template <class E, std::size_t N = 0>
constexpr auto with_truth(E on, E off, const std::array<WordFor<E>, N>& words = {}) {
  std::array<WordFor<E>, N + 8> out;
  auto* next = std::copy(words.begin(), words.end(), out.data());
  for (const auto* word : {"YES", "TRUE", "ON", "1"}) *next++ = {word, on};
  for (const auto* word : {"NO", "FALSE", "OFF", "0"}) *next++ = {word, off};
  return out;
}

constexpr auto kTruthWords = with_truth(true, false);
constexpr auto kBindingWords =
    with_truth(Binding::processors, Binding::none, std::array{WordFor<Binding>{"NUMA", Binding::numa_nodes}});
constexpr WordFor<Binding> kAffinityWords[] = {{"CORE", Binding::processors},
                                               {"NUMA", Binding::numa_nodes},
                                               {"NONE", Binding::none},
                                               {"HYBRID_AWARE", Binding::processors}};
/// The second YES only names numa_nodes when a value is shown; reading finds the first.
constexpr auto kPinningWords = [] {
  const auto words = with_truth(Binding::processors, Binding::none);
  std::array<WordFor<Binding>, words.size() + 1> out;
  *std::copy(words.begin(), words.end(), out.data()) = {"YES", Binding::numa_nodes};
  return out;
}();
constexpr WordFor<Precision> kPrecisionWords[] = {
    {"model", Precision::model},     {"f32", Precision::f32},     {"bf16", Precision::bf16},
    {"f16", Precision::f16},         {"MODEL", Precision::model}, {"DYNAMIC", Precision::model},
    {"UNDEFINED", Precision::model}, {"F32", Precision::f32},     {"BF16", Precision::bf16},
    {"F16", Precision::f16}};
constexpr WordFor<ExecutionMode> kModeWords[] = {{"NONE", ExecutionMode::none},
                                                 {"PERFORMANCE", ExecutionMode::performance},
                                                 {"ACCURACY", ExecutionMode::accuracy}};
constexpr WordFor<PerformanceHint> kHintWords[] = {
    {"NONE", PerformanceHint::none},
    {"LATENCY", PerformanceHint::latency},
    {"THROUGHPUT", PerformanceHint::throughput},
    {"CUMULATIVE_THROUGHPUT", PerformanceHint::cumulative_throughput}};
constexpr auto kHyperThreadingWords =
    with_truth(HyperThreading::on, HyperThreading::off,
               std::array{WordFor<HyperThreading>{"AUTO", HyperThreading::automatic}});
constexpr WordFor<CoreType> kCoreWords[] = {
    {"ANY_CORE", CoreType::any}, {"PCORE_ONLY", CoreType::performance}, {"ECORE_ONLY", CoreType::efficient}};
constexpr WordFor<CacheMode> kCacheModeWords[] = {{"OPTIMIZE_SPEED", CacheMode::speed},
                                                  {"OPTIMIZE_SIZE", CacheMode::size}};
constexpr WordFor<ExternalFiles> kExternalFilesWords[] = {{"beside", ExternalFiles::beside},
                                                          {"none", ExternalFiles::none},
                                                          {"BESIDE", ExternalFiles::beside},
                                                          {"NONE", ExternalFiles::none}};

}  // namespace

constinit const Words<bool> kTruth = kTruthWords;
constinit const Words<Binding> kBindings = kBindingWords;
constinit const Words<Binding> kAffinities = kAffinityWords;
constinit const Words<Binding> kPinning = kPinningWords;
constinit const Words<Precision> kPrecisions = kPrecisionWords;
constinit const Words<ExecutionMode> kModes = kModeWords;
constinit const Words<PerformanceHint> kHints = kHintWords;
constinit const Words<HyperThreading> kHyperThreading = kHyperThreadingWords;
constinit const Words<CoreType> kCores = kCoreWords;
constinit const Words<CacheMode> kCacheModes = kCacheModeWords;
constinit const Words<ExternalFiles> kExternalFiles = kExternalFilesWords;

std::string yes_no(bool on) { return word_of(kTruth, on); }

std::vector<std::string> names_of(std::string_view text) {
  std::vector<std::string> out;
  for (const auto word : pieces_of(text))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

std::optional<std::int64_t> whole(std::string_view text, std::int64_t low, std::int64_t high) {
  const bool negative = low < 0 && text.starts_with('-');
  const auto digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return {};
  const auto v = parse_integer<std::int64_t>(text);
  return v && *v >= low && *v <= high ? v : std::nullopt;
}

std::optional<std::uint64_t> bytes_of(std::string_view text) {
  const auto end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = parse_real<double>(text.substr(0, end));
  auto unit = upper_case(text.substr(end));
  if (unit.starts_with(' ')) unit.erase(0, 1);
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    const auto power = std::string_view("KMGT").find(unit[0]);
    const auto rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos || (!rest.empty() && rest != "B" && rest != "IB")) return {};
    factor = std::pow(rest == "B" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  const double bytes = number ? std::floor(*number * factor) : 0;
  return bytes >= 1 && bytes <= 0x1p60 ? std::optional(static_cast<std::uint64_t>(bytes)) : std::nullopt;
}

}  // namespace lamina
