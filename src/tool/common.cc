#include "tool/common.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/atomic_file.h"
#include "base/condition_variable.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/option_words.h"
#include "base/terminal.h"
#include "base/words.h"
#include "tool/shape_option.h"

namespace lamina::tool {
namespace {

/// The key of a limit as --limit may call it: "memory" for LIMIT_MEMORY, "external-files" for EXTERNAL_FILES.
std::string limit_key(std::string_view word) {
  std::vector<std::string> keys;
  for (const auto& option : option_list())
    if (option.key.starts_with("LIMIT_") || option.key.ends_with("_OPERATORS") ||
        option.key == "EXTERNAL_FILES")
      keys.push_back(option.key);
  auto key = upper_case(bare_key(word));
  std::replace(key.begin(), key.end(), '-', '_');
  for (const auto& known : keys)
    if (key == known || "LIMIT_" + key == known) return known;
  for (auto& known : keys) {
    if (known.starts_with("LIMIT_")) known.erase(0, std::strlen("LIMIT_"));
    known = lower_case(known);
    std::replace(known.begin(), known.end(), '_', '-');
  }
  throw UsageError(fmt::format("--limit: \"{}\" is not known{}", word, did_you_mean(word, keys)));
}

/// "memory=2G,denied-operators=Loop,If": a comma begins the next limit, or goes on with a list of names.
void set_limits(Options& o, const std::vector<std::string>& texts) {
  for (const auto& text : texts) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const auto piece : pieces_of(text)) {
      const auto equals = piece.find('=');
      if (equals != std::string_view::npos)
        pairs.emplace_back(limit_key(piece.substr(0, equals)), piece.substr(equals + 1));
      else if (!pairs.empty())
        pairs.back().second.append(",").append(piece);
      else
        throw UsageError(fmt::format("--limit {}: wanted KEY=VALUE", text));
    }
    for (const auto& [key, value] : pairs) try {
        o.set(key, value);
      } catch (const Error& e) {
        throw UsageError(fmt::format("--limit: {}", e.what()));
      }
  }
}

}  // namespace

Options Common::options() const {
  Options o;
  o.threads = threads;
  o.disable = disable;
  o.exempt = exempt;
  o.force = force;
  o.max_isa = max_isa;
  if (precision == "model" || precision == "int8") o.precision = Precision::model;
  if (precision == "f32") o.precision = Precision::f32;
  if (precision == "bf16") o.precision = Precision::bf16;
  set_limits(o, limit);
  for (const auto& pair : set) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos) throw UsageError(fmt::format("--set {}: wanted KEY=VALUE", pair));
    try {
      o.set(pair.substr(0, equals), pair.substr(equals + 1));
    } catch (const Error& e) {
      throw UsageError(fmt::format("--set: {}", e.what()));
    }
  }
  const auto level = quiet ? LogLevel::error : level_named(log_level).value_or(LogLevel::warning);
  o.log = [level](LogLevel l, std::string_view line) {
    if (l <= level) tell(fmt::format("lamina: {}: {}", name_of(l), line));
  };
  return o;
}

void Common::note(const std::vector<std::string>& notes) const {
  for (const auto& text : notes)
    if (!quiet) tell("lamina: " + text);
}

void tell(std::string_view line) {
  const auto text = printable(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::vector<std::pair<std::string, Dims>> Common::shapes(const std::vector<std::string>& inputs) const {
  std::vector<std::pair<std::string, Dims>> out;
  for (auto& [name, sizes] : shape_sizes(shape, inputs)) {
    Dims dims;
    for (const auto& s : sizes) {
      if (is_open(s))
        throw UsageError(fmt::format("--shape: input \"{}\": wanted sizes that are numbers here", name));
      dims.push_back(s.least);
    }
    out.emplace_back(std::move(name), std::move(dims));
  }
  return out;
}

ReadOptions Common::reading() const {
  return {.settable = settable, .extensions = extensions, .weights = weights, .limits = options().limits};
}

void add_model(OptionSet& options, Common& c, bool required) {
  const auto model = options.text("model", c.model, "MODEL",
                                  "ONNX model, OpenVINO IR (.xml), Caffe network (.prototxt or .caffemodel), "
                                  "TensorFlow graph (.pb or .pbtxt), graph of oneDNN Graph (.json) "
                                  "or compiled model (.lamina)");
  if (required) OptionHandle(model).required();
  options.text(
      "--weights", c.weights, "FILE",
      "The model's second file, if it has another name: an IR's .bin, a Caffe network's .caffemodel");
  options.list("--settable", c.settable, "NAME[,NAME]",
               "Inputs with a value in the model (ONNX initialisers) that can be set; all others of the kind "
               "are constants",
               ',');
  options.list("--limit", c.limit, "KEY=VALUE[,KEY=VALUE]",
               "Limits for untrusted models: memory=2G, elements, nodes, outputs, loop-iterations, "
               "compile-seconds, run-seconds, allowed-operators, denied-operators, external-files=none");
  add_extensions(options, c);
}

void add_extensions(OptionSet& options, Common& c) {
  options.list("--extensions", c.extensions, "FILE.so[,FILE.so]", "Libraries of custom layers", ',');
}

void add_shape(OptionSet& options, Common& c) {
  options.list("--shape", c.shape, "[NAME=]1,3,224,224", "Shape of an input, or of the only one");
}

void add_compile_options(OptionSet& options, Common& c) {
  options.list("--set", c.set, "KEY=VALUE", "Configuration KEY=VALUE");
  options.number("--threads", c.threads, 0, 1024, "N",
                 "Number of threads of all streams together; 0: as many as the machine allows");
  options.choice("--precision", c.precision, {"model", "f32", "bf16", "int8"}, "P",
                 "model, f32 or bf16 (int8: as model)");
  options.list("--disable", c.disable, "RULE[,RULE]", "Optimisations to leave out, or all", ',');
  options.list("--exempt", c.exempt, "NAME_OR_REGEX[,...]",
               "Nodes that no optimisation touches: names, or expressions for the whole name", ',');
  options.list("--force", c.force, "NODE=LABEL[,OPERATOR=LABEL]",
               "Kernels to use, whatever the estimates say: labels as explain shows them", ',');
  options.flag("--tune", c.tune,
               "Choose among kernels with similar estimates, and numbers of streams (AUTO), by measuring; "
               "the result is remembered");
  add_shape(options, c);
  options.choice("--max-isa", c.max_isa, isa_limits(), "ISA",
                 "Highest instruction set that is used: sse41, avx2, avx512 or native");
  options.choice("--log-level", c.log_level, {"error", "warning", "info", "debug"}, "LEVEL",
                 "error, warning, info or debug");
  options.flag("--quiet", c.quiet, "Print errors only; results go into the files that other options name");
}

void add_json(OptionSet& options, Common& c) {
  options.text("--json", c.json, "FILE", "Write one JSON document (-: standard output)");
}

void write_json(const Common& c, const nlohmann::json& document) {
  if (c.json.empty()) return;
  const bool here = c.json == "-";
  // Names come from files and may be no UTF-8; a terminal obeys some of what JSON leaves as it is.
  const bool escaped = here && is_terminal(1);
  const auto text =
      document.dump(here ? -1 : 1, ' ', escaped, nlohmann::json::error_handler_t::replace) + "\n";
  if (here) {
    std::cout << text << std::flush;
  } else {
    write_file(c.json, text);
  }
}

struct Progress::State {
  using Clock = std::chrono::steady_clock;

  std::mutex mutex;
  ConditionVariable done;
  bool ended = false, shown = false;
  std::string text, stage;
  double fraction = -1;  // not known
  const Clock::time_point began = Clock::now();
  Clock::time_point next = began + std::chrono::seconds(1);

  std::string line() const {
    auto out = text + (stage.empty() ? "" : ": " + stage);
    if (fraction >= 0) out += fmt::format(" ... {:.0f} %", std::floor(100 * fraction));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began).count();
    return fmt::format("{}{} {} s", out, fraction >= 0 ? "," : " ...", seconds);
  }
  void set(double to, std::string_view now) {
    fraction = to;
    if (stage != now) stage = now;
  }
  void show() {
    if (Clock::now() < next) return;
    std::fputs(fmt::format("\r{}\033[K", printable(line())).c_str(), stderr);
    shown = true;
    next = Clock::now() + std::chrono::milliseconds(250);
  }
  void clear() const {
    if (shown) std::fputs("\r\033[K", stderr);
  }
  void keep_showing() {
    std::unique_lock lock(mutex);
    while (!done.wait_until(lock, next, [&] { return ended; })) show();
    clear();
  }
};

Progress::Progress(std::string text, const Common& common) {
  if (common.quiet || !is_terminal(2)) return;
  state_ = std::make_shared<State>();
  state_->text = std::move(text);
  ticks_ = common.options().threads != 1;
  if (ticks_) std::thread([state = state_] { state->keep_showing(); }).detach();
}

Progress::~Progress() {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->done.notify_all();
  if (!ticks_) state_->clear();
}

void Progress::at(double fraction, std::string_view stage) {
  if (const auto call = callback()) call(stage, fraction);
}

ProgressCallback Progress::callback() const {
  if (!state_) return {};
  return [state = state_, shows = !ticks_](std::string_view stage, double done) {
    std::lock_guard lock(state->mutex);
    state->set(done, stage);
    if (shows && !state->ended) state->show();
  };
}

void require_page_name(const std::string& path, std::string_view option) {
  const auto ending = lower_case(std::filesystem::path(path).extension().string());
  if (!path.empty() && ending != ".html" && ending != ".htm")
    throw UsageError(fmt::format("{} {}: wanted a name that ends with .html", option, path));
}

}  // namespace lamina::tool
