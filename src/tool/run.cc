/// lamina run: one inference, or several that share variables.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/npz.h"
#include "base/tensor_numbers.h"
#include "lamina/explain.h"
#include "lamina/reference.h"
#include "tool/classes.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct RunOptions {
  Common common;
  InputOptions inputs;
  std::string output, labels;
  bool by_position = false, reference = false;
  int top = 5, steps = 1;
};

struct Summary {
  double min = 0, max = 0, mean = 0;
};

Summary summary(const std::vector<double>& values) {
  Summary s;
  if (values.empty()) return s;
  s.min = *std::min_element(values.begin(), values.end());
  s.max = *std::max_element(values.begin(), values.end());
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return s;
}

nlohmann::json finite(double v) {
  return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(fmt::format("{}", v));
}

/// The best classes, with names when there are any.
nlohmann::json top_list(const RunOptions& o, const std::vector<double>& values,
                        const std::vector<std::string>& labels) {
  auto list = nlohmann::json::array();
  for (const auto i : best(values, static_cast<std::size_t>(o.top))) {
    nlohmann::json row{{"index", i}, {"value", finite(values[i])}};
    if (!labels.empty()) row["label"] = labels[i];
    o.common.say("  {:>6}  {:.6g}{}", i, values[i], labels.empty() ? "" : "  " + printable(labels[i]));
    list.push_back(std::move(row));
  }
  return list;
}

nlohmann::json describe(const RunOptions& o, const Port& port, const Tensor& t,
                        const std::vector<std::string>& labels) {
  const auto values = to_doubles(t);
  const auto s = summary(values);
  nlohmann::json j{{"name", port.name},    {"type", name_of(t.element_type())},
                   {"shape", t.shape()},   {"min", finite(s.min)},
                   {"max", finite(s.max)}, {"mean", finite(s.mean)}};
  o.common.say("{}  {}[{}]  min {:.6g}  max {:.6g}  mean {:.6g}", port.name, name_of(t.element_type()),
               fmt::join(t.shape(), ","), s.min, s.max, s.mean);
  const bool named = !labels.empty() && t.size() == labels.size();
  if (o.top > 0 && looks_like_classes(t, labels.size()))
    j["top"] = top_list(o, values, named ? labels : std::vector<std::string>());
  return j;
}

/// Names must fit an output.
void check_labels(const RunOptions& o, const std::vector<std::string>& labels, const std::vector<Port>& ports,
                  const std::vector<Tensor>& results) {
  std::string found;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!looks_like_classes(results[i], labels.size())) continue;
    if (results[i].size() == labels.size()) return;
    if (found.empty()) found = fmt::format("output \"{}\" has {} classes", ports[i].name, results[i].size());
  }
  fail(ErrorCode::bad_input, "{}: {} names, but {}", o.labels, labels.size(),
       found.empty() ? "no output is one row of scores" : found);
}

/// The outputs of the last step.
std::vector<Tensor> run_steps(Session& session, bool reference, int steps) {
  if (reference) return run_reference(session.model, session.inputs, {.steps = steps}).outputs;
  for (int step = 0; step < steps; ++step) session.request.run();
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < session.model.outputs().size(); ++i)
    results.push_back(session.request.output(i));
  return results;
}

int run(const RunOptions& o) {
  if (!o.labels.empty() && o.top == 0) throw UsageError("--labels: cannot be combined with --top 0");
  if (o.output == "-") throw UsageError("--output -: arrays go to a file, wanted FILE.npz");
  if (o.by_position && o.output.empty()) throw UsageError("--by-position: needs --output");
  const auto labels = o.labels.empty() ? std::vector<std::string>() : read_labels(o.labels);
  Session session(o.common, o.inputs, o.common.options());
  o.common.note(session.notes);
  std::vector<Tensor> results;
  {
    Progress progress("running " + o.common.model, o.common);
    results = run_steps(session, o.reference, o.steps);
  }
  if (!labels.empty()) check_labels(o, labels, session.model.outputs(), results);
  nlohmann::json document{
      {"model", o.common.model}, {"notes", session.notes}, {"outputs", nlohmann::json::array()}};
  NpzFile arrays;
  const auto& ports = session.model.outputs();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto& t = results[i];
    document["outputs"].push_back(describe(o, ports[i], t, labels));
    arrays.emplace_back(o.by_position ? "out" + std::to_string(i) : ports[i].name, t);
  }
  if (!o.reference) {
    const auto precision = precision_used(session.request);
    o.common.say("precision   {}", precision);
    document["precision"] = precision;
  }
  if (!o.output.empty()) write_npz(o.output, arrays);
  write_json(o.common, document);
  return 0;
}

}  // namespace

Verb setup_run(OptionSet& options) {
  auto o = std::make_shared<RunOptions>();
  add_model(options, o->common);
  add_input_options(options, o->inputs);
  options.text("--output", o->output, "FILE.npz", "Stores the outputs");
  options.flag("--by-position", o->by_position, "Outputs are called out0, out1, ... in the file");
  options.flag("--reference", o->reference,
               "Run the model as it is in the file by the (slow) reference interpreter");
  options.number("--steps", o->steps, 1, 1000000000, "N",
                 "Run so many times with the same inputs; a model's variables are kept from run to run");
  options.number("--top", o->top, 0, 1000, "K", "Best classes to print");
  options.text("--labels", o->labels, "FILE", "File with the names of the classes, one per line");
  add_compile_options(options, o->common);
  add_json(options, o->common);
  return [o] { return run(*o); };
}

}  // namespace lamina::tool
