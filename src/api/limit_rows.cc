#include "api/limit_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "api/option_values.h"
#include "base/limits.h"
#include "base/numbers.h"

namespace lamina {
namespace {

constexpr std::int64_t kMostCount = 1'000'000'000;
constexpr double kMostSeconds = 1e9;
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 60;

/// A row whose value is a field of the limits.
OptionRow limit_row(std::string key, std::string values, std::string help,
                    std::function<bool(ModelLimits&, std::string_view)> set,
                    std::function<std::string(const ModelLimits&)> text) {
  OptionRow row{.info = {std::move(key), std::move(values), std::move(help)}};
  row.set = [set = std::move(set)](Options& o, std::string_view v) { return set(o.limits, v); };
  row.asked = [text](const Options& o) { return text(o.limits); };
  row.used = [text = std::move(text)](const Settings& s) -> std::pair<std::string, std::string> {
    auto used = text(s.made_with.limits);
    const bool same = used == text(s.options.limits);
    return {std::move(used), same ? "" : "the model was read with this limit"};
  };
  return row;
}

template <class T>
OptionRow count_row(std::string key, std::string help, T ModelLimits::*field, std::int64_t most) {
  auto row = limit_row(
      std::move(key), fmt::format("1 to {}", most), std::move(help),
      [=](ModelLimits& l, std::string_view v) {
        const auto n = whole(v, 1, most);
        if (n) l.*field = static_cast<T>(*n);
        return n.has_value();
      },
      [=](const ModelLimits& l) { return std::to_string(l.*field); });
  row.wrong = [=, name = row.info.key](const Options& o) {
    const auto n = o.limits.*field;
    return n >= 1 && std::cmp_less_equal(n, most) ? std::string() : fmt::format("{} {}", name, n);
  };
  return row;
}

OptionRow seconds_row(std::string key, std::string help, double ModelLimits::*field) {
  const auto good = [](double v) { return v > 0 && v <= kMostSeconds; };
  auto row = limit_row(
      std::move(key), "a number above 0, at most 1e9", std::move(help),
      [=](ModelLimits& l, std::string_view v) {
        const auto n = parse_real<double>(v);
        if (!n || !good(*n)) return false;
        l.*field = *n;
        return true;
      },
      [=](const ModelLimits& l) { return shortest(l.*field); });
  row.wrong = [=, name = row.info.key](const Options& o) {
    return good(o.limits.*field) ? std::string() : fmt::format("{} {}", name, o.limits.*field);
  };
  return row;
}

OptionRow operators_row(std::string key, std::string help, std::vector<std::string> ModelLimits::*field) {
  auto row = limit_row(
      std::move(key), "OPERATOR[,OPERATOR]", std::move(help),
      [=](ModelLimits& l, std::string_view v) {
        l.*field = names_of(v);
        return v.find_first_of(std::string_view("=\0", 2)) == std::string_view::npos;
      },
      [=](const ModelLimits& l) { return fmt::format("{}", fmt::join(l.*field, ",")); });
  row.words = false;
  return row;
}

OptionRow memory_row() {
  auto row = limit_row(
      "LIMIT_MEMORY", "AUTO, or bytes (1500000000, 1500MB, 2GiB, 2G)",
      "bytes of all tensors of a model together; AUTO: what the machine and the container have left",
      [](ModelLimits& l, std::string_view v) {
        const auto n = v == "AUTO" ? 0 : bytes_of(v);
        if (n) l.memory = *n;
        return n.has_value();
      },
      [](const ModelLimits& l) { return l.memory == 0 ? "AUTO" : std::to_string(l.memory); });
  row.wrong = [](const Options& o) {
    return o.limits.memory <= kMostMemory ? std::string() : fmt::format("LIMIT_MEMORY {}", o.limits.memory);
  };
  return row;
}

OptionRow external_row() {
  auto row = limit_row(
      "EXTERNAL_FILES", "beside, none",
      "beside: a model may keep data in files below its own folder, never through links; none: it may not",
      [](ModelLimits& l, std::string_view v) {
        const auto value = of_word(kExternalFiles, v);
        if (value) l.external_files = *value;
        return value.has_value();
      },
      [](const ModelLimits& l) { return word_of(kExternalFiles, l.external_files); });
  row.wrong = [](const Options& o) -> std::string {
    if (!word_of(kExternalFiles, o.limits.external_files).empty()) return "";
    return fmt::format("external_files {}", static_cast<int>(o.limits.external_files));
  };
  return row;
}

}  // namespace

void add_limits(std::vector<OptionRow>& t) {
  t.push_back(memory_row());
  t.push_back(
      count_row("LIMIT_ELEMENTS", "elements of one tensor", &ModelLimits::elements, Limits::kElements));
  t.push_back(count_row("LIMIT_NODES", "nodes of the model", &ModelLimits::nodes, kMostCount));
  t.push_back(
      count_row("LIMIT_OUTPUTS", "outputs of the model, and of one node", &ModelLimits::outputs, kMostCount));
  t.push_back(count_row("LIMIT_LOOP_ITERATIONS", "iterations of one loop, each time that the loop runs",
                        &ModelLimits::loop_iterations, std::numeric_limits<std::int64_t>::max()));
  t.push_back(seconds_row("LIMIT_COMPILE_SECONDS",
                          "seconds that reading may take, and compiling, also for new shapes",
                          &ModelLimits::compile_seconds));
  t.push_back(
      seconds_row("LIMIT_RUN_SECONDS", "seconds that one inference may take", &ModelLimits::run_seconds));
  t.push_back(operators_row("ALLOWED_OPERATORS",
                            "the only operators that a model may have, by the file's names or lamina's",
                            &ModelLimits::allowed_operators));
  t.push_back(operators_row("DENIED_OPERATORS", "operators that a model must not have",
                            &ModelLimits::denied_operators));
  t.push_back(external_row());
}

ModelLimits tighter(const ModelLimits& read, const ModelLimits& compiled) {
  auto out = compiled;
  if (read.memory != 0) out.memory = out.memory == 0 ? read.memory : std::min(out.memory, read.memory);
  out.elements = std::min(out.elements, read.elements);
  out.nodes = std::min(out.nodes, read.nodes);
  out.outputs = std::min(out.outputs, read.outputs);
  out.loop_iterations = std::min(out.loop_iterations, read.loop_iterations);
  out.compile_seconds = std::min(out.compile_seconds, read.compile_seconds);
  out.run_seconds = std::min(out.run_seconds, read.run_seconds);
  if (read.external_files == ExternalFiles::none) out.external_files = ExternalFiles::none;
  return out;
}

}  // namespace lamina
