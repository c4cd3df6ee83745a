/// lamina quantize: post-training quantisation to 8 bits, written as QDQ ONNX or as IR with FakeQuantize.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "lamina/quantize.h"
#include "tool/quantize_data.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

namespace fs = std::filesystem;

struct QuantizeCommand {
  Common common;
  SampleOptions samples;
  QuantizeOptions scheme;
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
  explicit Quantizing(const QuantizeCommand& o) : o_(o), c_(o.common) {}

  int run() {
    require_output();
    require_page_name(o_.report);
    const auto model = open_model(c_);
    require_other_file(model);
    auto files = find_samples(o_.samples, model.inputs(), c_);
    c_.note(files.notes);
    auto options = options_of(model);
    auto report = [&] {
      Progress progress("quantising " + c_.model, c_);
      options.progress = progress.callback();
      return quantize(model, CalibrationData{files.calibration, files.held_out, files.measures_others},
                      o_.output, options);
    }();
    c_.note(report.warnings);
    report.notes = files.notes;
    if (!o_.report.empty()) write_file(o_.report, report.html());
    for (const auto& line : report.lines()) c_.say("{}", line);
    write_json(c_, nlohmann::json::parse(report.json()));
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
    for (const auto& target : {o_.output, to_onnx() ? std::string() : bin_path(), o_.report,
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
    for (const auto& part : model.files())
      for (const auto& target : {o_.output, bin_path(), o_.report, c_.json})
        if (!target.empty() && is_same_file(part, target))
          throw UsageError(fmt::format("{} would be overwritten, which is the model itself", target));
  }

  /// The .bin of an IR.
  std::string bin_path() const { return fs::path(o_.output).replace_extension(".bin").string(); }

  QuantizeOptions options_of(const Model& model) const {
    auto o = o_.scheme;
    o.dashes = true;
    o.calibration = calibration();
    o.symmetric_activations = o_.activations == "symmetric";
    o.per_channel = o_.granularity == "per-channel";
    o.correct_bias = !o_.no_bias_correction;
    if (o_.equalise || o_.no_equalise) o.equalize = o_.equalise;
    if (o_.max_drop_given()) o.max_drop = o_.max_drop;
    std::vector<std::string> names;
    for (const auto& port : model.inputs()) names.push_back(port.name);
    if (!to_onnx()) o.shape = c_.shapes(names);
    o.running = c_.options();
    return o;
  }

  /// auto: nothing.
  std::optional<Calibration> calibration() const {
    for (const auto& [name, method] : {std::pair("min-max", Calibration::min_max),
                                       {"percentile", Calibration::percentile},
                                       {"entropy", Calibration::entropy},
                                       {"mse", Calibration::mse}})
      if (o_.calibration == name) return method;
    return std::nullopt;
  }

  const QuantizeCommand& o_;
  const Common& c_;
};

void add_data(OptionSet& options, QuantizeCommand& o) {
  options
      .text("--data", o.samples.folder, "FOLDER",
            "Samples: images (PNG, JPEG, PPM, PGM), .npy, .npz with inputs by name or as in0, in1, ...")
      .required();
  options.text("-o,--output", o.output, "FILE", "The file to write: FILE.onnx or FILE.xml").required();
  options.number("--samples", o.samples.most, std::size_t{1}, std::size_t{1000000}, "N",
                 "Samples to calibrate with (128), spread evenly over the folder; others measure the drift");
  add_image_options(options, o.samples.image);
}

void add_scheme(OptionSet& options, QuantizeCommand& o) {
  options.choice(
      "--calibration", o.calibration, {"auto", "min-max", "percentile", "entropy", "mse"}, "METHOD",
      "How ranges are chosen: min-max, percentile, entropy or mse; auto: min-max or mse, whichever brings "
      "the outputs nearer to f32");
  options.number(
      "--percentile", o.scheme.percentile, 50.0, 100.0, "P",
      "For --calibration percentile: per cent of the numbers that lie within the range, on each side");
  options.choice("--activations", o.activations, {"asymmetric", "symmetric"}, "KIND",
                 "asymmetric (u8) or symmetric (i8; u8 where nothing is negative)");
  options.choice("--granularity", o.granularity, {"per-channel", "per-tensor"}, "G",
                 "Scales of weights: per-channel (of the output) or per-tensor");
  options.number("--bits", o.scheme.weight_bits, 7, 8, "7|8",
                 "Bits of weights; 7: half the range, for processors whose 16-bit sums saturate");
  options.list("--exclude", o.scheme.exclude, "NAME_OR_REGEX[,...]",
               "Layers that stay f32: names, or expressions for the whole name", ',');
  options.list("--exclude-type", o.scheme.exclude_types, "OPERATOR[,...]",
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
  auto o = std::make_shared<QuantizeCommand>();
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
