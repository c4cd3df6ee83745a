/// A product of joined channels whose parts have scales of their own is the sum of a product of each.
#include <algorithm>
#include <cstring>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "rewrite/driver.h"
#include "rules/int8.h"
#include "rules/rules.h"
#include "rules/stored_weights.h"
#include "rules/weights.h"

namespace lamina {
namespace {

constexpr std::size_t kMostParts = 4;

/// What each part multiplies.
struct Parts {
  std::vector<ValueId> sources;
  std::vector<Tensor> numbers;  ///< of the weights
  StoredWeights stored;
};

/// The axes along which channels are joined, and along which the weights have them.
struct Axes {
  std::size_t joined, weights;
};

std::optional<Axes> axes_of(const Graph& g, const Node& product) {
  const auto &x = g.type(product.inputs[0]).shape, &w = g.type(product.inputs[1]).shape;
  if (!x.ranked() || !w.ranked()) return std::nullopt;
  if (const auto* op = product.op.as<Convolution>())
    return op->groups == 1 ? std::optional(Axes{1, 1}) : std::nullopt;
  const auto* op = product.op.as<MatMul>();
  if (!op || op->transpose_a || w.rank() != 2 || x.rank() < 2) return std::nullopt;
  return Axes{x.rank() - 1, op->transpose_b ? std::size_t{1} : 0};
}

/// Elements [begin, begin + count) along an axis, of numbers of 8 bits.
Tensor cut(const Tensor& whole, std::size_t axis, std::int64_t begin, std::int64_t count) {
  Dims dims = whole.shape();
  std::size_t inner = 1, outer = 1;
  for (std::size_t i = 0; i < dims.size(); ++i)
    (i < axis ? outer : inner) *= static_cast<std::size_t>(i == axis ? 1 : dims[i]);
  const auto line = static_cast<std::size_t>(dims[axis]) * inner,
             part = static_cast<std::size_t>(count) * inner;
  dims[axis] = count;
  Tensor out(whole.element_type(), dims);
  for (std::size_t o = 0; o < outer; ++o)
    std::memcpy(out.raw() + o * part, whole.raw() + o * line + static_cast<std::size_t>(begin) * inner, part);
  return out;
}

/// No scale or zero point of the weights lies along that axis.
bool scaled_elsewhere(const Graph& g, const StoredWeights& stored, const Node& product, std::size_t axis) {
  const auto rank = g.type(product.inputs[1]).shape.rank();
  for (const auto id : stored.nodes) {
    const Node& n = g.node(id);
    const auto* dequantize = n.op.as<Dequantize>();
    if (dequantize && dequantize->block_size != 0) return false;
    for (std::size_t i = 1; i < n.inputs.size(); ++i) {
      const auto* t = n.inputs[i].valid() ? g.constant(n.inputs[i]) : nullptr;
      if (!t) return !n.inputs[i].valid();
      if (t->size() == 1) continue;
      if (dequantize && normalize_axis(dequantize->axis, rank, "axis") == axis) return false;
      if (!dequantize && axis + t->rank() >= rank && t->shape()[axis + t->rank() - rank] != 1) return false;
    }
  }
  return true;
}

Found<Parts> parts_of(const Match& m, const Pattern& concat) {
  const Graph& g = m.graph();
  const Node &product = m.root_node(), &joined = m.node(concat);
  const auto axes = axes_of(g, product);
  const auto stored = stored_weights(g, product.inputs[1]);
  if (!axes || !stored || epilogue(product) || g.type(product.outputs[0]).element != ElementType::f32)
    return std::nullopt;
  const auto rank = g.type(product.inputs[0]).shape.rank();
  if (normalize_axis(joined.op.as<Concat>()->axis, rank, "axis") != axes->joined) return std::nullopt;
  Parts out{{}, {}, *stored};
  const Tensor& numbers = *g.constant(stored->numbers);
  std::optional<int8::Levels> first;
  bool differ = false;
  std::int64_t at = 0;
  for (const auto v : joined.inputs) {
    const auto levels = int8::shifted_levels_of(m, v);
    if (!levels) return levels.verdict();
    differ = differ || (first && !int8::same_levels(g, *first, *levels));
    if (!first) first = *levels;
    const Dim& size = g.type(v).shape[axes->joined];
    if (!size.known()) return Verdict::no("the number of channels of {} is not known", m.label(v));
    if (bits_of(numbers.element_type()) != 8 || at + size.size() > numbers.shape()[axes->weights])
      return std::nullopt;
    out.sources.push_back(v);
    out.numbers.push_back(cut(numbers, axes->weights, at, size.size()));
    at += size.size();
  }
  if (!differ) return std::nullopt;  // integers are joined
  if (out.sources.size() > kMostParts)
    return Verdict::no("{} parts of different scales, at most {} are supported", out.sources.size(),
                       kMostParts);
  if (!scaled_elsewhere(g, *stored, product, axes->weights))
    return Verdict::no("its weights have scales by input channel");
  return out;
}

/// What made floats of the weights, on other numbers.
ValueId unpacked(Rewrite& r, const StoredWeights& stored, const Tensor& numbers) {
  const Graph& g = r.graph();
  auto y = r.constant(numbers, g.value(stored.numbers).name);
  for (const auto id : stored.nodes) {
    auto inputs = g.node(id).inputs;
    inputs[0] = y;
    y = r.add(Op(g.node(id).op), std::move(inputs));
  }
  return y;
}

void multiply_parts(Rewrite& r, const Parts& parts) {
  const Node n = r.match().root_node();
  ValueId sum;
  for (std::size_t i = 0; i < parts.sources.size(); ++i) {
    std::vector<ValueId> inputs{parts.sources[i], unpacked(r, parts.stored, parts.numbers[i])};
    if (i == 0 && has_input(n, 2)) inputs.push_back(n.inputs[2]);
    const auto y = r.add(Op(n.op), std::move(inputs));
    sum = sum.valid() ? r.add(Add{}, {sum, y}) : y;
  }
  for (const auto id : parts.stored.nodes) r.absorb(id);
  r.replace(sum);
}

}  // namespace

void add_int8_concat(Rules& rules) {
  const auto concat = is<Concat>();
  rules.push_back(rule("int8-parts",
                       "Turns a product of concatenated integers of different scales into a sum of products",
                       RuleSet::integers, is<Convolution, MatMul>(concat, any()))
                      .when([=](const Match& m) { return parts_of(m, concat); })
                      .make(multiply_parts)
                      .only_with(&RewriteOptions::integers)
                      .when_others_are_done());
}

}  // namespace lamina
