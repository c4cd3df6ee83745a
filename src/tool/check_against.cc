#include "tool/check_against.h"

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "draw/rewrite_report.h"
#include "quantise/layer_noise.h"
#include "tool/noise_report.h"
#include "tool/quantize_data.h"
#include "tool/session.h"

namespace lamina::tool {
namespace {

Model model_file(const Common& common) {
  auto model = open_model(common);
  if (Inside::of(model).compiled())
    fail(ErrorCode::unsupported,
         "{}: a compiled model has no layers to compare, wanted the file that it was made of", common.model);
  return model;
}

/// The options for reading the f32 model: those of the quantised one, but for the file.
Common common_of(const Common& common, const std::string& file) {
  auto out = common;
  out.model = file;
  out.weights.clear();
  return out;
}

Samples samples_of(const Model& model, const Common& c, const InputOptions& inputs, const AgainstOptions& o,
                   NoiseSubject& subject) {
  if (!o.data.empty()) {
    if (!inputs.input.empty() || !inputs.inputs.empty())
      throw UsageError("--data excludes --input and --inputs");
    auto files = find_samples({o.data, inputs.image, o.samples, 0}, model.inputs(), c);
    subject.notes = std::move(files.notes);
    return std::move(files.calibration);
  }
  subject.random_inputs = inputs.input.empty() && inputs.inputs.empty() && !model.inputs().empty();
  return {1, [given = gather_inputs(model, inputs, c, subject.notes)](std::size_t) { return given; }};
}

}  // namespace

int check_against(const Common& c, const InputOptions& input_options, const AgainstOptions& o) {
  require_page_name(o.html, "--html");
  const auto quantised = model_file(c);
  const auto f32 = model_file(common_of(c, o.f32));
  NoiseSubject subject{c.model, o.f32, {}, false};
  const auto samples = samples_of(quantised, c, input_options, o, subject);
  c.note(subject.notes);
  if (subject.random_inputs && !c.quiet)
    tell(
        "lamina: warning: the inputs are random; noise depends on inputs, so give real ones by --input, "
        "--inputs or --data");
  const auto report = [&] {
    Progress progress("comparing " + c.model, c);
    const Running running{c.options(), progress.callback()};
    try {
      return layer_noise(quantised, f32, samples, running);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::bad_input) throw;
      fail(ErrorCode::bad_input, "--against {}: {}", o.f32, e.what());
    }
  }();
  for (const auto& line : lines_of(report)) c.say("{}", line);
  if (!o.html.empty()) write_file(o.html, html_of(subject, report));
  write_json(c, json_of(subject, report));
  return 0;
}

}  // namespace lamina::tool
