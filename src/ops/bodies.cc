#include "ops/bodies.h"

#include "ops/require.h"

namespace lamina::control {

namespace {

constexpr int kDeepest = 64;      // bodies in bodies
constexpr int kDeepestLoops = 8;  // loops in loops: each may infer its body up to four times

/// Counts the bodies that are being inferred inside of each other.
class Depth {
 public:
  explicit Depth(bool of_loop) : of_loop_(of_loop) {
    if (bodies_ >= kDeepest) fail(ErrorCode::over_limit, "bodies are nested more than {} deep", kDeepest);
    if (of_loop && loops_ >= kDeepestLoops)
      fail(ErrorCode::over_limit, "loops are nested more than {} deep", kDeepestLoops);
    ++bodies_;
    loops_ += of_loop ? 1 : 0;
  }
  ~Depth() {
    --bodies_;
    loops_ -= of_loop_ ? 1 : 0;
  }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  bool of_loop_;
  static thread_local int bodies_, loops_;
};
thread_local int Depth::bodies_ = 0;
thread_local int Depth::loops_ = 0;

/// What is true of both shapes.
Shape common(const Shape& a, const Shape& b) {
  if (!a.ranked() || !b.ranked() || a.rank() != b.rank()) return Shape();
  Shape out = a;
  for (std::size_t i = 0; i < a.rank(); ++i)
    if (!a[i].same(b[i])) out[i] = Dim();
  return out;
}

}  // namespace

std::vector<TensorType> types_of_results(const InferContext& c, const Graph& body,
                                         const std::vector<TensorType>& parameters, bool of_loop) {
  const Depth depth(of_loop);
  c.require(body.inputs().size() == parameters.size(), "a body has {} parameters, wanted {}",
            body.inputs().size(), parameters.size());
  for (const auto& r : body.results())
    c.require(r.value.valid(), "result \"{}\" of a body has no value", r.name);
  Graph copy = body;
  for (std::size_t i = 0; i < parameters.size(); ++i) copy.set_type(copy.inputs()[i], parameters[i]);
  copy.infer_types();
  std::vector<TensorType> out;
  for (const auto& r : copy.results()) out.push_back(copy.type(r.value));
  return out;
}

TensorType common_type(const InferContext& c, const TensorType& a, const TensorType& b,
                       std::string_view what) {
  if (a.element == ElementType::undefined || b.element == ElementType::undefined) return {};
  c.require(a.element == b.element, "{} has types {} and {}, wanted the same", what, name_of(a.element),
            name_of(b.element));
  return {a.element, common(a.shape, b.shape)};
}

void require_condition(const InferContext& c, std::size_t i) {
  const auto e = c.element(i);
  c.require(e == ElementType::boolean || e == ElementType::undefined || is_integer(e),
            "the condition has type {}, wanted boolean", name_of(e));
  require_one_element(c, i, "the condition");
}

bool is_true(const Tensor& t) {
  if (t.size() != 1)
    fail(ErrorCode::bad_input, "a condition has shape {}, wanted one element", to_string(t.shape()));
  return to_doubles(t)[0] != 0;
}

}  // namespace lamina::control
