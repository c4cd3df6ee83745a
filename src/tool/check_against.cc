#include "tool/check_against.h"

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "lamina/check.h"
#include "tool/quantize_data.h"
#include "tool/session.h"

namespace lamina::tool {
namespace {

/// The options for reading the f32 model: those of the quantised one, but for the file.
Common common_of(const Common& common, const std::string& file) {
  auto out = common;
  out.model = file;
  out.weights.clear();
  return out;
}

struct NoiseInputs {
  std::vector<std::string> notes;  ///< how inputs were made and changed, a sentence each
  bool random = false;             ///< no input was given
};

Samples samples_of(const Model& model, const Common& c, const InputOptions& inputs, const AgainstOptions& o,
                   NoiseInputs& given) {
  if (!o.data.empty()) {
    if (!inputs.input.empty() || !inputs.inputs.empty())
      throw UsageError("--data excludes --input and --inputs");
    auto files = find_samples({o.data, inputs.image, o.samples, 0}, model.inputs(), c);
    given.notes = std::move(files.notes);
    return std::move(files.calibration);
  }
  given.random = inputs.input.empty() && inputs.inputs.empty() && !model.inputs().empty();
  return {1, [all = gather_inputs(model, inputs, c, given.notes)](std::size_t) { return all; }};
}

}  // namespace

int check_against(const Common& c, const InputOptions& input_options, const AgainstOptions& o) {
  require_page_name(o.html, "--html");
  const auto quantised = open_model(c);
  const auto f32 = open_model(common_of(c, o.f32));
  NoiseInputs given;
  const auto samples = samples_of(quantised, c, input_options, o, given);
  c.note(given.notes);
  if (given.random && !c.quiet)
    tell(
        "lamina: warning: the inputs are random; noise depends on inputs, so give real ones by --input, "
        "--inputs or --data");
  auto report = [&] {
    Progress progress("comparing " + c.model, c);
    try {
      return compare_quantized(quantised, f32, samples,
                               {.running = c.options(), .progress = progress.callback()});
    } catch (const Error& e) {
      if (e.code() != ErrorCode::bad_input) throw;
      fail(ErrorCode::bad_input, "--against {}: {}", o.f32, e.what());
    }
  }();
  report.model = c.model;
  report.against = o.f32;
  report.notes = std::move(given.notes);
  report.random_inputs = given.random;
  for (const auto& line : report.lines()) c.say("{}", line);
  if (!o.html.empty()) write_file(o.html, report.html());
  write_json(c, nlohmann::json::parse(report.json()));
  return 0;
}

}  // namespace lamina::tool
