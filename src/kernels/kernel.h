#pragma once
/// Kernels make offers for nodes; the plan picks one offer per node and makes it executable.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// How a tensor lies in memory. channels_last: N, spatial..., C (rank 3 and more); plain: as the shape says.
/// channels_last_bits: booleans as bits, which only some kernels read and write
/// (kernels/bits.h); nothing is copied from it or to it while a plan runs.
enum class Layout : std::uint8_t { plain, channels_last, channels_last_bits };
std::string_view name_of(Layout layout);
/// Strides, in elements, of the logical axes of a dense tensor in that layout; not of bits.
Dims strides_of(const Dims& shape, Layout layout);
/// Bytes of a dense tensor in that layout.
std::size_t memory_bytes(ElementType type, const Dims& shape, Layout layout);

/// A node with everything about it known: static shapes, constants. Valid as long as the graph is.
class NodeView {
 public:
  NodeView(const Graph& graph, NodeId id) : graph_(graph), node_(graph.node(id)), id_(id) {}
  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  NodeId id() const { return id_; }
  template <class T>
  const T* op() const {
    return node_.op.as<T>();
  }
  std::size_t inputs() const { return node_.inputs.size(); }
  bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i].valid(); }
  ElementType element(std::size_t i) const { return graph_.type(node_.inputs[i]).element; }
  Dims dims(std::size_t i) const { return graph_.type(node_.inputs[i]).shape.sizes(); }
  std::size_t rank(std::size_t i) const { return graph_.type(node_.inputs[i]).shape.rank(); }
  /// The input's constant (perhaps unaligned), or null.
  const Tensor* constant(std::size_t i) const { return has(i) ? graph_.constant(node_.inputs[i]) : nullptr; }
  std::size_t outputs() const { return node_.outputs.size(); }
  ElementType out_element(std::size_t i = 0) const { return graph_.type(node_.outputs[i]).element; }
  Dims out_dims(std::size_t i = 0) const { return graph_.type(node_.outputs[i]).shape.sizes(); }
  /// Every input and output is of this type (absent inputs aside).
  bool all(ElementType type) const;

 private:
  const Graph& graph_;
  const Node& node_;
  NodeId id_;
};

/// Pointers of one run. Absent inputs, and constants that were consumed while making, are null.
struct RunArgs {
  const void* const* in;
  void* const* out;
  void* scratch;
};

/// A kernel bound to the pointers of one request. Not thread-safe.
class Step {
 public:
  virtual ~Step() = default;
  /// Called before the first run, and again whenever a pointer changes. Pointers stay valid until the next
  /// call.
  virtual void bind(const RunArgs& args) = 0;
  virtual void run() = 0;
};

/// A kernel made for one node: immutable, shared by requests and threads.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual std::unique_ptr<Step> step() const = 0;
};

/// Makes an Executable of a function that can run on any pointers.
std::unique_ptr<Executable> executable(std::function<void(const RunArgs&)> run);

/// Packed constants, shared by all plans and requests of a model. Thread-safe.
class WeightStore {
 public:
  virtual ~WeightStore() = default;
  using Make = std::function<Tensor(const Tensor& source)>;
  /// The packing of `source` under `key` (kernel and packing format); made on first use, of the source
  /// without its denormal numbers. `make` may give back what it gets: such weights are used as they lie.
  virtual Tensor packed(const Tensor& source, const std::string& key, const Make& make) = 0;
  /// The same for constants that are no weights: all their numbers stay.
  virtual Tensor moved(const Tensor& source, const std::string& key, const Make& make) = 0;
};

/// What the plan has decided about the tensors of a node when its kernel is made.
struct MakeContext {
  WeightStore& weights;
  /// Elements from one pixel of a channels-last tensor to the next when it is a slice of a wider one's
  /// channels; 0 (or missing): dense. Only where the offer allows it (wide_inputs, wide_outputs).
  std::vector<std::int64_t> input_rows = {}, output_rows = {};
  /// Inputs that lie in their place in the output already (Concat); only where the offer allows it.
  std::vector<bool> in_place = {};
  std::int64_t input_row(std::size_t i) const { return i < input_rows.size() ? input_rows[i] : 0; }
  std::int64_t output_row(std::size_t i = 0) const { return i < output_rows.size() ? output_rows[i] : 0; }
};

/// `output` may be written over `input` (same bytes, element i is read before or when element i is written).
struct InPlace {
  std::size_t input = 0, output = 0;
};

struct Offer {
  std::string label;  ///< in the field's style: "jit_avx512_1x1_f32", "native_transpose", "reference"
  std::vector<Layout> inputs;   ///< one per node input
  std::vector<Layout> outputs;  ///< one per node output
  std::vector<InPlace> in_place;
  std::vector<std::size_t> consumed;  ///< constant inputs that the executable does not read at run time
  /// Inputs and outputs that may be slices of a wider tensor's channels, see MakeContext.
  std::vector<std::size_t> wide_inputs = {}, wide_outputs = {};
  bool skips_in_place = false;    ///< leaves out inputs that MakeContext::in_place names
  std::size_t scratch = 0;        ///< bytes, 64-byte aligned
  std::size_t stages = SIZE_MAX;  ///< how many stages of the epilogue it takes, from the front
  bool is_view = false;           ///< output 0 is input 0's memory (Reshape): nothing runs
  bool last_resort = false;       ///< taken only when nothing else offers
  double cost = 0;                ///< estimated microseconds on one thread
  std::function<std::unique_ptr<Executable>(MakeContext&)> make;
};

/// What the kernels say about one node.
struct Answers {
  std::vector<Offer> offers;
  struct Refusal {
    std::string kernel, reason;
  };
  std::vector<Refusal> refusals;
  template <class... A>
  void refuse(std::string kernel, fmt::format_string<A...> text, A&&... args) {
    refusals.push_back({std::move(kernel), fmt::format(text, std::forward<A>(args)...)});
  }
};

/// A source of offers for some operators; appends offers or refusals.
struct Kernel {
  std::string name;
  std::function<bool(const Op&)> takes;
  std::function<void(const NodeView&, Answers&)> offer;
};

/// All kernels, the reference one last.
const std::vector<Kernel>& kernels();
/// Asks every kernel that takes the node's operator. The reference kernel always offers.
Answers ask_kernels(const NodeView& view);

/// Copies a dense tensor from one layout to another, neither of bits.
std::unique_ptr<Executable> make_reorder(ElementType type, const Dims& shape, Layout from, Layout to);
/// The tensor's bytes in another layout, now. As bits they are u8; what reads these is bits::unpacked().
Tensor reordered(const Tensor& tensor, Layout from, Layout to);
/// Estimated microseconds of that copy on one thread.
double reorder_cost(ElementType type, const Dims& shape);

}  // namespace lamina
