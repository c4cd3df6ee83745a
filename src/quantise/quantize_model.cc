/// The public function that quantises a model: from samples to the files.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "api/at_work.h"
#include "api/inside.h"
#include "api/preparing.h"
#include "base/atomic_file.h"
#include "base/guard.h"
#include "base/no_destructor.h"
#include "base/text.h"
#include "base/users_calls.h"
#include "formats/ir/writer.h"
#include "lamina/quantize.h"
#include "offline/convert.h"
#include "offline/model_reader.h"
#include "offline/option_names.h"
#include "quantise/quantise.h"
#include "quantise/users_samples.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

std::string in_users_words(std::string_view text, bool dashes) {
  static const ProcessLifetime fields([] {
    return OptionFields{
        {"--exclude", "exclude"}, {"--exclude-type", "exclude_types"}, {"--max-drop", "max_drop"}};
  });
  return dashes ? std::string(text) : with_fields(text, *fields);
}

void check(const QuantizeOptions& o) {
  if (!(o.percentile >= 50 && o.percentile <= 100))
    fail(ErrorCode::bad_option, "percentile {}: wanted a number from 50 to 100", o.percentile);
  if (o.weight_bits != 7 && o.weight_bits != 8)
    fail(ErrorCode::bad_option, "weight_bits {}: wanted 7 or 8", o.weight_bits);
  if (o.max_drop && !(*o.max_drop >= 0 && std::isfinite(*o.max_drop)))
    fail(ErrorCode::bad_option, "max_drop {}: wanted a number from 0 on", *o.max_drop);
  if (o.samples == 0) fail(ErrorCode::bad_option, "samples 0: wanted a number from 1 on");
}

/// At most so many, evenly spread.
Samples spread(const Samples& all, std::size_t most) {
  const auto count = std::min(all.count, most);
  return {count, [get = all.get, count, of = all.count](std::size_t i) { return get(i * of / count); }};
}

using Kept = std::vector<std::vector<Tensor>>;

Samples samples_of(Kept kept) {
  const auto all = std::make_shared<const Kept>(std::move(kept));
  return {all->size(), [all](std::size_t i) { return all->at(i); }};
}

/// Copies of the next samples.
Kept taken(const NextSample& next, std::size_t most, std::size_t before, const std::vector<Port>& ports) {
  Kept out;
  while (out.size() < most) {
    stop_point();
    auto sample = next();
    if (!sample) break;
    require_fit(ports, *sample, before + out.size());
    for (auto& tensor : *sample)
      if (tensor.valid()) tensor = tensor.clone();
    out.push_back(std::move(*sample));
  }
  return out;
}

CalibrationData data_of(const NextSample& next, const QuantizeOptions& o, const std::vector<Port>& ports) {
  if (!next) fail(ErrorCode::bad_input, "no function that gives samples");
  CalibrationData out;
  // One copy takes all samples, since the function counts them in itself.
  const auto following = of_user(next);
  out.calibration = samples_of(taken(following, o.samples, 0, ports));
  if (out.calibration.count == o.samples)
    out.held_out = samples_of(taken(following, o.held_out, o.samples, ports));
  out.held_out_is_new = out.held_out.count != 0;
  return out;
}

std::string settings_text(const QuantiseRequest& r, const QuantisedModel& m) {
  const auto& s = r.scheme;
  auto range = std::string(name_of(m.calibration));
  if (m.calibration == Calibration::percentile) range += fmt::format(" {}", s.ranges.percentile);
  return fmt::format("{} activations by {}, {}-bit weights {}{}, {} sample{}",
                     s.ranges.symmetric ? "symmetric" : "asymmetric", range, s.weights.bits,
                     s.weights.per_channel ? "per channel" : "per tensor",
                     m.equalised ? ", channels equalised" : "", r.samples.count,
                     r.samples.count == 1 ? "" : "s");
}

class QuantizingModel {
 public:
  QuantizingModel(const Model& model, const std::string& output, const QuantizeOptions& options)
      : model_(model),
        inside_(Inside::of(model)),
        output_(output),
        o_(options),
        progress_(of_user(o_.progress)) {}

  /// Checks before the work that the output can be written. A pipe or device is not touched.
  void require_output() const {
    if (!to_onnx() && !output_.ends_with(".xml"))
      fail(ErrorCode::bad_option, "{}: wanted FILE.onnx or FILE.xml", output_);
    if (to_onnx() && (inside_.described().format != ModelFormat::onnx || inside_.compiled()))
      fail(ErrorCode::unsupported,
           "{}{}: {} is no ONNX file; only those become ONNX files, wanted FILE.xml (OpenVINO IR)",
           o_.dashes ? "-o " : "", output_, inside_.path());
    for (const auto& target : targets()) {
      for (const auto& part : inside_.parts())
        if (std::error_code ignored;
            part.file->identity() && fs::equivalent(part.file->path(), target, ignored))
          fail(ErrorCode::bad_option, "{} would be overwritten, which is the model itself", target);
      std::error_code ignored;
      if (!fs::exists(target, ignored) || fs::is_regular_file(target, ignored)) AtomicFile{target};
    }
  }

  QuantizeReport run(const CalibrationData& given) && {
    const auto& ports = inside_.inputs();
    CalibrationData data = given;
    data.calibration = checked_samples(given.calibration, ports);
    data.held_out = checked_samples(given.held_out, ports);
    if (data.calibration.count == 0) fail(ErrorCode::bad_input, "no samples, wanted at least one");
    if (data.held_out.count == 0) {
      data.held_out = spread(data.calibration, 32);
      data.held_out_is_new = false;
    }
    const auto request = request_of(data);
    const auto result = to_onnx() ? onnx(request) : ir(request);
    return report_of(request, result, data);
  }

 private:
  bool to_onnx() const { return output_.ends_with(".onnx"); }
  std::vector<std::string> targets() const {
    return to_onnx() ? std::vector{output_} : std::vector{output_, bin_path_of(output_)};
  }

  QuantiseRequest request_of(const CalibrationData& data) const {
    QuantiseRequest r;
    r.calibration = o_.calibration;
    r.scheme.ranges.percentile = o_.percentile;
    r.scheme.ranges.symmetric = o_.symmetric_activations;
    r.scheme.weights.per_channel = o_.per_channel;
    r.scheme.weights.bits = o_.weight_bits;
    r.scheme.choice = {.exclude = o_.exclude, .exclude_types = o_.exclude_types};
    r.scheme.correct_bias = o_.correct_bias;
    r.equalise = o_.equalize;
    r.max_drop = o_.max_drop;
    r.samples = data.calibration;
    r.held_out = data.held_out;
    r.running.options = o_.running;
    r.running.options.stop = o_.stop;
    r.running.progress = progress_;
    return r;
  }

  QuantisedModel onnx(const QuantiseRequest& request) const {
    if (!Inside::of(model_).input_shapes().empty())
      fail(
          ErrorCode::unsupported,
          "the model was read with input_shapes, which an ONNX file does not get: quantise it as OpenVINO IR "
          "(FILE.xml), or as it is in its file");
    auto result = quantise_onnx(model_, *source_of(model_), request);
    write_file(output_, result.onnx);
    return result;
  }

  /// Makes the IR as the offline optimiser does, then quantises it.
  QuantisedModel ir(const QuantiseRequest& request) {
    ConversionRequest wanted;
    for (const auto& [name, dims] : o_.shape) wanted.own_shapes[name] = Shape::of(dims);
    const ModelReader reader(model_, {});
    auto conversion = convert_model(
        reader.path(), [&](const ReadSettings& settings) { return reader.read(settings); }, wanted);
    const auto converted = Inside::changed(model_, conversion.loaded.graph);
    auto result = quantise_graph(converted, conversion.loaded.graph, request);
    auto loaded = std::move(conversion.loaded);
    loaded.graph = result.graph;
    if (loaded.graph.name.empty()) loaded.graph.name = fs::path(output_).stem().string();
    WriteIrOptions options;
    options.keep_halves = conversion.has_halves;
    options.rt_info = {{"MO_version", version()}, {"Runtime_version", version()}};
    warnings_ = write_ir(loaded, output_, options).warnings;
    return result;
  }

  QuantizeReport report_of(const QuantiseRequest& request, const QuantisedModel& result,
                           const CalibrationData& data) const {
    QuantizeReport r;
    r.model = inside_.path();
    r.output = output_;
    for (const auto& part : inside_.parts()) r.bytes_before += part.file->size();
    for (const auto& target : targets())
      if (std::error_code error; fs::is_regular_file(target, error)) r.bytes += fs::file_size(target, error);
    r.settings = settings_text(request, result);
    r.samples = data.calibration.count;
    r.measured_with = data.held_out.count;
    r.held_out = data.held_out_is_new;
    r.calibration = result.calibration;
    r.quantized_values = result.values;
    r.normalisations_folded = result.normalised;
    r.pairs_equalized = result.equalised;
    r.evaluations = result.evaluations;
    r.warnings = warnings_;
    r.others_in_f32 = result.others_in_f32;
    for (auto& other : r.others_in_f32) other = in_users_words(other, o_.dashes);
    for (const auto& l : result.layers) r.layers.push_back(row_of(l));
    for (const auto& [name, drift] : result.outputs)
      r.outputs.push_back({.name = name,
                           .sqnr_db = drift.sqnr(),
                           .relative = drift.relative(),
                           .max = drift.max(),
                           .mean = drift.mean(),
                           .not_comparable = drift.not_comparable()});
    return r;
  }

  QuantizedLayer row_of(const LayerReport& l) const {
    QuantizedLayer out;
    out.name = l.layer.name;
    out.type = l.layer.type;
    out.reason = in_users_words(l.layer.reason, o_.dashes);
    out.sqnr_db = l.sqnr;
    if (!out.reason.empty()) return out;
    out.weights_sqnr_db = l.weights_sqnr;
    out.input_type = l.input.type;
    out.input_scale = l.input.scale;
    out.input_zero_point = l.input.zero_point;
    out.input_low = l.input.low();
    out.input_high = l.input.high();
    return out;
  }

  const Model& model_;
  const LoadedModel& inside_;
  const std::string& output_;
  const QuantizeOptions& o_;
  const ProgressCallback progress_;
  std::vector<std::string> warnings_;  // of the writer
};

/// `data`: gives CalibrationData, when the output is known to be writable.
template <class F>
QuantizeReport quantized(const Model& model, const std::string& output, const QuantizeOptions& o,
                         const F& data) {
  return guarded("quantize", [&] {
    const AtWork here;
    const TokenSignal stop(o.stop);
    const auto what = Inside::of(model).path() + ": quantising";
    const Within within(&Inside::of(model).bounds());
    try {
      return run_stoppable({.signal = &stop, .what = what}, [&] {
        stop_point();
        check(o);
        QuantizingModel work(model, output, o);
        work.require_output();
        return std::move(work).run(data());
      });
    } catch (const Error& e) {
      const auto text = in_users_words(e.what(), o.dashes);
      if (text == e.what()) throw;
      throw Error(e.code(), text);
    }
  });
}

}  // namespace

QuantizeReport quantize(const Model& model, const NextSample& samples, const std::string& output,
                        const QuantizeOptions& options) {
  return quantized(model, output, options,
                   [&] { return data_of(samples, options, Inside::of(model).inputs()); });
}

QuantizeReport quantize(const Model& model, const CalibrationData& samples, const std::string& output,
                        const QuantizeOptions& options) {
  return quantized(model, output, options, [&]() -> const CalibrationData& { return samples; });
}

}  // namespace lamina
