#include "api/option_values.h"

#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "base/words.h"

namespace lamina {
namespace {

/// The words, and all that are said for yes and no.
template <class E>
Words<E> with_truth(Words<E> words, E on, E off) {
  for (const auto word : {"YES", "TRUE", "ON", "1"}) words.emplace_back(word, on);
  for (const auto word : {"NO", "FALSE", "OFF", "0"}) words.emplace_back(word, off);
  return words;
}

}  // namespace

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

const Words<bool> kTruth = with_truth<bool>({}, true, false);
std::string yes_no(bool on) { return word_of(kTruth, on); }

const Words<Binding> kBindings =
    with_truth<Binding>({{"NUMA", Binding::numa_nodes}}, Binding::processors, Binding::none);
const Words<Binding> kAffinities{{"CORE", Binding::processors},
                                 {"NUMA", Binding::numa_nodes},
                                 {"NONE", Binding::none},
                                 {"HYBRID_AWARE", Binding::processors}};
const Words<Binding> kPinning = [] {
  auto words = with_truth<Binding>({}, Binding::processors, Binding::none);
  words.emplace_back("YES", Binding::numa_nodes);  // shown, never read
  return words;
}();
const Words<Precision> kPrecisions{{"model", Precision::model},     {"f32", Precision::f32},
                                   {"bf16", Precision::bf16},       {"f16", Precision::f16},
                                   {"MODEL", Precision::model},     {"DYNAMIC", Precision::model},
                                   {"UNDEFINED", Precision::model}, {"F32", Precision::f32},
                                   {"BF16", Precision::bf16},       {"F16", Precision::f16}};
const Words<ExecutionMode> kModes{{"NONE", ExecutionMode::none},
                                  {"PERFORMANCE", ExecutionMode::performance},
                                  {"ACCURACY", ExecutionMode::accuracy}};
const Words<PerformanceHint> kHints{{"NONE", PerformanceHint::none},
                                    {"LATENCY", PerformanceHint::latency},
                                    {"THROUGHPUT", PerformanceHint::throughput},
                                    {"CUMULATIVE_THROUGHPUT", PerformanceHint::cumulative_throughput}};
const Words<HyperThreading> kHyperThreading = with_truth<HyperThreading>(
    {{"AUTO", HyperThreading::automatic}}, HyperThreading::on, HyperThreading::off);
const Words<CoreType> kCores{
    {"ANY_CORE", CoreType::any}, {"PCORE_ONLY", CoreType::performance}, {"ECORE_ONLY", CoreType::efficient}};
const Words<CacheMode> kCacheModes{{"OPTIMIZE_SPEED", CacheMode::speed}, {"OPTIMIZE_SIZE", CacheMode::size}};
const Words<ExternalFiles> kExternalFiles{{"beside", ExternalFiles::beside},
                                          {"none", ExternalFiles::none},
                                          {"BESIDE", ExternalFiles::beside},
                                          {"NONE", ExternalFiles::none}};

}  // namespace lamina
