#pragma once
/// What became of each layer of a model, and why: fusions, kernels, what was refused, and times.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/export.h"
#include "lamina/model.h"
#include "lamina/options.h"
#include "lamina/progress.h"
#include "lamina/tensor.h"

namespace lamina {

/// What became of a layer of the model's file.
enum class LayerFate : std::uint8_t {
  runs,      ///< it is a step of its own, perhaps with other layers in it
  fused,     ///< it runs in the step of another layer
  free,      ///< nothing runs: the same memory with another shape
  removed,   ///< an optimisation took it away, or no output depends on it
  constant,  ///< it is the file's way to hold a constant: there never was an operator
  body,      ///< it is in a body of control flow
  variable,  ///< it reads or writes a variable, which the request keeps
  waiting,   ///< it comes after a shape that is known at run time only: it is not planned
  untaken,   ///< it is in the branch of an If that is not taken
};
/// "runs", "fused", ...
LAMINA_API std::string_view name_of(LayerFate fate) noexcept;

/// What an optimisation did or refused at a node.
struct RuleEvent {
  /// removed: it took a layer away.
  enum class Kind : std::uint8_t { fired, refused, removed };
  Kind kind = Kind::fired;
  std::string rule;  ///< its name for Options::disable
  std::string node;  ///< as it was called then
  std::string text;  ///< what the node became, why the rule refused, or why the layer went
};
/// "fuse-linear at 'add': refused: its result is also read by 'sum'"
LAMINA_API std::string to_string(const RuleEvent& event);

/// A part of an estimated time: work of one kind.
struct CostPart {
  std::string family;  ///< "jit_conv", "vector_light", "transpose"
  double calls = 0, work = 0, bytes = 0;
  double us = 0;  ///< all of it
};

/// A kernel that could have run a node, and was estimated to be slower.
struct RejectedKernel {
  std::string kernel;      ///< with the layout of its result: "native_1x1 (channels_last)"
  double estimate_us = 0;  ///< with the reorders that it needs
  std::vector<CostPart> parts;
};

/// A kernel that cannot run a node.
struct RefusingKernel {
  std::string kernel, reason;
};

/// How the kernel of a node was chosen.
struct KernelChoice {
  double estimate_us = 0;  ///< of the chosen kernel on one thread, with the reorders that it needs
  std::vector<CostPart> parts;
  std::string forced;  ///< the part of Options::force that is for this node, or empty
  std::vector<RejectedKernel> rejected;
  std::vector<RefusingKernel> refusing;
};

/// What a node reads or writes.
struct NodeTensor {
  std::string type;  ///< "f32[1,3,224,224]"; empty: an optional input that is not given
  std::string name;
  bool constant = false;
};

/// A node of the plan, which may stand for several layers.
struct NodeExplanation {
  std::string name;
  std::string operators;                  ///< "Convolution+Relu"
  std::string kernel, layout, precision;  ///< empty if nothing runs for it
  std::string idle;                       ///< why nothing runs for it; empty if a kernel does
  double flops = 0, bytes = 0;            ///< of the arithmetic, and read and written
  double us = 0, share = 0;               ///< measured, and of the whole inference; 0 without times
  std::size_t scratch = 0;                ///< bytes that the kernel needs while it runs
  std::vector<NodeTensor> inputs, outputs;
  /// Nothing for nodes that need no choice.
  std::optional<KernelChoice> choice = {};
};

/// The part of a layer in a node.
struct LayerNode {
  std::shared_ptr<const NodeExplanation> node;  ///< never null
  bool chief = false;                           ///< the node is named after this layer
};

/// A layer of the model's file.
struct LayerExplanation {
  std::string name;
  std::string type;  ///< of the operation, as the file says
  LayerFate fate = LayerFate::removed;
  std::string text;                       ///< the kernel of a layer that runs; of others the fate in words
  std::string into;                       ///< of a fused layer: the layer whose step it is in
  std::string rule;                       ///< that fused or removed it, or empty
  std::string reason;                     ///< why this kernel, or why the layer is no step of its own
  std::string kernel, layout, precision;  ///< of the layer's step; empty unless it runs
  std::size_t steps = 0;                  ///< that are named after the layer: some need several
  double estimate_us = 0;                 ///< of these steps, on one thread
  double us = 0, share = 0;  ///< of these steps: measured, and of the whole inference; 0 without times
  bool exempt = false;       ///< no optimisation touches it (Options::exempt)
  /// Other layers in the same nodes. Of very many the first ones, and then the number of the others.
  std::vector<std::string> companions;
  std::vector<LayerNode> nodes;
  std::vector<RuleEvent> history;  ///< what optimisations did with it, in order
};

/// A step of the inference, in the order of execution: a kernel, or a copy between layouts.
struct StepExplanation {
  std::string name;  ///< of the layer that it is named after
  std::string operators, kernel, layout, precision;
  bool moves = false;        ///< it copies, between layouts or into another tensor
  double estimate_us = 0;    ///< on one thread
  double us = 0, share = 0;  ///< measured, and of the whole inference; 0 without times
  double flops = 0, bytes = 0;
};

/// What an optimisation did in all.
struct RuleCount {
  std::string rule;
  std::size_t hits = 0, refusals = 0;
  std::string left_out;  ///< why the rule of a library of custom layers was left out, or empty
};

/// A rule of a library of custom layers.
struct ExtensionRule {
  std::string rule;
  std::size_t fired = 0, refused = 0;
  std::string first_refusal;  ///< "at 'gate': ..."; empty if it refused nothing
  std::string left_out;       ///< why it was left out, or empty
};

/// An element-wise operator that is a step of its own.
struct UnfusedStep {
  std::string node, operators, kernel;
  std::vector<std::string> layers;   ///< of the file
  std::string behind;                ///< the convolution, product or pooling that it could join; or empty
  std::vector<std::string> reasons;  ///< why it did not, a sentence each
  double us = 0;                     ///< measured; 0 without times
};

/// The machine that the plan is for.
struct PlannedMachine {
  std::string name;   ///< of the processor; may be empty
  std::string level;  ///< of the instruction sets that kernels use: "sse41", "avx2", "avx512"
  /// The level of oneDNN's kernels there, and of those that can be shown here.
  std::string library_level, shown_level;
  std::size_t l1 = 0, l2 = 0, l3 = 0;  ///< bytes of a core's caches
  int threads = 1;                     ///< of a stream
  bool described = false;              ///< by ExplainOptions::machine
};

/// What a number of streams promises.
struct ThroughputForecast {
  int streams = 1, threads_per_stream = 1;
  double per_second = 0;  ///< inferences; 0: not known
  bool used = false;      ///< the model has this number of streams
};

/// Sums over an inference.
struct ExplainTotals {
  std::size_t steps = 0, moves = 0;  ///< kernels; reorders and copies
  double estimate_us = 0;            ///< of all, on one thread
  std::size_t runs = 0;              ///< that were measured; 0: there are no times
  double us = 0;                     ///< of an inference; with what passes between the steps
  double steps_us = 0, moves_us = 0;
};

/// A convolution or matrix product, with constant weights or one that multiplies 8 bits anyway: kernels' own
/// estimates on one thread, without reorders, in microseconds. 0: no kernel takes it in that type.
struct ProductCost {
  std::string layer;
  ElementType runs = ElementType::f32;  ///< the type that it multiplies in the plan
  double f32 = 0, bf16 = 0, i8 = 0;     ///< i8: from u8 and i8 to u8, scales included

  bool in_8_bits() const { return bits_of(runs) == 8; }
  /// The estimate in the type in which the product runs.
  double now() const { return in_8_bits() ? i8 : runs == ElementType::bf16 ? bf16 : f32; }
};

/// Five sentences, and a command to try.
struct ModelVerdict {
  std::string time;      ///< how long a run takes, and which layers take most of it
  std::string fusion;    ///< what runs on its own and could run in another layer's step, and why it does not
  std::string integers;  ///< whether 8 bits pay on this machine, and which layers do not profit
  std::string bf16;      ///< whether bf16 pays, or would pay
  std::string next;      ///< what to try
  std::string command;   ///< `next` as a line for a shell
  std::vector<ProductCost> products;  ///< the estimates on which `integers` and `bf16` rest
};

/// What one optimisation did at one layer.
struct RuleAnswer {
  std::string model, rule, layer;
  std::vector<RuleEvent> history;  ///< at the layer and at the readers of its result
  std::vector<std::string> plan;   ///< what the plan decided against fusions there, a sentence each
  std::string text;                ///< without a history: why there is none, in a sentence

  /// The document of `lamina explain --why --json`.
  LAMINA_API std::string json() const;
};

struct ExplainOptions {
  /// In the model's order. Without times their shapes are used, and values where shapes depend on these.
  std::vector<Tensor> inputs = {};
  /// The shapes of the inputs instead of `inputs`, where nothing runs. Neither: the sizes of the file, or
  /// those that a compiled model's file was compiled for.
  std::vector<Dims> shapes = {};
  /// Runs the model on `inputs` for about that many seconds, at least three times, and gives times. Nothing:
  /// the model is only planned.
  std::optional<double> seconds = {};
  /// Plans for another machine, which a file of `lamina version --json` describes: its path. Nothing can run
  /// then. If that machine has a lower instruction set, this fixes it for the whole process, as
  /// Options::max_isa does.
  std::string machine = {};
  /// What documents and the verdict's command call the model; empty: its path.
  std::string model = {};
  /// Options for the verdict's command, in pairs: {"--threads", "4"}.
  std::vector<std::string> command_options = {};
  /// Gets the progress of compiling, if the model has to be compiled.
  ProgressCallback progress = {};
  /// Cancels the work, which then throws Error(canceled), and the later work of the explanation.
  std::stop_token stop = {};
};

/// Which part of an explanation a document has.
struct ExplainDocument {
  /// Only this layer, without the verdict. Nothing: all layers.
  std::optional<std::string> layer = {};
  bool plans = false;  ///< the text of the plans instead of the verdict
};

/// The facts are members; the functions find out more. They are thread-safe, and throw Error(bad_call) for an
/// explanation that explain() has not made, and Error(canceled) when ExplainOptions::stop is requested. An
/// explanation keeps the compiled model and its plans.
struct Explanation {
  class State;  // internal

  std::string model;  ///< as ExplainOptions calls it
  PlannedMachine machine;
  std::vector<std::string> precision_notes;  ///< what happened to the model's precision, a sentence each
  std::vector<LayerExplanation> layers;      ///< all of the file, in its order
  std::vector<StepExplanation> steps;        ///< in the order of execution
  std::vector<RuleCount> rules;              ///< by name
  std::map<std::string, std::size_t> fused_layers;  ///< layers in other layers' nodes, by the rule
  std::vector<ExtensionRule> extension_rules;
  std::vector<UnfusedStep> alone;
  std::vector<ThroughputForecast> forecast;  ///< where the number of streams was chosen by it
  ExplainTotals totals;

  /// True if there was a run, which gave times.
  bool timed() const { return totals.runs > 0; }
  /// The layers of that name; else those in the node of the plan that has the name. Throws Error(bad_input),
  /// which names the nearest layer, if there are none. They are members of this object.
  LAMINA_API std::vector<const LayerExplanation*> layers_named(std::string_view name) const;
  /// Found at the first call, which asks all kernels about other precisions.
  LAMINA_API ModelVerdict verdict() const;
  /// Throws Error(bad_option) for an unknown rule, Error(bad_input) for an unknown layer.
  LAMINA_API RuleAnswer why(std::string_view rule, std::string_view layer) const;
  /// The text of the plan: tensors with layouts and places, steps with kernels. If shapes are found while the
  /// model runs, there are several plans, one after the other.
  LAMINA_API std::vector<std::string> plans() const;
  /// A page of HTML about the rewriting, with a drawing of each rewrite. Rewrites the model once more.
  LAMINA_API std::string rewriting_page(const ProgressCallback& progress = nullptr) const;
  /// The document of `lamina explain --json`. Throws as layers_named() does.
  LAMINA_API std::string json(const ExplainDocument& part = ExplainDocument()) const;

 private:
  friend class Explaining;  // internal
  std::shared_ptr<const State> state_;
};

/// In which types the layers of the last run computed: "bf16: 52 of 57 layers; f32: 5", and why not in what
/// was asked for. Before a run no layer is counted. Throws Error(busy) while the request runs.
LAMINA_API std::string precision_used(const Request& request);

/// Checks names for Explanation::why() and layers_named() before a model is compiled. Throws Error(bad_input)
/// for a name that no layer of the model, and no node that is made of its layers, can have.
LAMINA_API void require_layer(const Model& model, std::string_view name);
/// Throws Error(bad_option) for a name that no optimisation has.
LAMINA_API void require_rule(const Model& model, std::string_view name);

/// Explains how the model runs. A model that was loaded from a compiled file or a cache is compiled once
/// more, quietly: what was chosen, and why, is not in such files. Thread-safe. Throws Error(bad_input) for
/// inputs and shapes that do not fit, or are missing; Error(bad_option); Error(bad_file) for a machine that
/// cannot be read, or a compiled model's file without weights; Error(over_limit), Error(canceled), and what
/// Request::run() throws.
LAMINA_API Explanation explain(const CompiledModel& model, const ExplainOptions& options = {});
/// Compiles the model with these options, and explains it. Their progress and stop count where ExplainOptions
/// has none. Throws what CompiledModel throws, too.
LAMINA_API Explanation explain(const Model& model, const Options& options = {},
                               const ExplainOptions& explain_options = {});

}  // namespace lamina
