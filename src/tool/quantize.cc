/// lamina quantize: post-training quantisation to 8 bits, written as QDQ ONNX or as IR with FakeQuantize.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "draw/rewrite_report.h"
#include "formats/formats.h"
#include "formats/ir/writer.h"
#include "offline/convert.h"
#include "tool/quantize_data.h"
#include "tool/quantize_report.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

namespace fs = std::filesystem;

struct QuantizeOptions {
  Common common;
  SampleOptions samples;
  SchemeOptions scheme;
  std::string output, report, calibration = "auto", activations = "asymmetric", granularity = "per-channel";
  double max_drop = 0;
  bool equalise = false, no_equalise = false, no_bias_correction = false;
  std::function<bool()> max_drop_given;
};

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

class Quantizing {
 public:
  explicit Quantizing(const QuantizeOptions& o) : o_(o), c_(o.common) {}

  int run() {
    require_output();
    require_page_name(o_.report);
    const auto model = open_model(c_);
    require_other_file(model);
    auto files = find_samples(o_.samples, model.inputs(), c_);
    c_.note(files.notes);
    auto request = request_of(files);
    const auto result = [&] {
      Progress progress("quantising " + c_.model, c_);
      request.running.progress = progress.callback();
      return to_onnx() ? onnx(model, request) : ir(model, request);
    }();
    tell_of(model, request, result, files);
    return 0;
  }

 private:
  bool to_onnx() const { return o_.output.ends_with(".onnx"); }

  /// Checks before the work that the output can be written. A pipe or device is not touched.
  void require_output() const {
    if (!to_onnx() && !o_.output.ends_with(".xml"))
      throw UsageError(fmt::format("-o {}: wanted FILE.onnx or FILE.xml", o_.output));
    const auto folder = fs::path(o_.output).parent_path();
    if (!folder.empty() && !fs::is_directory(folder))
      fail(ErrorCode::bad_file, "-o {}: there is no folder {}", o_.output, folder.string());
    std::vector<std::string> targets;
    for (const auto& target : {o_.output, to_onnx() ? std::string() : bin_path_of(o_.output), o_.report,
                               c_.json == "-" ? std::string() : c_.json}) {
      std::error_code ignored;
      const bool is_other = fs::exists(target, ignored) && !fs::is_regular_file(target, ignored);
      if (target.empty() || is_other) continue;
      AtomicFile{target};
      for (const auto& other : targets)
        if (is_same_file(target, other) ||
            fs::absolute(target).lexically_normal() == fs::absolute(other).lexically_normal())
          throw UsageError(fmt::format("{} would be written twice", target));
      targets.push_back(target);
    }
  }

  void require_other_file(const Model& model) const {
    for (const auto& part : Inside::of(model).parts())
      for (const auto& target : {o_.output, bin_path_of(o_.output), o_.report, c_.json})
        if (!target.empty() && is_same_file(part.file->path(), target))
          throw UsageError(fmt::format("{} would be overwritten, which is the model itself", target));
  }

  QuantiseRequest request_of(const SampleFiles& files) const {
    QuantiseRequest r;
    r.scheme = o_.scheme;
    r.calibration = calibration_named(o_.calibration);  // auto: nothing
    r.scheme.ranges.symmetric = o_.activations == "symmetric";
    r.scheme.weights.per_channel = o_.granularity == "per-channel";
    r.scheme.correct_bias = !o_.no_bias_correction;
    if (o_.equalise || o_.no_equalise) r.equalise = o_.equalise;
    if (o_.max_drop_given()) r.max_drop = o_.max_drop;
    r.samples = files.calibration;
    r.held_out = files.held_out;
    r.running.options = c_.options();
    return r;
  }

  QuantisedModel onnx(const Model& model, const QuantiseRequest& request) const {
    if (Inside::of(model).described().format != ModelFormat::onnx || Inside::of(model).compiled())
      fail(ErrorCode::unsupported,
           "-o {}: {} is no ONNX file; only those become ONNX files, wanted FILE.xml (OpenVINO IR)",
           o_.output, c_.model);
    auto result =
        quantise_onnx(model, FileSource(c_.model, c_.weights, c_.options().limits.external_files), request);
    write_file(o_.output, result.onnx);
    return result;
  }

  /// Makes the IR as `lamina optimize` does, then quantises it.
  QuantisedModel ir(const Model& model, const QuantiseRequest& request) const {
    ConversionRequest wanted;
    std::vector<std::string> names;
    for (const auto& port : model.inputs()) names.push_back(port.name);
    for (const auto& [name, dims] : c_.shapes(names)) wanted.own_shapes[name] = Shape::of(dims);
    auto conversion = convert_model(c_.model, reader(), wanted);
    const auto converted = Inside::changed(model, conversion.loaded.graph);
    auto result = quantise_graph(converted, conversion.loaded.graph, request);
    auto loaded = std::move(conversion.loaded);
    loaded.graph = result.graph;
    if (loaded.graph.name.empty()) loaded.graph.name = fs::path(o_.output).stem().string();
    WriteIrOptions options;
    options.keep_halves = conversion.has_halves;
    options.rt_info = {{"MO_version", version()}, {"Runtime_version", version()}};
    for (const auto& text : write_ir(loaded, o_.output, options).warnings) c_.note({text});
    return result;
  }

  Reader reader() const {
    return [this](ReadSettings settings) {
      settings.settable.insert(settings.settable.end(), c_.settable.begin(), c_.settable.end());
      if (!c_.extensions.empty()) settings.extensions = std::make_shared<const ExtensionSet>(c_.extensions);
      const FileSource source(c_.model, c_.weights);
      if (CompiledFile::is_one(source.model()->bytes()))
        return Inside::of(Inside::read(c_.model, c_.reading(), settings.shapes)).loaded();
      return read(source, settings);
    };
  }

  static std::size_t bytes_at(const std::string& path) {
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    return error ? 0 : bytes;
  }

  void tell_of(const Model& model, const QuantiseRequest& request, const QuantisedModel& result,
               const SampleFiles& files) const {
    QuantizeReport report{.model = c_.model, .output = o_.output, .request = request, .result = result};
    for (const auto& part : Inside::of(model).parts()) report.bytes_before += part.file->size();
    report.bytes_after = bytes_at(o_.output) + (to_onnx() ? 0 : bytes_at(bin_path_of(o_.output)));
    report.measures_others = files.measures_others;
    report.notes = files.notes;
    if (!o_.report.empty()) write_file(o_.report, html_of(report));
    for (const auto& line : lines_of(report)) c_.say("{}", line);
    write_json(c_, json_of(report));
  }

  const QuantizeOptions& o_;
  const Common& c_;
};

void add_data(OptionSet& options, QuantizeOptions& o) {
  options
      .text("--data", o.samples.folder, "FOLDER",
            "Samples: images (PNG, JPEG, PPM, PGM), .npy, .npz with inputs by name or as in0, in1, ...")
      .required();
  options.text("-o,--output", o.output, "FILE", "The file to write: FILE.onnx or FILE.xml").required();
  options.number("--samples", o.samples.most, std::size_t{1}, std::size_t{1000000}, "N",
                 "Samples to calibrate with (128), spread evenly over the folder; others measure the drift");
  add_image_options(options, o.samples.image);
}

void add_scheme(OptionSet& options, QuantizeOptions& o) {
  options.choice(
      "--calibration", o.calibration, {"auto", "min-max", "percentile", "entropy", "mse"}, "METHOD",
      "How ranges are chosen: min-max, percentile, entropy or mse; auto: min-max or mse, whichever brings "
      "the outputs nearer to f32");
  options.number(
      "--percentile", o.scheme.ranges.percentile, 50.0, 100.0, "P",
      "For --calibration percentile: per cent of the numbers that lie within the range, on each side");
  options.choice("--activations", o.activations, {"asymmetric", "symmetric"}, "KIND",
                 "asymmetric (u8) or symmetric (i8; u8 where nothing is negative)");
  options.choice("--granularity", o.granularity, {"per-channel", "per-tensor"}, "G",
                 "Scales of weights: per-channel (of the output) or per-tensor");
  options.number("--bits", o.scheme.weights.bits, 7, 8, "7|8",
                 "Bits of weights; 7: half the range, for processors whose 16-bit sums saturate");
  options.list("--exclude", o.scheme.choice.exclude, "NAME_OR_REGEX[,...]",
               "Layers that stay f32: names, or expressions for the whole name", ',');
  options.list("--exclude-type", o.scheme.choice.exclude_types, "OPERATOR[,...]",
               "Operators that stay f32, such as MatMul or Add", ',');
  const auto equalise = options.flag("--equalize", o.equalise,
                                     "Scale channels between layers first, so that their ranges are similar");
  options
      .flag("--no-equalize", o.no_equalise,
            "Do not scale channels; by default they are scaled where that brings the outputs nearer to f32")
      .excludes(equalise);
  options.flag("--no-bias-correction", o.no_bias_correction,
               "Do not correct biases; by default they are corrected for the mean error of the weights");
  const auto drop = options.number(
      "--max-drop", o.max_drop, 0.0, 1e6, "X",
      "Largest relative error of an output (root of the mean square of the difference over that of the "
      "output); layers with the most harmful error stay f32 until the bound holds");
  o.max_drop_given = [drop] { return drop.given(); };
}

}  // namespace

Verb setup_quantize(OptionSet& options) {
  auto o = std::make_shared<QuantizeOptions>();
  add_model(options, o->common);
  add_data(options, *o);
  add_scheme(options, *o);
  options.text("--report", o->report, "FILE.html",
               "A page with the noise of each layer, and what stayed f32");
  options.list("--set", o->common.set, "KEY=VALUE", "Configuration KEY=VALUE of the runs");
  options.number("--threads", o->common.threads, 0, 1024, "N",
                 "Number of threads of the runs; 0: as many as the machine allows");
  add_shape(options, o->common);
  options.choice("--max-isa", o->common.max_isa, {"sse41", "avx2", "avx512", "native"}, "ISA",
                 "Highest instruction set that is used: sse41, avx2, avx512 or native");
  options.choice("--log-level", o->common.log_level, {"error", "warning", "info", "debug"}, "LEVEL",
                 "error, warning, info or debug");
  options.flag("--quiet", o->common.quiet, "Print nothing but errors");
  add_json(options, o->common);
  options.remark("Drift is the difference of the outputs from those of the f32 model. See docs/quantize.md.");
  return [o] { return Quantizing(*o).run(); };
}

}  // namespace lamina::tool
