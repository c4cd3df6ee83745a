#pragma once
/// Models, compiled models and requests: read, compile, run. docs/api.md tells more, with pieces of code.
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
  std::vector<std::string> dimension_names;  ///< of unknown dimensions ("batch"); empty where unnamed
  Tensor value = {};  ///< of an input that need not be set: what holds until it is; else not valid
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
  /// Of an ONNX model: its external data, by the location that the tensors give.
  std::map<std::string, std::span<const std::byte>> external_data = {};
  /// Keeps all of these bytes as they are. With an owner they are read where they lie, and it is kept for as
  /// long as anything needs them; without one they are copied, and need not outlive the call.
  std::shared_ptr<const void> owner = {};
  std::string name = "model in memory";  ///< what errors call it
};

struct ReadOptions {
  /// Inputs of an ONNX model that have a value in it (overridable initialisers), by name: they can be set,
  /// and have that value until they are. All others of the kind are constants.
  std::vector<std::string> settable = {};
  /// Libraries of custom layers (lamina/extension.h): files, or names of register_extension(). A name without
  /// a slash is looked for in the folders of the environment variable LAMINA_EXTENSION_PATH, then in the
  /// current one. They stay loaded for as long as a model, or what was compiled of it, needs them. In any
  /// order.
  std::vector<std::string> extensions = {};
  /// The file that belongs to the model's, where it does not lie beside it under its name: the .bin of an IR,
  /// the caffemodel of a Caffe network's prototxt, or the other way round. Not for a model in memory.
  std::string weights = {};
  /// Bounds for models of strangers: they hold while it is read, and for all that is compiled of it.
  ModelLimits limits = {};
  /// Cancels the reading: when a stop is requested, from any thread, Model's constructor or from_memory()
  /// frees what it has and throws Error(canceled), within 100 ms for most files (docs/untrusted-models.md
  /// names what takes longer). The model that was read is not concerned: Options::stop cancels its
  /// compilation.
  std::stop_token stop = {};
};

/// Makes a library of custom layers that is linked into the program known under a name. Thread-safe. Throws
/// Error(bad_call) for an empty name or a null pointer, and for a name that another function has.
LAMINA_API void register_extension(const std::string& name,
                                   int (*entry)(const lamina_host*, lamina_registrar*));

/// A model as read: ONNX, OpenVINO IR (.xml with its .bin beside it), Caffe (.prototxt with its .caffemodel
/// beside it, or the other way round), a frozen TensorFlow graph (.pb, .pbtxt), a graph of oneDNN Graph
/// (.json), or a compiled model that CompiledModel::save has written: that is compiled in no time with the
/// options that it was compiled with, which count where Options say nothing else. Immutable; copies are
/// cheap. Weights stay in the mapped file. Thread-safe.
class Model {
 public:
  /// Throws Error(bad_file) when the file is missing or damaged, and Error(unsupported) for a compiled model
  /// of another version. A model with unsupported operators can be read. Throws Error(bad_option) for a
  /// settable input that there is not, and for an operation that two extensions give; Error(bad_file) for an
  /// extension that cannot be loaded, Error(extension) for one that fails; Error(over_limit) for what is
  /// beyond ReadOptions::limits; Error(canceled) when ReadOptions::stop is requested. Files are mapped: one
  /// that is cut short while the model, or what was compiled of it, lives ends the process with SIGBUS. Where
  /// others may write to it, read it into memory and use from_memory().
  LAMINA_API explicit Model(const std::string& path, const ReadOptions& options = {});
  /// The same with ReadOptions::extensions: Model("model.onnx", {"libgate.so"}). A template, so that braces
  /// with names in them are ReadOptions.
  template <class Paths = std::vector<std::string>>
  requires std::same_as<Paths, std::vector<std::string>> Model(const std::string& path,
                                                               const Paths& extensions)
      : Model(path, ReadOptions{{}, extensions}) {}
  /// Reads a model from memory. Files are never looked for: what the model keeps elsewhere and is not among
  /// the bytes is Error(bad_file). Bytes of ModelBytes::owner that are a mapped file of the caller's have the
  /// same hazard as Model(path): the file must not be cut short.
  LAMINA_API static Model from_memory(const ModelBytes& bytes, const ReadOptions& options = {});

  LAMINA_API const std::vector<Port>& inputs() const;
  LAMINA_API const std::vector<Port>& outputs() const;
  /// What a request keeps from run to run (ReadValue and Assign of OpenVINO), by name; most models have none.
  LAMINA_API const std::vector<Port>& variables() const;
  /// The index of the input or output of that name; nothing when there is none.
  LAMINA_API std::optional<std::size_t> find_input(std::string_view name) const;
  LAMINA_API std::optional<std::size_t> find_output(std::string_view name) const;
  /// Texts that the file's maker left in it, by key (ONNX: metadata_props; IR: rt_info).
  LAMINA_API const std::map<std::string, std::string>& metadata() const;
  /// "ONNX", "OpenVINO IR", "Caffe", "TensorFlow", "oneDNN Graph"
  LAMINA_API const std::string& format() const;
  /// What the reader found odd but could read, a line each.
  LAMINA_API const std::vector<std::string>& warnings() const;
  /// One line per unsupported operator type, with its nodes; compiling refuses when there are any.
  LAMINA_API const std::vector<std::string>& unsupported() const;

 private:
  friend struct Inside;
  explicit Model(std::shared_ptr<const LoadedModel> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<const LoadedModel> impl_;
};

/// Time of one layer in the last run.
struct LayerTime {
  std::string name;    ///< of the layer that was left after fusing
  std::string kernel;  ///< "jit_avx512_1x1_f32"
  double microseconds = 0;
};

/// What an optimisation did.
struct Fusion {
  std::string rule;       ///< as Options::disable knows it
  std::size_t count = 0;  ///< times that it changed the graph
};

/// idle: nothing has run yet. queued: it waits for a stream, also one that was canceled and whose callback is
/// yet to be called. running: it has a stream; its callback is part of it. The state changes to done, failed
/// or canceled before wait() returns, and before the stream goes to the next request.
enum class RequestStatus : std::uint8_t { idle, queued, running, done, failed, canceled };

/// optimized_out: another layer does its work (LayerCounter::into), or it is not needed. not_run: nothing was
/// counted yet, or a branch was not taken.
enum class LayerStatus : std::uint8_t { executed, optimized_out, not_run };

/// A layer of the model's file, or a reorder that was put between two.
struct LayerCounter {
  std::string name = {};    ///< in the file; of a reorder "SOURCE_LAYOUT_LAYOUT_TARGET"
  std::string type = {};    ///< of the operation
  std::string kernel = {};  ///< "undef" unless executed
  std::string into = {};    ///< the layer that does its work; may be empty
  LayerStatus status = LayerStatus::not_run;
  /// Inferences that were counted, of all shapes; 0 unless executed. Averages are over these, so that rows
  /// add up to an inference: one in which nothing ran for the layer counts as 0. The least is of the others.
  std::uint64_t runs = 0;
  double last_us = 0, average_us = 0, min_us = 0;
  double cpu_us = 0;  ///< average processor time of the stream's thread
};

class CompiledModel;

/// One inference at a time of a compiled model, which it keeps alive: inputs, outputs and variables of its
/// own; memory between layers belongs to the streams. While an inference is under way (queued, running, or
/// its callback has not returned) every other function but wait(), cancel() and status() throws Error(busy)
/// and changes nothing; in its own callback setters and output() work, and start() begins the next one.
/// wait(), wait_for(), cancel() and status() may be called from any thread; the rest from one thread at a
/// time.
class Request {
 public:
  LAMINA_API Request(Request&&) noexcept;
  /// The one before goes as in the destructor.
  LAMINA_API Request& operator=(Request&&) noexcept;
  /// Cancels what is under way and waits for it, callback included; in the own callback it returns at once,
  /// and what the request has goes when that has returned. Never inside the own run(). Of a static request,
  /// once exit() has begun: leaves alone what another thread does with it.
  LAMINA_API ~Request();

  /// The tensor is shared, not copied, and only read; it must stay unchanged during run(). An empty tensor
  /// lets go of the one before. Throws Error(bad_input) when there is no such input, or when type or shape do
  /// not fit it.
  LAMINA_API void set_input(std::size_t index, Tensor tensor);
  LAMINA_API void set_input(std::string_view name, Tensor tensor);
  /// Gives memory for an output; an empty tensor: the request's own again. Throws Error(bad_input) when the
  /// tensor does not fit the output or is read-only. What depends on the inputs' shapes is found by run(),
  /// which throws it: a shape that differs, memory that overlaps that of another output or of an input.
  LAMINA_API void set_output(std::size_t index, Tensor tensor);
  LAMINA_API void set_output(std::string_view name, Tensor tensor);
  /// Runs one inference in the calling thread and the helpers of a stream; waits for a stream, first come,
  /// first served. Throws Error(bad_input) when an input is missing or the model cannot run on these shapes,
  /// Error(canceled), Error(busy) where it would wait for what it is called in, and what Options::progress
  /// throws. A run that throws leaves inputs and variables as they were, and no outputs until a run
  /// succeeds; the request can be used on. Calls no callback.
  LAMINA_API void run();
  /// Queues one inference and returns at once. Throws itself for missing inputs: nothing was started then.
  /// Without streams it infers, and calls the callback, before it returns.
  LAMINA_API void start();
  /// Until the request is at rest. Throws what the last inference threw, or else its callback, any
  /// exception; Error(busy) in the own callback or inference, Error(canceled) where the process ends first.
  LAMINA_API void wait();
  /// The same; false: still under way when the time is over. 0 asks.
  LAMINA_API bool wait_for(std::chrono::nanoseconds time);
  /// A queued inference does not begin, a running one ends in the midst of a layer or a loop, within 100 ms
  /// but for single calls of oneDNN and of custom layers: both with Error(canceled). One that is nearly
  /// through may end normally. The request can be used on. Returns at once; wait() waits for the end.
  LAMINA_API void cancel() noexcept;
  /// Called once for each start() that returned, when its inference has ended: with nullptr when it went
  /// well. On a thread of lamina's (without streams: the caller's), never inside cancel() or the destructor.
  /// It may use this and other requests, run() and wait() of others included. What it throws is logged, and
  /// thrown by wait(). Null: none.
  LAMINA_API void set_callback(std::function<void(std::exception_ptr)> callback);
  LAMINA_API RequestStatus status() const noexcept;
  /// Times every layer from the next inference on, or does so no more.
  LAMINA_API void set_profile(bool on);
  /// Layer by layer, in the order of the file, then reorders: of all inferences that were timed and went well
  /// since the last one that was not timed. Throws Error(bad_option) when nothing is collected.
  LAMINA_API std::vector<LayerCounter> counters() const;
  /// Result of the last run; overwritten by the next (clone() keeps it). Throws Error(bad_call) when nothing
  /// has run yet, Error(bad_input) after one that failed or was canceled.
  LAMINA_API const Tensor& output(std::size_t index) const;
  LAMINA_API const Tensor& output(std::string_view name) const;
  /// A copy of what the variable holds now. Throws Error(bad_input) when there is no such variable, or while
  /// its initial value is yet to be computed of the inputs of the first run.
  LAMINA_API Tensor variable(std::string_view name) const;
  /// Copies the value. Throws Error(bad_input) when there is no such variable, or when type or shape do not
  /// fit it.
  LAMINA_API void set_variable(std::string_view name, const Tensor& value);
  /// All variables have their initial values again, as in a new request: a new sequence begins.
  LAMINA_API void reset_state();
  /// Layer by layer of the last run, when it was timed (Options::profile, set_profile) and went well; else
  /// empty.
  LAMINA_API std::vector<LayerTime> layer_times() const;
  /// Bytes of memory between layers that the last run took of its stream.
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
  /// Throws Error(unsupported) that names the unsupported operator types, Error(bad_option) for an unknown
  /// rule's name or a value out of range, Error(canceled) when Options::stop is requested, Error(over_limit)
  /// for what is beyond Options::limits or the limits that the model was read with.
  LAMINA_API explicit CompiledModel(const Model& model, const Options& options = {});
  CompiledModel(const CompiledModel&) = default;
  CompiledModel(CompiledModel&&) noexcept = default;
  CompiledModel& operator=(const CompiledModel&) = default;
  CompiledModel& operator=(CompiledModel&&) noexcept = default;
  /// Streams, memory and plans go with the last of its copies and requests; those of static ones stay once
  /// exit() has begun, since other threads may be using them.
  LAMINA_API ~CompiledModel();
  LAMINA_API const std::vector<Port>& inputs() const;
  LAMINA_API const std::vector<Port>& outputs() const;
  LAMINA_API const std::vector<Port>& variables() const;
  LAMINA_API std::optional<std::size_t> find_input(std::string_view name) const;
  LAMINA_API std::optional<std::size_t> find_output(std::string_view name) const;
  /// The outputs for inputs of these shapes (in the model's order), found without running: -1 is left where a
  /// size depends on values. Throws Error(bad_input) when the model cannot run on them.
  LAMINA_API std::vector<Port> output_ports(const std::vector<Dims>& input_shapes) const;
  LAMINA_API Request create_request() const;
  /// Convenience: one inference on a request from a pool inside, which keeps neither inputs nor results:
  /// variables begin with their initial values. Inputs in the model's order.
  LAMINA_API std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
  /// The same for models with one input: the first output.
  LAMINA_API Tensor operator()(const Tensor& input) const;
  /// How often each optimisation fired.
  LAMINA_API std::vector<Fusion> fusions() const;
  /// Requests that run at once, at most; 0: the callers' threads do the work, any number at once.
  LAMINA_API int streams() const;
  /// Threads of one stream.
  LAMINA_API int threads() const;
  /// Requests that keep all streams busy.
  LAMINA_API std::size_t optimal_requests() const;
  /// The value in use of an option or a fact by its key. Throws Error(bad_option) that names the nearest key.
  LAMINA_API std::string property(std::string_view key) const;
  LAMINA_API std::vector<Property> properties() const;
  /// Bytes of packed weights so far.
  LAMINA_API std::size_t weight_memory() const;
  /// Writes the model with what was made of it so far (plans, packed weights) into a file that Model(path)
  /// opens, on processors with the instruction set that is used here. Completely or not at all. Thread-safe.
  /// Throws Error(bad_file) when it cannot be written, or the model's own file was changed meanwhile.
  LAMINA_API void save(const std::string& path) const;

 private:
  friend struct Inside;
  explicit CompiledModel(std::shared_ptr<const Compiled> impl);
  std::shared_ptr<const Compiled> impl_;
  std::shared_ptr<RequestPool> pool_;
};

/// Cancels what was started in all models, and joins every thread that lamina made or caused; they come back
/// at the next use. What another thread is in run() of is waited for, and canceled after 2 seconds. run()
/// that is called meanwhile waits, start() throws Error(canceled). After it a library that links lamina may
/// be unloaded. Throws Error(busy) in a callback or a custom layer, and while another thread is in it. Does
/// nothing once exit() has begun to take down what lamina has.
LAMINA_API void shutdown();

/// "lamina 0.1.0"
LAMINA_API std::string version();

}  // namespace lamina
