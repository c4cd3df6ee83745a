#pragma once
/// Operators as values: what every operator can do, and the handle `Op` that nodes hold.
///
/// An operator is a struct with fields. It declares `static constexpr OpInfo info`, names its fields once in
/// `template <class V> void visit(V& v) { v("strides", strides); ... }`, and has `infer(InferContext&) const`
/// and `evaluate(EvalContext&) const`. Printing, parsing, equality and file reading derive from visit().
/// Register it with Registry::add<T>() in its family's file (src/ops). What else there is to say of some
/// operators are hooks, found where the struct has them:
///   permute(PermuteContext&)           Transposes may go past it (graph/permute.h)
///   shape_value(ShapeValueContext&)    it computes with sizes (graph/shape_value.h)
///   work(const WorkContext&)           how much it computes (graph/work.h)
///   decompose(Graph&, const Node&)     it stands for several operators (ops/decompose.h)
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/id.h"
#include "graph/shape.h"

namespace lamina {

class Graph;
class InferContext;
class EvalContext;
class PermuteContext;
class ShapeValueContext;
class WorkContext;
struct NodeWork;
struct Node;

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;

/// Value of an attribute. Enumerations are strings here.
using Attribute =
    std::variant<bool, std::int64_t, double, std::string, Ints, Floats, Strings, ElementType, Shape, Tensor>;
std::string to_string(const Attribute& value);

/// The owner of a field in visit(). OpenVINO's files cannot set lamina's own.
enum class Owner : std::uint8_t { openvino, lamina };

struct NamedAttribute {
  std::string name;
  Attribute value;
  Owner owner = Owner::openvino;
};

/// What rules and kernels may know of an operator without knowing which one it is.
enum class Trait : std::uint32_t {
  none = 0,
  unary_elementwise = 1,   ///< one output element per element of input 0; further inputs are parameters
  binary_elementwise = 2,  ///< two inputs, numpy broadcasting
  nary_elementwise = 4,    ///< all inputs broadcast (Select, FakeQuantize, PRelu, ...)
  elementwise = 7,         ///< any of the above
  host = 8,                ///< a compute node: what follows it is best done in its epilogue
  commutative = 16,
  keeps_values = 32,      ///< the same elements in the same order under another shape (Reshape, Squeeze, ...)
  epilogue = 64,          ///< may own an epilogue body
  impure = 128,           ///< random numbers, state: never folded or merged
  data_dependent = 256,   ///< output shapes depend on values that are not shapes
  control_flow = 512,     ///< owns bodies that it runs
  keeps_elements = 1024,  ///< each element arrives once, wherever it goes (Transpose, DepthToSpace, ...)
  moves = keeps_values | keeps_elements,
  reads_part = 2048,   ///< of input 0 no more than it gives (Gather, Slice, ...)
  weights = 4096,      ///< input 1 is combined with all of input 0 by itself: kernels pack it
  adopted = 8192,      ///< old IR files call it an extension or experimental, though it is of an ordinary set
  selects = 1 << 14,   ///< gives elements of its operands, bounds, or yes and no: nothing is rounded
  levels = 1 << 15,    ///< rounds to levels: where the rounding before it decides, to the next one
  sums = 1 << 16,      ///< adds elements of input 0, with weights of its own that are not negative
  products = 1 << 17,  ///< adds products of elements of inputs 0 and 1
  one_zero = 1 << 18,  ///< gives the same for -0 and +0
  curve = 1 << 19,     ///< takes an exponential, a logarithm or the like of each element
  divides = 1 << 20,   ///< divides each element
  counts_boxes = 1 << 21,  ///< how many boxes come out depends on their scores
};
constexpr Trait operator|(Trait a, Trait b) { return Trait(std::uint32_t(a) | std::uint32_t(b)); }
constexpr bool has(Trait set, Trait wanted) { return (std::uint32_t(set) & std::uint32_t(wanted)) != 0; }

/// What an operator does, in broad terms: for those who draw and count.
enum class OpFamily : std::uint8_t {
  by_traits,  ///< see Op::family()
  convolution,
  matmul,
  activation,
  arithmetic,
  normalization,
  pooling,
  reduction,
  movement,
  shape,
  quantization,
  recurrent,
  detection,
  control,
  unknown,
  other
};

inline constexpr int kMany = 1 << 20;

struct OpInfo {
  std::string_view name;
  int min_inputs = 0;
  int max_inputs = 0;  ///< without the extra inputs of an epilogue; kMany: any number
  int outputs = 1;     ///< kMany: as many as the node has
  Trait traits = Trait::none;
  std::string_view doc = "";  ///< one line
  /// The first of OpenVINO's operation sets that has it, by this name; 0: none, IR files cannot name it.
  int opset = 0;
  OpFamily family = OpFamily::by_traits;
  /// What constants among its inputs are called in drawings, a word each: "weights weights bias".
  std::string_view roles = "";
};

/// Names of an enumeration's values, in order: specialise with
/// `template <> inline constexpr std::array enum_names<PadMode> = {std::string_view("constant"), ...};`
template <class E>
inline constexpr std::array<std::string_view, 0> enum_names{};

/// The interface behind Op; implemented once by OpModel.
class AnyOp {
 public:
  virtual ~AnyOp() = default;
  virtual const OpInfo& info() const = 0;
  virtual const void* fields() const = 0;                              ///< the struct
  virtual const void* type() const = 0;                                ///< one address per operator struct
  virtual std::vector<NamedAttribute> attributes() const = 0;          ///< all, in declaration order
  virtual std::vector<NamedAttribute> changed_attributes() const = 0;  ///< those that differ from the default
  /// Sets one by name (for enumerations a string). Throws Error when there is none or the kind does not fit.
  virtual void set(std::string_view name, const Attribute& value) = 0;
  virtual std::unique_ptr<AnyOp> copy() const = 0;
  virtual void infer(InferContext&) const = 0;
  virtual void evaluate(EvalContext&) const = 0;
  /// A name of the moment, for operators whose name is data (Opaque).
  virtual std::string display_name() const { return std::string(info().name); }
  /// Says how the operator looks with its axes permuted (graph/permute.h), or why it cannot be said.
  virtual Verdict permute(PermuteContext&) const = 0;
  /// The operator's result as sizes, for operators that compute with sizes.
  virtual std::optional<std::vector<Dim>> shape_value(ShapeValueContext&) const = 0;
  /// Operations without its epilogue; shapes are known.
  virtual NodeWork work(const WorkContext&) const = 0;
  /// Whether that can be said of the node with other operators, and the nodes that say it, added behind the
  /// others: in their order of execution, the last with the node's name and epilogue.
  virtual bool can_decompose(const Graph&, const Node&) const = 0;
  virtual std::vector<NodeId> decompose(Graph&, const Node&) const = 0;
};

/// An operator with its attributes: an immutable value, cheap to copy.
class Op {
 public:
  Op() = default;
  explicit Op(std::shared_ptr<const AnyOp> op) : op_(std::move(op)) {}
  template <class T>
  requires requires { T::info; }
  Op(T op);  // NOLINT: a struct of attributes is an operator

  bool valid() const { return op_ != nullptr; }
  const OpInfo& info() const { return op_->info(); }
  std::string name() const { return op_->display_name(); }
  bool has(Trait t) const { return lamina::has(info().traits, t); }
  OpFamily family() const;  ///< that of `info`, else what its traits say
  template <class T>
  const T* as() const;  ///< null when it is another operator
  template <class T>
  bool is() const {
    return as<T>() != nullptr;
  }
  const AnyOp& operator*() const { return *op_; }
  const AnyOp* operator->() const { return op_.get(); }
  /// Same operator, same attributes.
  bool operator==(const Op& other) const;

 private:
  std::shared_ptr<const AnyOp> op_;
};

bool equal_attribute(const Attribute& a, const Attribute& b);
/// Throws: "Convolution has no attribute 'x'. It has: ..."
[[noreturn]] void unknown_attribute(const AnyOp& op, std::string_view name);
[[noreturn]] void wrong_attribute(const AnyOp& op, std::string_view name, const Attribute& value,
                                  std::string_view wanted);

namespace detail {
/// One address per operator.
template <class T>
inline constexpr char type_address = 0;
}  // namespace detail

/// An operator of a struct. Defined in graph/op_model.h and compiled once per operator, where
/// Registry::add<T>() is called: what uses operators stays light.
template <class T>
std::shared_ptr<const AnyOp> make_op(T op);

template <class T>
requires requires { T::info; }
Op::Op(T op) : op_(make_op<T>(std::move(op))) {}

template <class T>
const T* Op::as() const {
  if (!op_ || op_->type() != &detail::type_address<T>) return nullptr;
  return static_cast<const T*>(op_->fields());
}

/// All operators by name. The one of lamina's own operators is operators() (src/ops/operators.h).
class Registry {
 public:
  template <class T>
  void add();  ///< defined in graph/op_model.h
  void add(std::shared_ptr<const AnyOp> prototype);
  /// The operator with default attributes, null when there is none.
  const AnyOp* find(std::string_view name) const;
  std::vector<std::string> names() const;  ///< sorted
  /// Nearest known name, for "did you mean".
  std::string nearest(std::string_view name) const;

 private:
  std::map<std::string, std::shared_ptr<const AnyOp>, std::less<>> ops_;
};

}  // namespace lamina
