#pragma once
/// Models, compiled models and requests: read, compile, run. docs/api.md explains them, with pieces of code.
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/export.h"
#include "lamina/options.h"
#include "lamina/partial_shape.h"
#include "lamina/tensor.h"

struct lamina_host;       // lamina/extension.h
struct lamina_registrar;  // lamina/extension.h

namespace lamina {

class LoadedModel;  // internal
class Compiled;     // internal
class RequestPool;  // internal
struct Inside;      // internal

/// An input or output of a model.
struct Port {
  std::string name;
  ElementType type = ElementType::undefined;
  bool ranked = true;                        ///< false: not even the number of dimensions is known
  Dims shape;                                ///< -1: known only at run time
  std::vector<std::string> dimension_names;  ///< of unknown dimensions ("batch"); "" where unnamed
  Tensor value = {};  ///< default of an input that need not be set; not valid for other ports
};

/// "f32[1,3,height,width]"
LAMINA_API std::string to_string(const Port& port);
/// "image: f32[1,3,height,width]"
LAMINA_API std::ostream& operator<<(std::ostream& out, const Port& port);

/// The parts of a model that lies in memory.
struct ModelBytes {
  /// An ONNX model, the text of an IR's .xml, a Caffe network's prototxt or caffemodel, a TensorFlow graph,
  /// the JSON of oneDNN Graph.
  std::span<const std::byte> model;
  std::span<const std::byte> weights = {};  ///< of an IR: its .bin; of a Caffe network: its other file
  /// External data of an ONNX model, by the location that its tensors give.
  std::map<std::string, std::span<const std::byte>> external_data = {};
  /// Owner of all of these bytes. With an owner the bytes are read in place, and the owner is kept for as
  /// long as they are needed; without one they are copied, and need not outlive the call.
  std::shared_ptr<const void> owner = {};
  std::string name = "model in memory";  ///< the model's name in errors
};

struct ReadOptions {
  /// Inputs of an ONNX model that have a value in it (overridable initialisers), by name: they can be set,
  /// and have that value until they are. All others of this kind are constants.
  std::vector<std::string> settable = {};
  /// Libraries of custom layers (lamina/extension.h): files, or names of register_extension(). A name without
  /// a slash is looked for in the folders of the environment variable LAMINA_EXTENSION_PATH, then in the
  /// current one. They stay loaded for as long as a model, or what was compiled from it, needs them. Their
  /// order does not matter.
  std::vector<std::string> extensions = {};
  /// The model's second file, if it is not beside the first with the same name: the .bin of an IR,
  /// the caffemodel of a Caffe network's prototxt, or the other way round. Not for a model in memory.
  std::string weights = {};
  /// Shapes of inputs in place of the file's, by name: {{"image", {1, 3, -1, {1, 640}}}}. The shapes of all
  /// other tensors follow from them. In a compiled model only sizes that are open may be given; it is
  /// compiled anew then, and needs its weights: else Error(bad_file). Throws Error(bad_input) for an unknown
  /// name, and if the layers do not take these shapes; Error(bad_option) for a size that is below 0 or a
  /// range that is empty.
  NamedShapes input_shapes = {};
  /// Limits for untrusted models: they hold while the model is read, and for all that is compiled from it.
  ModelLimits limits = {};
  /// Cancels the reading: when a stop is requested, from any thread, Model's constructor or from_memory()
  /// frees what it has and throws Error(canceled), within 100 ms for most files (docs/untrusted-models.md
  /// names what takes longer). It does not stop the compilation of the model: Options::stop does.
  std::stop_token stop = {};
};

/// Registers a library of custom layers that is linked into the program, under a name for
/// ReadOptions::extensions. Thread-safe. Throws Error(bad_call) for an empty name, a null pointer, or a name
/// that is registered for another function.
LAMINA_API void register_extension(const std::string& name,
                                   int (*entry)(const lamina_host*, lamina_registrar*));

/// A model that was read: ONNX, OpenVINO IR (.xml with its .bin beside it), Caffe (.prototxt with its
/// .caffemodel beside it, or the other way round), a frozen TensorFlow graph (.pb, .pbtxt), a graph of oneDNN
/// Graph (.json), or a compiled model that CompiledModel::save has written. A compiled model is ready at
/// once, and keeps the options that it was compiled with unless Options give others. Immutable; copies are
/// cheap. Weights stay in the mapped file. Thread-safe.
class Model {
 public:
  /// Throws Error(bad_file) when the file is missing or damaged, and Error(unsupported) for a compiled model
  /// of another version. A model with unsupported operators can be read. Throws Error(bad_option) for a
  /// settable input that does not exist, and for an operation that two extensions declare; Error(bad_file)
  /// for an extension that cannot be loaded, Error(extension) for one that fails; Error(over_limit) for a
  /// model beyond ReadOptions::limits; Error(canceled) when ReadOptions::stop is requested. Files are mapped:
  /// if a file is truncated while the model, or a model compiled from it, exists, the process ends with
  /// SIGBUS. If others may write to the file, read it into memory and use from_memory().
  LAMINA_API explicit Model(const std::string& path, const ReadOptions& options = {});
  /// Reads a model with ReadOptions::extensions: Model("model.onnx", {"libgate.so"}). A template, so that
  /// braces with designated members are ReadOptions.
  template <class Paths = std::vector<std::string>>
  requires std::same_as<Paths, std::vector<std::string>> Model(const std::string& path,
                                                               const Paths& extensions)
      : Model(path, ReadOptions{{}, extensions}) {}
  /// Reads a model from memory. No files are opened: if the model refers to data that is not among the
  /// bytes, that is Error(bad_file). If the bytes of ModelBytes::owner are a file that the caller has mapped,
  /// that file must not be truncated, as for Model(path).
  LAMINA_API static Model from_memory(const ModelBytes& bytes, const ReadOptions& options = {});

  LAMINA_API const std::vector<Port>& inputs() const;
  LAMINA_API const std::vector<Port>& outputs() const;
  /// Values that a request keeps from run to run (ReadValue and Assign of OpenVINO), by name; most models
  /// have none.
  LAMINA_API const std::vector<Port>& variables() const;
  /// The index of the input or output of that name; nothing when there is none.
  LAMINA_API std::optional<std::size_t> find_input(std::string_view name) const;
  LAMINA_API std::optional<std::size_t> find_output(std::string_view name) const;
  /// Texts about the model in its file, by key (ONNX: metadata_props; IR: rt_info).
  LAMINA_API const std::map<std::string, std::string>& metadata() const;
  /// "ONNX", "OpenVINO IR", "Caffe", "TensorFlow", "oneDNN Graph"
  LAMINA_API const std::string& format() const;
  /// True for a file of CompiledModel::save, whose plans are used. False if ReadOptions::input_shapes have
  /// fixed sizes that it leaves open, and for what preprocessed() makes of it: these are compiled anew.
  LAMINA_API bool is_compiled() const;
  /// The input shapes for which such a file has plans, each with a shape for every input; empty for other
  /// models.
  LAMINA_API const std::vector<std::vector<Dims>>& compiled_for() const;
  /// The outputs if inputs have these shapes, by the layers' rules alone; an input that is not named keeps
  /// its own. -1 is left where a size depends on values. Throws Error(bad_input) for an unknown name, and
  /// when the layers do not take the shapes; Error(bad_option) as ReadOptions::input_shapes.
  LAMINA_API std::vector<Port> output_ports(const NamedShapes& input_shapes) const;
  /// Oddities in the file that the reader could cope with, a line each.
  LAMINA_API const std::vector<std::string>& warnings() const;
  /// Paths of the files that the model was read from, the one that the caller named first; none for a model
  /// in memory.
  LAMINA_API std::vector<std::string> files() const;
  /// One line per unsupported operator type, with its nodes; compiling refuses when there are any.
  LAMINA_API const std::vector<std::string>& unsupported() const;

 private:
  friend struct Inside;
  explicit Model(std::shared_ptr<const LoadedModel> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<const LoadedModel> impl_;
};

/// Time of one layer in the last run.
struct LayerTime {
  std::string name;    ///< of the layer that remained after fusing
  std::string kernel;  ///< "jit_avx512_1x1_f32"
  double microseconds = 0;
};

/// How often an optimisation fired.
struct Fusion {
  std::string rule;       ///< its name for Options::disable
  std::size_t count = 0;  ///< number of changes that it made to the graph
};

/// State of a request. idle: nothing has run yet. queued: it waits for a stream, or it was canceled and its
/// callback has not been called yet. running: it has a stream; this includes its callback. The state changes
/// to done, failed or canceled before wait() returns, and before the stream goes to the next request.
enum class RequestStatus : std::uint8_t { idle, queued, running, done, failed, canceled };

/// State of a layer. optimized_out: another layer does its work (LayerCounter::into), or it is not needed.
/// not_run: nothing was counted yet, or a branch was not taken.
enum class LayerStatus : std::uint8_t { executed, optimized_out, not_run };

/// Times of a layer of the model's file, or of a reorder that was inserted between two layers.
struct LayerCounter {
  std::string name = {};    ///< in the file; of a reorder "SOURCE_LAYOUT_LAYOUT_TARGET"
  std::string type = {};    ///< of the operation
  std::string kernel = {};  ///< "undef" unless executed
  std::string into = {};    ///< the layer that does its work; may be empty
  LayerStatus status = LayerStatus::not_run;
  /// Number of counted inferences, of all shapes; 0 unless executed. Averages are over these, so that rows
  /// add up to an inference: an inference that did not run the layer counts as 0. min_us is over the others.
  std::uint64_t runs = 0;
  double last_us = 0, average_us = 0, min_us = 0;
  double cpu_us = 0;  ///< average processor time of the stream's thread
};

class CompiledModel;

/// Runs one inference at a time of a compiled model, which it keeps alive. A request has its own inputs,
/// outputs and variables; memory between layers belongs to the streams. While an inference is under way
/// (queued, running, or its callback has not returned) every function except wait(), wait_for(), cancel()
/// and status() throws Error(busy) and changes nothing. In the request's own callback, setters and output()
/// work, and start() begins the next inference. wait(), wait_for(), cancel() and status() may be called from
/// any thread; all other functions from one thread at a time.
class Request {
 public:
  LAMINA_API Request(Request&&) noexcept;
  /// The request that is replaced is destroyed as by the destructor.
  LAMINA_API Request& operator=(Request&&) noexcept;
  /// Cancels an inference that is under way and waits for its end, callback included. In the request's own
  /// callback the destructor returns at once, and the request's memory is freed when the callback has
  /// returned. Must not be called inside the request's own run(). For a static request, once exit() has
  /// begun, the destructor does not disturb another thread that uses the request.
  LAMINA_API ~Request();

  /// Sets an input. The tensor is shared, not copied, and only read; it must not change during run(). An
  /// empty tensor releases the tensor that was set before. Throws Error(bad_input) when there is no such
  /// input, or when type or shape do not fit it.
  LAMINA_API void set_input(std::size_t index, Tensor tensor);
  LAMINA_API void set_input(std::string_view name, Tensor tensor);
  /// Sets the memory for an output; with an empty tensor the request uses its own memory again. Throws
  /// Error(bad_input) when the tensor does not fit the output or is read-only. run() checks what depends on
  /// the inputs' shapes and throws the same error: for a shape that differs, and for memory that overlaps
  /// that of another output or of an input.
  LAMINA_API void set_output(std::size_t index, Tensor tensor);
  LAMINA_API void set_output(std::string_view name, Tensor tensor);
  /// Runs one inference in the calling thread and the helpers of a stream; waits for a stream, first come,
  /// first served. Throws Error(bad_input) when an input is missing or the model cannot run on these shapes,
  /// Error(canceled), Error(busy) when it would wait for the call that it is made in, and exceptions of
  /// Options::progress. After a run that throws, inputs and variables are as before, there are no outputs
  /// until a run succeeds, and the request remains usable. Calls no callback.
  LAMINA_API void run();
  /// run() with a time limit, for which the time in the queue counts, too. When the time is over, the
  /// inference ends as one that is canceled, and Error(over_limit) is thrown. The next run may take any time.
  LAMINA_API void run_for(std::chrono::nanoseconds time);
  /// Queues one inference and returns at once. Throws Error(bad_input) for missing inputs, and starts nothing
  /// then. Without streams it runs the inference, and calls the callback, before it returns.
  LAMINA_API void start();
  /// Waits until no inference is under way. Throws the error of the last inference, or else the exception of
  /// its callback; Error(busy) in the request's own callback or inference, Error(canceled) if the process
  /// ends first.
  LAMINA_API void wait();
  /// wait() with a time limit. Returns false if the inference is still under way when the time is over; with
  /// 0 it only asks.
  LAMINA_API bool wait_for(std::chrono::nanoseconds time);
  /// Cancels the inference. A queued one does not begin; a running one ends within 100 ms, or when the
  /// current call of oneDNN or of a custom layer returns. Both end with Error(canceled); one that is nearly
  /// finished may end normally. The request remains usable. Returns at once; wait() waits for the end.
  LAMINA_API void cancel() noexcept;
  /// Sets a function that is called once for each start() that returned, when its inference has ended: with
  /// nullptr on success, else with the error. It is called on a thread of lamina (without streams: the
  /// caller's), never inside cancel() or the destructor. It may use this and other requests, run() and wait()
  /// of others included. Its exceptions are logged, and thrown by wait(). Null: no callback.
  LAMINA_API void set_callback(std::function<void(std::exception_ptr)> callback);
  LAMINA_API RequestStatus status() const noexcept;
  /// Switches the timing of layers on or off, from the next inference on.
  LAMINA_API void set_profile(bool on);
  /// Times of layers, in the order of the file, then of reorders. They include all successful timed
  /// inferences since the last one that was not timed. Throws Error(bad_option) when timing is off.
  LAMINA_API std::vector<LayerCounter> counters() const;
  /// Result of the last run; overwritten by the next (clone() keeps it). Throws Error(bad_call) when nothing
  /// has run yet, Error(bad_input) after one that failed or was canceled.
  LAMINA_API const Tensor& output(std::size_t index) const;
  LAMINA_API const Tensor& output(std::string_view name) const;
  /// Takes a result of the last run out of the request, without a copy: the next run does not overwrite it,
  /// but writes into new memory. Memory that set_output() gave stays set. Until the next run output() of a
  /// result that was taken throws Error(bad_call). Throws what output() throws.
  LAMINA_API Tensor take_output(std::size_t index);
  LAMINA_API Tensor take_output(std::string_view name);
  /// A copy of the variable's value. Throws Error(bad_input) when there is no such variable, or while
  /// its initial value has not been computed yet from the inputs of the first run.
  LAMINA_API Tensor variable(std::string_view name) const;
  /// Sets a variable to a copy of the value. Throws Error(bad_input) when there is no such variable, or when
  /// type or shape do not fit it.
  LAMINA_API void set_variable(std::string_view name, const Tensor& value);
  /// Gives all variables their initial values again, as in a new request, to begin a new sequence.
  LAMINA_API void reset_state();
  /// Times of the layers in the last run, if it was timed (Options::profile, set_profile) and succeeded; else
  /// empty.
  LAMINA_API std::vector<LayerTime> layer_times() const;
  /// Bytes of memory between layers that the last run used in its stream.
  LAMINA_API std::size_t memory() const;

 private:
  friend class Compiled;
  friend struct Inside;
  class State;
  explicit Request(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

/// A model made ready for this processor. Immutable; copies are cheap; thread-safe.
class CompiledModel {
 public:
  /// Compiles the model. Throws Error(unsupported), which names the unsupported operator types;
  /// Error(bad_option) for an unknown rule's name or a value out of range; Error(canceled) when Options::stop
  /// is requested; Error(over_limit) beyond Options::limits or the limits that the model was read with.
  LAMINA_API explicit CompiledModel(const Model& model, const Options& options = {});
  CompiledModel(const CompiledModel&) = default;
  CompiledModel(CompiledModel&&) noexcept = default;
  CompiledModel& operator=(const CompiledModel&) = default;
  CompiledModel& operator=(CompiledModel&&) noexcept = default;
  /// Streams, memory and plans are freed with the last copy and request. Those of static objects are kept
  /// once exit() has begun, since other threads may be using them.
  LAMINA_API ~CompiledModel();
  LAMINA_API const std::vector<Port>& inputs() const;
  LAMINA_API const std::vector<Port>& outputs() const;
  LAMINA_API const std::vector<Port>& variables() const;
  LAMINA_API std::optional<std::size_t> find_input(std::string_view name) const;
  LAMINA_API std::optional<std::size_t> find_output(std::string_view name) const;
  /// The outputs for inputs of these shapes (in the model's order), found without running: -1 is left where a
  /// size depends on values. Throws Error(bad_input) when the model cannot run on them.
  LAMINA_API std::vector<Port> output_ports(const std::vector<Dims>& input_shapes) const;
  /// Plans for inputs of these shapes (in the model's order) now, so that the first run with them need not,
  /// and save() writes the plan. Sizes that only a run finds, of parts that depend on values and of variables
  /// without a fixed size, are planned in that run. Throws Error(bad_input) when the model cannot run on
  /// them, Error(over_limit), and Error(canceled) when a stop is requested, by `stop` or by Options::stop.
  LAMINA_API void plan(const std::vector<Dims>& input_shapes, const std::stop_token& stop = {}) const;
  /// Number of plans in memory: one for each combination of input shapes, and for parts whose shapes depend
  /// on values.
  LAMINA_API std::size_t plans() const;
  LAMINA_API Request create_request() const;
  /// Convenience: runs one inference on a request from an internal pool, which keeps neither inputs nor
  /// results; variables begin with their initial values. Inputs are in the model's order.
  LAMINA_API std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
  /// One inference of a model with one input; returns the first output.
  LAMINA_API Tensor operator()(const Tensor& input) const;
  /// How often each optimisation fired.
  LAMINA_API std::vector<Fusion> fusions() const;
  /// Number of requests that run at the same time; 0: the callers' threads do the work, any number of them.
  LAMINA_API int streams() const;
  /// Threads of one stream, for which the model was compiled. In a child of fork() it has only one of them if
  /// the parent had helper threads then (docs/api.md).
  LAMINA_API int threads() const;
  /// Number of requests that keep all streams busy.
  LAMINA_API std::size_t optimal_requests() const;
  /// The value of a property (an option in use, or a fact) by its key. Throws Error(bad_option), which names
  /// the nearest key.
  LAMINA_API std::string property(std::string_view key) const;
  LAMINA_API std::vector<Property> properties() const;
  /// Bytes of packed weights so far.
  LAMINA_API std::size_t weight_memory() const;
  /// Writes the compiled model (with the plans and packed weights so far) into a file that Model(path)
  /// opens, on processors with the instruction set that is used here. The file is written completely or not
  /// at all. Thread-safe. Throws Error(bad_file) when it cannot be written, or the model's own file has
  /// changed.
  LAMINA_API void save(const std::string& path) const;

 private:
  friend struct Inside;
  explicit CompiledModel(std::shared_ptr<const Compiled> impl);
  std::shared_ptr<const Compiled> impl_;
  std::shared_ptr<RequestPool> pool_;
};

/// Cancels started requests of all models, and joins every thread that lamina or its libraries made; threads
/// are made again at the next use. A run() in another thread is waited for, and canceled after 2 seconds. A
/// run() that begins meanwhile waits, a start() throws Error(canceled). Afterwards a library that links
/// lamina may be unloaded. Throws Error(busy) in a callback or a custom layer, and while another thread is in
/// shutdown(). Does nothing once exit() has begun to stop lamina.
LAMINA_API void shutdown();

/// "lamina 0.1.0"
LAMINA_API std::string version();

}  // namespace lamina
