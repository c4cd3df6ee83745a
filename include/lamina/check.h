#pragma once
/// Checks: a compiled model against the reference interpreter, layer by layer; a quantised model against its
/// f32 model; libraries of custom layers by themselves. docs/looking-inside.md shows how to read the reports.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lamina/export.h"
#include "lamina/model.h"
#include "lamina/options.h"
#include "lamina/progress.h"
#include "lamina/quantize.h"
#include "lamina/tensor.h"

namespace lamina {

struct CheckOptions {
  /// Outputs as they were elsewhere on these inputs, such as those of another engine: one for each of the
  /// model's, in its order, or none. An invalid tensor: that output is not compared.
  std::vector<Tensor> expected = {};
  /// Checks that run of a model with variables; the interpreter makes the runs before it, all of them on the
  /// same inputs.
  std::size_t steps = 1;
  bool bisect = false;  ///< searches the first rewrite that changes the results, if any does
  /// Gets the progress of the compilation, then of the stage "checking".
  ProgressCallback progress = {};
  /// Ends the work: then it throws Error(canceled), within 100 ms or when the current call of oneDNN returns.
  std::stop_token stop = {};
};

/// How far two tensors are apart.
struct CheckedDifference {
  bool within = true;          ///< no fault: within the limit, or beyond it by what rounding explains
  bool comparable = true;      ///< same type and shape
  double max = 0;              ///< the largest difference of two elements
  double mean = 0;             ///< of the differences
  double largest = 0;          ///< element of the reference, which limits are relative to
  double limit = 0;            ///< of `max`; integers must be equal
  std::size_t mismatches = 0;  ///< integers that differ, and numbers that are finite on one side only
  std::size_t undecided = 0;   ///< elements beyond the limit, but by what rounding explains
};

/// A value that the model has before and after its rewriting, compared with the interpreter on both graphs.
struct CheckedValue {
  std::string name;     ///< in bodies behind the name of what runs them: "loop/x"
  std::string made_by;  ///< operators that make it now: "Convolution+Relu"
  std::string problem;  ///< why the rewritten graph cannot make it; or empty
  CheckedDifference difference = {};
  bool ok() const { return problem.empty() && difference.within; }
};

/// An output of a kernel, which gets the interpreter's own inputs.
struct CheckedLayer {
  std::string name, op, kernel;
  CheckedDifference difference = {};
  std::string note;  ///< why it is not compared; or empty
  bool ok() const { return difference.within; }
};

/// How often the best classes agree, where an output is rows of scores.
struct RankingAgreement {
  std::size_t rows = 0;
  std::size_t top1 = 0;  ///< rows with the same best class
  std::size_t top5 = 0;  ///< rows in which each side's best class is among the other's five best
};

/// How much worse the reference's score at a stored index is than the one that belongs to its place.
struct ScoreLoss {
  double largest = 0, allowed = 0;
};

/// An output against the stored one.
struct StoredAgreement {
  double snr_db = 0;                      ///< signal to noise in decibel; infinite where both are the same
  double wanted_snr_db = 0;               ///< what it must be at least; 0: nothing is asked for
  double cosine = 1;                      ///< of the angle between the two
  double largest_error = 0;               ///< of two elements
  double allowed_error = 0;               ///< what that may be; 0: nothing is asked for
  Dims at = {};                           ///< where it is, an index per axis
  std::size_t mismatches = 0, count = 0;  ///< integers that differ, of how many
  std::optional<RankingAgreement> ranking = {};
  std::optional<ScoreLoss> score_loss = {};  ///< of indices that were chosen by scores
  std::string fault;                         ///< what is wrong, as a clause; empty: nothing
  std::string text;                          ///< all of this in words
};

/// A whole output.
struct CheckedOutput {
  std::string name;
  /// "interpreter", "interpreter with bf16", "layers one by one" (each on the results of those before it) or
  /// "stored output".
  std::string against;
  CheckedDifference difference = {};
  std::string note;                               ///< why it is not compared; or empty
  std::optional<StoredAgreement> agreement = {};  ///< with the stored output
  bool ok() const { return difference.within; }
};

/// How far an output with bf16 is from that in f32, which is not judged.
struct PrecisionDrift {
  std::string name, against;
  CheckedDifference difference = {};
};

/// What CheckOptions::bisect finds.
struct BisectedRewrite {
  std::size_t total = 0;     ///< rewrites that were made
  std::size_t number = 0;    ///< of the first one that changes results, from 1; 0: none does
  std::string rewrite = {};  ///< "fuse-linear at 'conv': ...", or what else; empty: none
  std::string value = {};    ///< one that it changes
  bool in_planning = false;  ///< no rewrite changes results, but planning does
};

/// A trial of a custom layer, in a process of its own.
struct CustomLayerTrial {
  std::string node;       ///< its label
  std::string op;         ///< "libgate.so: com.example:Gate"
  std::string tried;      ///< "channels_last (channels_last -> channels_last), f32[2,3,8,8]"
  std::string problem;    ///< a sentence; empty: none
  bool skipped = false;   ///< nothing was tried
  std::string note = {};  ///< what was not tried, and why; or empty
  bool ok() const { return problem.empty(); }
};

struct CheckReport {
  std::string model;   ///< the file, or the name of a model in memory; empty for libraries alone
  bool clean = false;  ///< nothing is wrong
  /// False: trials of custom layers were wrong, so that the model was not run; or there is no model.
  bool ran = false;
  /// Custom layers of the model, or operations of libraries; nothing where there are no libraries.
  std::optional<std::vector<CustomLayerTrial>> extensions = {};
  std::size_t operations = 0;          ///< of libraries without a model
  std::vector<CheckedValue> values;    ///< of the model, against its rewriting
  std::vector<CheckedLayer> layers;    ///< in the order of execution
  std::vector<CheckedOutput> outputs;  ///< in the model's order
  std::vector<PrecisionDrift> drifts;  ///< where layers compute in bf16
  std::string precision;               ///< "bf16: 52 of 57 layers; f32: 5"
  bool bf16_unused = false;            ///< bf16 is in use, but no layer computes in it
  std::optional<BisectedRewrite> bisect = {};

  /// Number of trials, values, layers and outputs that are wrong.
  LAMINA_API std::size_t faults() const;
  /// What `lamina check` prints, a line each: what is wrong, outputs and sums; with `all` every trial, value
  /// and layer. Names in it may hold any characters.
  LAMINA_API std::vector<std::string> lines(bool all = false) const;
  /// The document of `lamina check --json`.
  LAMINA_API std::string json() const;
};

/// Compiles the model and checks one run. First custom layers are tried, each in a process of its own: if one
/// is wrong, nothing else is done. Then the rewritten graph, every kernel of the plan and the outputs are
/// compared with the reference interpreter, which takes far more time than the run. `inputs`: one for each of
/// the model's, in its order; an invalid tensor for an input that has a default.
/// Thread-safe. While it works, random operators without a seed repeat their numbers in the whole process.
/// Throws Error: bad_input for inputs or expected outputs that do not fit, over_limit, canceled, and what
/// CompiledModel throws. An exception from a callback ends the work and is thrown.
LAMINA_API CheckReport check(const Model& model, const Options& options, const std::vector<Tensor>& inputs,
                             const CheckOptions& check_options = {});
/// Checks a run of a compiled model. It is compiled once more if it has released its original weights
/// (Options::keep_weights), from the same file with the same options; outputs are those of the model that is
/// given. Throws Error(bad_file) where the file of a compiled model does not have the original weights.
LAMINA_API CheckReport check(const CompiledModel& model, const std::vector<Tensor>& inputs,
                             const CheckOptions& check_options = {});

/// Tries all operations of libraries of custom layers (as ReadOptions::extensions), on their samples, each in
/// a process of its own. Of the options `progress` and `stop` count. Throws Error: bad_file for a library
/// that cannot be loaded, bad_option for an operation that two of them have, extension, canceled.
LAMINA_API CheckReport check_extensions(const std::vector<std::string>& paths,
                                        const CheckOptions& check_options = {});

/// A layer of the f32 model for whose output the quantised model has a value. Noise is given as signal to
/// noise in decibel: infinite without noise, NaN if the two values cannot be compared.
struct LayerNoise {
  std::string name;       ///< in the f32 file; of the last layer where several are measured together
  std::string operators;  ///< "Conv+Relu": the types of all layers since the values before
  /// Further layers with weights in the measurement, because their own outputs have no counterpart.
  std::vector<std::string> with = {};
  double sqnr_db = 0;        ///< noise of its output, that of all layers before it included
  double own_sqnr_db = 0;    ///< noise of its output against f32 on the same operands: weights and arithmetic
  double input_sqnr_db = 0;  ///< noise of what it reads, by rounding to levels alone
  /// The noise of the model's outputs where this layer alone is quantised: 0 to 1, the sum of all is 1.
  double share = 0;
  bool has_weights = false;
};

/// How far an output of the quantised model is from that of the f32 model, over all samples.
struct OutputNoise {
  std::string name;
  double sqnr_db = 0;
  double relative = 0;       ///< root of the sum of squared differences over that of the squared numbers
  double max = 0, mean = 0;  ///< of the absolute differences
  std::size_t not_comparable = 0;  ///< numbers that are finite in one model only, or of another shape
  std::size_t not_finite = 0;      ///< numbers that are the same NaN or infinity in both: left out
};

/// An input that holds NaN or infinities in some of the samples.
struct InputNotFinite {
  std::string name;
  std::size_t samples = 0;
};

/// Nodes of the f32 model which are best not quantised.
struct LeftOut {
  std::vector<std::string> nodes;  ///< the worst first; empty where leaving out gains nothing worth the while
  std::vector<std::string> layers;  ///< the nodes that have weights
  /// Some nodes are named after their first output: the file may have no name for them.
  bool has_unnamed = false;
  /// Worst signal to noise of an output where the nodes compute in f32. Other ranges, which a quantiser finds
  /// then, are not in it.
  double sqnr_db = 0;
};

struct NoiseReport {
  std::string model, against;      ///< the files
  std::vector<LayerNoise> layers;  ///< the worst output first; without layers that are exact
  std::vector<OutputNoise> outputs;
  std::size_t samples = 0;
  std::vector<InputNotFinite> not_finite;  ///< what is measured with such inputs means little
  std::size_t weighted = 0;                ///< layers with weights
  std::size_t matched = 0;                 ///< layers with weights that have a measurement of their own
  std::size_t exact = 0;  ///< layers with weights that are not in `layers`, since they are not quantised
  double sqnr_db = 0;     ///< worst signal to noise of an output
  LeftOut left_out;
  /// Worst signal to noise of an output if everything that has a counterpart computes in f32: high, unless
  /// something could not be measured.
  double rest_sqnr_db = 0;
  std::size_t compared = 0;  ///< numbers in the outputs of all samples: with few of them noise is chance
  bool has_shares = false;   ///< some output in floats, of the same shape in both models, has noise
  std::vector<std::string> notes;  ///< about the inputs: the caller's, for the texts below
  bool random_inputs = false;      ///< the caller's, too: the inputs are no real ones

  /// The document of `lamina check --against --json`.
  LAMINA_API std::string json() const;
  /// A page that loads nothing from elsewhere. A click on a heading sorts the table of layers.
  LAMINA_API std::string html() const;
  /// What `lamina check --against` prints: a table with a row for each layer, then what to leave out.
  LAMINA_API std::vector<std::string> lines() const;
};

struct NoiseOptions {
  /// Options of the runs on samples: threads, limits, log, ....
  Options running = {};
  /// Gets the progress, from the calling thread. An exception from it ends the work and is thrown.
  ProgressCallback progress = {};
  /// Ends the work: then it throws Error(canceled), within 100 ms or when the current call of oneDNN returns.
  std::stop_token stop = {};
};

/// Compares a quantised model with the f32 model that it was made of, on samples that fit the inputs of both:
/// the noise of each layer, which layers cause that of the outputs, and which are best left in f32.
/// Thread-safe. Throws Error: bad_input if there is no sample, if one does not fit, or if `quantised` was not
/// made of `f32`; unsupported for the files of compiled models, which have no layers; over_limit, canceled.
LAMINA_API NoiseReport compare_quantized(const Model& quantised, const Model& f32, const Samples& samples,
                                         const NoiseOptions& options = {});
/// The same on one sample: the inputs in the model's order.
LAMINA_API NoiseReport compare_quantized(const Model& quantised, const Model& f32,
                                         const std::vector<Tensor>& inputs, const NoiseOptions& options = {});

}  // namespace lamina
