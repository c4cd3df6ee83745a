#pragma once
/// Post-training quantisation: from an f32 model to one of 8 bits, by samples of its inputs. docs/quantize.md
/// describes what is quantised, and how.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lamina/export.h"
#include "lamina/log.h"
#include "lamina/model.h"
#include "lamina/options.h"
#include "lamina/progress.h"
#include "lamina/tensor.h"

namespace lamina {

/// Gives the inputs of the next sample, in the model's order, or nothing after the last one. An exception
/// from it ends the work and is thrown.
using NextSample = std::function<std::optional<std::vector<Tensor>>()>;

/// Gives the inputs of the sample with that index.
using SampleAt = std::function<std::vector<Tensor>(std::size_t index)>;

/// Samples that can be asked for again: the inputs of each, in the model's order, the same for the same
/// index. They are asked for several times, so they need not be in memory at once.
struct Samples {
  std::size_t count = 0;
  SampleAt get = {};
};

struct CalibrationData {
  Samples calibration;
  Samples held_out;  ///< what the drift is measured with; none: those of the calibration, at most 32
  bool held_out_is_new = false;  ///< none of them is used for calibration
};

/// How the range of a quantised tensor is chosen from its numbers.
enum class Calibration : std::uint8_t {
  min_max,     ///< from the smallest to the largest
  percentile,  ///< without the part beyond QuantizeOptions::percentile on each side
  entropy,     ///< the least loss of information (Kullback and Leibler)
  mse,         ///< the least squared error
};

struct QuantizeOptions {
  /// Nothing: min_max or mse, whichever brings the outputs nearer to f32.
  std::optional<Calibration> calibration = {};
  double percentile = 99.99;           ///< per cent of the numbers within the range on each side, 50 to 100
  bool symmetric_activations = false;  ///< i8 without zero points (u8 where nothing is negative), else u8
  bool per_channel = true;             ///< a scale of weights for each output channel, else one for all
  int weight_bits = 8;                 ///< or 7: half the range, for engines whose 16-bit sums saturate
  std::vector<std::string> exclude = {};  ///< layers that stay f32: names, or expressions for the whole name
  std::vector<std::string> exclude_types =
      {};  ///< operators that stay f32 ("MatMul"; `lamina ops` lists them)
  /// Whether channels are scaled between layers first, so that their ranges are similar; nothing: if that
  /// brings the outputs nearer to f32.
  std::optional<bool> equalize = {};
  bool correct_bias = true;  ///< corrects biases for the mean error of the weights
  /// Largest relative error of an output, 0.02 for 2 %: the layers that harm most stay f32 until it holds.
  std::optional<double> max_drop = {};
  std::size_t samples = 128;  ///< taken from NextSample for calibration
  std::size_t held_out = 32;  ///< taken after them for measuring the drift
  /// Shapes for the IR that is written, by input; an ONNX file keeps its own.
  std::vector<std::pair<std::string, Dims>> shape = {};

  /// Options of the runs on samples: threads, limits, log, ....
  Options running = {};
  /// Gets the progress, from the calling thread: each stage goes from 0 to 1 by a step for each run on a
  /// sample. An exception from it ends the work and is thrown.
  ProgressCallback progress = {};
  /// Ends the work: then it throws Error(canceled), within 100 ms or when the current call of oneDNN returns,
  /// and nothing is written.
  std::stop_token stop = {};
  /// Errors and reasons call an option "--max-drop", as the command does, and not "max_drop".
  bool dashes = false;
};

/// A convolution or matrix product. Signal to noise is in decibel: infinite where nothing differs, NaN where
/// it is not known.
struct QuantizedLayer {
  std::string name, type;  ///< type: of the operator
  std::string reason;      ///< why it stays f32; empty: it is quantised
  double sqnr_db = 0;      ///< of its result, with the noise of the layers before it
  double weights_sqnr_db = 0;
  ElementType input_type = ElementType::undefined;  ///< how its input is quantised: u8 or i8
  float input_scale = 0;
  std::int32_t input_zero_point = 0;
  double input_low = 0, input_high = 0;  ///< the range of the input
};

/// How far an output is from that of the f32 model, over all samples that were measured.
struct QuantizedOutput {
  std::string name;
  double sqnr_db = 0;
  double relative = 0;       ///< root of the sum of squared differences over that of the squared numbers
  double max = 0, mean = 0;  ///< of the absolute differences
  std::size_t not_comparable = 0;  ///< numbers that are finite in one model only, or of another shape
};

struct QuantizeReport {
  std::string model, output;                ///< the files; the model as the caller named it
  std::size_t bytes_before = 0, bytes = 0;  ///< of all files of the model, and of the quantised one
  std::string settings;                     ///< what was chosen, in a line
  std::size_t samples = 0;                  ///< that it was calibrated with
  std::size_t measured_with = 0;            ///< samples
  bool held_out = false;                    ///< none of those was used for calibration
  Calibration calibration = Calibration::min_max;
  std::size_t quantized_values = 0;
  std::size_t normalisations_folded = 0;  ///< batch normalisations that became part of a layer
  std::size_t pairs_equalized = 0;        ///< of layers
  std::size_t evaluations = 0;            ///< of quantised models, to decide
  std::vector<QuantizedLayer> layers;     ///< in the order of execution
  std::vector<QuantizedOutput> outputs;
  std::vector<std::string> others_in_f32;  ///< what is no layer: "NAME (OPERATOR): reason"
  std::vector<std::string> warnings;       ///< about the IR
  std::vector<std::string> notes;          ///< about the samples: the caller's, for the texts below

  /// The document of `lamina quantize --json`.
  LAMINA_API std::string json() const;
  /// A page with a bar for each output and layer, complete in itself.
  LAMINA_API std::string html() const;
  /// What `lamina quantize` prints, a line each.
  LAMINA_API std::vector<std::string> lines() const;
};

/// Quantises a model, and writes it to `output`: FILE.onnx (of ONNX models only: the model's file with
/// QuantizeLinear and DequantizeLinear) or FILE.xml, an IR with FakeQuantize, whose .bin is beside it.
/// A file is written completely or not at all, and never over the model. Thread-safe.
/// Takes the first options.samples samples for calibration, the next options.held_out for measuring, and
/// keeps copies of them; without any of these the drift is measured with samples of the calibration. Samples
/// fit the model's inputs, as for Request::set_input; there must be one at least. Throws Error: bad_input for
/// samples that do not fit, bad_option, bad_file when a file cannot be written, unsupported for models that
/// are quantised already, have nothing that could be, or do not reach max_drop, over_limit, canceled.
LAMINA_API QuantizeReport quantize(const Model& model, const NextSample& samples, const std::string& output,
                                   const QuantizeOptions& options = {});
/// With samples that can be asked for again; all of them are used.
LAMINA_API QuantizeReport quantize(const Model& model, const CalibrationData& samples,
                                   const std::string& output, const QuantizeOptions& options = {});

}  // namespace lamina
