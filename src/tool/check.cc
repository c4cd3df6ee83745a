/// lamina check: rewriting, kernels and whole outputs against the reference interpreter; a quantised model
/// against its f32 model.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/npy.h"
#include "base/npz.h"
#include "lamina/check.h"
#include "tool/check_against.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct CheckCommand {
  Common common;
  InputOptions inputs;
  std::string expect;
  AgainstOptions against;
  bool per_layer = false, bisect = false;
  int steps = 1;
};

/// The arrays of --expect, in the model's order.
std::vector<Tensor> expected_outputs(const std::string& file, const std::vector<Port>& ports) {
  // Arrays that are no outputs are not unpacked.
  const auto wanted = [&](const std::string& name, ElementType, const Dims&) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (name == ports[i].name || name == "out" + std::to_string(i)) return true;
    return false;
  };
  const auto arrays = read_npz(file, wanted);
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto* stored = find_array(arrays, ports[i].name, "out" + std::to_string(i));
    if (!stored) fail(ErrorCode::bad_input, "{}: holds neither \"{}\" nor \"out{}\"", file, ports[i].name, i);
    out.push_back(as_stored(*stored, ports[i].type));
  }
  return out;
}

/// Prints and writes the report. Returns the command's exit status.
int told(const CheckCommand& o, const CheckReport& report) {
  for (const auto& line : report.lines(o.per_layer)) o.common.say("{}", line);
  write_json(o.common, nlohmann::json::parse(report.json()));
  return report.clean ? 0 : 1;
}

/// Libraries without a model: all of their operations.
int check_libraries(const CheckCommand& o) {
  if (o.common.extensions.empty()) throw UsageError("wanted MODEL, or --extensions alone");
  return told(o, [&] {
    Progress progress("trying custom layers", o.common);
    return check_extensions(o.common.extensions, {.progress = progress.callback()});
  }());
}

int check_model(const CheckCommand& o) {
  const auto model = open_model(o.common);
  std::vector<std::string> notes;
  const auto inputs = gather_inputs(model, o.inputs, o.common, notes);
  auto options = o.common.options();
  if (o.common.tune) options = tuned_options(o.common, model, std::move(options), inputs);
  CheckOptions how{.steps = static_cast<std::size_t>(o.steps), .bisect = o.bisect};
  if (!o.expect.empty()) how.expected = expected_outputs(o.expect, model.outputs());
  auto report = [&] {
    Progress progress("checking " + o.common.model, o.common);
    how.progress = progress.callback();
    return check(model, options, inputs, how);
  }();
  o.common.note(notes);
  report.model = o.common.model;
  return told(o, report);
}

int run(const CheckCommand& o) {
  if (!o.against.f32.empty()) {
    if (o.common.model.empty()) throw UsageError("--against: wanted MODEL, too");
    return check_against(o.common, o.inputs, o.against);
  }
  if (!o.against.html.empty() || !o.against.data.empty())
    throw UsageError(fmt::format("{}: wanted --against, too", o.against.data.empty() ? "--html" : "--data"));
  return o.common.model.empty() ? check_libraries(o) : check_model(o);
}

}  // namespace

Verb setup_check(OptionSet& options) {
  auto o = std::make_shared<CheckCommand>();
  add_model(options, o->common, false);
  options.remark("Without MODEL: checks all operations of the libraries of --extensions, on their samples.");
  add_input_options(options, o->inputs);
  const auto expect =
      options.text("--expect", o->expect, "FILE.npz", "Stored outputs, by name or as out0, out1, ...");
  const auto steps = options.number(
      "--steps", o->steps, 1, 1000000, "N",
      "Check the N-th run of a model with variables; the interpreter makes the runs before it");
  const auto layers =
      options.flag("--per-layer", o->per_layer, "Print every value of the model and every layer");
  const auto bisect =
      options.flag("--bisect", o->bisect, "Also name the first rewrite that changes the result");
  auto against =
      options.text("--against", o->against.f32, "F32MODEL",
                   "Only compare a quantised model with the f32 model that it was made of: noise of each "
                   "layer, and which layers are best left in f32");
  for (const auto& other : {expect, steps, layers, bisect}) against.excludes(other);
  options.text("--data", o->against.data, "FOLDER",
               "With --against: a folder of samples in place of --input: images, .npy, .npz, as `lamina "
               "quantize` takes them");
  options.number("--samples", o->against.samples, std::size_t{1}, std::size_t{1000000}, "N",
                 "With --data: number of samples to take, spread evenly over the folder (8)");
  options.text("--html", o->against.html, "FILE.html",
               "With --against: write the noise as a page with bars; a click on a heading sorts");
  add_compile_options(options, o->common);
  add_json(options, o->common);
  return [o] { return run(*o); };
}

}  // namespace lamina::tool
