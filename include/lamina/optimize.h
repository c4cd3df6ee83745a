#pragma once
/// The offline optimiser: a model of any format becomes an OpenVINO IR, optimised as far as a file can
/// express it. Options have the names of OpenVINO's Model Optimizer; docs/optimize.md describes them.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamina/error.h"
#include "lamina/export.h"
#include "lamina/log.h"
#include "lamina/model.h"
#include "lamina/partial_shape.h"
#include "lamina/preprocess.h"
#include "lamina/progress.h"
#include "lamina/tensor.h"

namespace lamina {

/// An error that has a question in the FAQ of OpenVINO's Model Optimizer.
class LAMINA_API FaqError : public Error {
 public:
  FaqError(ErrorCode code, int question, std::string_view text);
  FaqError(const FaqError&) noexcept = default;
  FaqError& operator=(const FaqError&) noexcept = default;
  ~FaqError() override;
  int question() const noexcept { return question_; }  ///< its number

 private:
  int question_;
};

/// A place where the network is to begin, or an input that becomes a constant.
struct InputCut {
  std::string name;  ///< of a layer or tensor; "NAME:PORT" is an output of a layer, "PORT:NAME" what it reads
  std::optional<PartialShape> shape = {};
  ElementType type = ElementType::undefined;  ///< of the input that is written; undefined: the model's own
  /// What it is frozen to: a number, True or False, or "[1 2 3]" with as many numbers as it has elements.
  std::optional<std::string> value = {};
};

/// Gets the path of a file that a model is read from.
using FileCallback = std::function<void(const std::string& path)>;

struct OptimizeOptions {
  /// Inputs that stay inputs, libraries of custom layers, the model's second file, limits, and how the work
  /// is stopped. If the model was read already, only `stop` counts: the rest is as it was read with.
  ReadOptions reading = {};
  std::string model_name = {};  ///< of the network in the IR; empty: the model's own, or the file's name

  std::vector<InputCut> input = {};      ///< where the network begins; none: the model's inputs
  std::vector<std::string> output = {};  ///< where it ends, in this order; none: its outputs
  std::vector<InputCut> freeze_placeholder_with_value = {};  ///< further places that become constants
  std::vector<PartialShape> input_shape = {};  ///< of `input` in its order, else of the model's inputs
  NamedShapes shape = {};                      ///< of the model's inputs by name
  std::int64_t batch = 0;                      ///< of all inputs, without other shapes; 0: as it is

  std::vector<LayoutChange> layout = {};
  std::vector<ChannelValues> mean_values = {};   ///< subtracted from inputs
  std::vector<ChannelValues> scale_values = {};  ///< what inputs are divided by then
  std::optional<double> scale = {};              ///< divides all inputs of floats
  bool reverse_input_channels = false;           ///< swaps RGB and BGR in inputs with 3 channels
  std::string mean_file = {};                    ///< Caffe's image of means (.binaryproto), a path
  /// x and y of the window of that image; nothing: its centre.
  std::optional<std::pair<std::int64_t, std::int64_t>> mean_file_offsets = {};

  bool disable_fusing = false;               ///< keeps linear operators apart
  bool disable_gfusing = false;              ///< does not join convolutions to a grouped one
  bool disable_resnet_optimization = false;  ///< does not move strides
  bool disable_weights_compression = false;  ///< keeps the FakeQuantize of weights
  std::vector<std::string> disable = {};     ///< optimisations to leave out, by name; "all": every one
  std::vector<std::string> exempt = {};      ///< nodes that stay: names, or expressions for the whole name
  std::vector<std::string> finegrain_fusing = {};  ///< the same by expressions for a part of the name

  int ir_version = 11;  ///< or 10
  /// true: floats are stored as f16, false: as f32. Nothing: as f32, but those that were f16 stay f16.
  std::optional<bool> compress_to_fp16 = {};
  /// Further texts for the IR's rt_info, by key with dots ("conversion_parameters.batch").
  std::map<std::string, std::string> rt_info = {};
  /// Makes OptimizeReport::page, which takes some time and memory.
  bool page = false;

  /// Gets warnings as they come, from the calling thread. Must not throw.
  LogCallback log = {};
  /// Gets the progress, from the calling thread. An exception from it ends the work and is thrown.
  ProgressCallback progress = {};
  /// Called with the path of each file that the model is read from, the first time before anything is read.
  /// A file may be named again. An exception from it ends the work and is thrown.
  FileCallback opened = {};
  /// Errors and warnings call an option "--input_shape", as on a command line, and not "input_shape".
  bool dashes = false;

  /// Sets an option from a text as the Model Optimizer's command line has it: set("input",
  /// "0:conv2[1,8,4,4]{f16},x->[1.5 2]"), set("layout", "a(nhwc->nchw)"), set("mean_values", "[1,2,3]").
  /// Names are input, output, freeze_placeholder_with_value, input_shape, layout, source_layout,
  /// target_layout, mean_values, scale_values, mean_file_offsets and finegrain_fusing. Throws FaqError or
  /// Error(bad_option), which begin with the name, and changes nothing then.
  LAMINA_API void set(std::string_view name, std::string_view text);
};

/// What a graph amounts to.
struct GraphFigures {
  std::size_t operators = 0;
  double multiply_adds = 0;  ///< of convolutions, matrix products and recurrent networks
  double flops = 0;          ///< twice that
  bool complete = true;      ///< false: of some of them sizes are not known
  bool for_batch_1 = false;  ///< the batch, the only size that is not known, was taken for 1
};

struct OptimizeReport {
  std::string model;     ///< as the caller named it
  std::string format;    ///< of the model: "ONNX", "OpenVINO IR", "Caffe", "TensorFlow", "oneDNN Graph"
  std::string xml, bin;  ///< the files that were written
  int ir_version = 11;
  bool compressed_to_fp16 = false;
  bool keeps_halves = false;  ///< numbers that f16 holds exactly were stored so, since most of them were f16
  std::size_t layers = 0, constants = 0;
  std::size_t shared_constants = 0;  ///< whose bytes were in the file already
  std::size_t xml_bytes = 0, bin_bytes = 0;
  std::size_t rewrites = 0;
  std::vector<Fusion> rules;  ///< how often each optimisation fired, the most frequent first
  GraphFigures before, after;
  std::vector<std::string> unused_inputs;   ///< inputs that no layer reads
  std::vector<std::string> dropped_inputs;  ///< inputs of the model that no layer after the cut reads
  std::vector<std::string> exempt;          ///< layers that were left alone because the options say so
  std::vector<std::string> notes;           ///< a sentence each
  std::vector<std::string> warnings;        ///< of the conversion
  std::vector<std::string> reading_warnings, writing_warnings;  ///< about the model's files, about the IR
  double seconds = 0;                                           ///< that all of it took
  /// A page (HTML) about the rewriting with drawings, complete in itself; if OptimizeOptions::page is set.
  std::string page;

  /// The document of `lamina optimize --json`.
  LAMINA_API std::string json() const;
};

/// Converts and optimises a model, and writes it to `xml_path`, which ends with .xml, and the constants
/// beside it, in a .bin of the same name: both completely or not at all. The folder is made if it is missing.
/// The model is never overwritten. Thread-safe. Throws FaqError, and Error: bad_file for files that cannot be
/// read or written, unsupported for operators that lamina does not know or IR does not have, bad_option,
/// bad_input for names and shapes that do not fit, over_limit, and canceled when options.reading.stop is
/// requested.
LAMINA_API OptimizeReport optimize(const std::string& model_path, const std::string& xml_path,
                                   const OptimizeOptions& options = {});
/// The same for a model that was read, from memory, too. It is read once more if options change its inputs.
LAMINA_API OptimizeReport optimize(const Model& model, const std::string& xml_path,
                                   const OptimizeOptions& options = {});

}  // namespace lamina
