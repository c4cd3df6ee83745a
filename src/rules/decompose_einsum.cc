/// Einsum becomes sums, Transposes and matrix products, for which there are kernels.
#include <algorithm>
#include <map>

#include "base/limits.h"
#include "graph/infer.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

using Labels = EinsumTerms::Labels;

bool holds(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

template <class F>
Labels those(const Labels& labels, const F& wanted) {
  Labels out;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(out), wanted);
  return out;
}

Labels joined(const Labels& a, const Labels& b, const Labels& c = {}) {
  Labels out = a;
  out.insert(out.end(), b.begin(), b.end());
  out.insert(out.end(), c.begin(), c.end());
  return out;
}

/// What the output or an input behind `last` reads.
Labels needed_after(const EinsumTerms& terms, std::size_t last) {
  Labels out = terms.out;
  for (auto i = last + 1; i < terms.inputs.size(); ++i) out = joined(out, terms.inputs[i]);
  return out;
}

/// A value whose axes have labels; labels of size 1 have no axis.
struct EinsumOperand {
  ValueId value;
  Labels labels;
};

class Contraction {
 public:
  Contraction(Rewrite& r, const EinsumTerms& terms) : r_(r), terms_(terms) {}

  ValueId result() {
    const auto inputs = r_.match().root_node().inputs;
    EinsumOperand all = operand(inputs[0], terms_.inputs[0]);
    for (std::size_t i = 1; i < inputs.size(); ++i)
      all = product(all, operand(inputs[i], terms_.inputs[i]), needed_after(terms_, i));
    all = summed(all, [&](int l) { return holds(terms_.out, l); });
    all = ordered(all, those(terms_.out, [&](int l) { return holds(all.labels, l); }));
    const auto y = shaped(all.value, sizes_of(terms_.out));
    return y != inputs[0] ? y : r_.add(Identity{}, {y});
  }

 private:
  Dims dims(ValueId v) const { return r_.graph().type(v).shape.sizes(); }
  std::int64_t size(int label) const { return sizes_.at(label); }

  Dims sizes_of(const Labels& labels) const {
    Dims out;
    for (const int l : labels) out.push_back(size(l));
    return out;
  }

  EinsumOperand operand(ValueId v, const Labels& labels) {
    const auto given = dims(v);
    Labels left;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      auto& size = sizes_[labels[i]];
      size = std::max(size, given[i]);
      if (given[i] != 1) left.push_back(labels[i]);
    }
    return {shaped(v, sizes_of(left)), left};
  }

  ValueId shaped(ValueId v, const Dims& wanted) {
    if (dims(v) == wanted) return v;
    return r_.add(Reshape{}, {v, r_.constant(ints_tensor(wanted))});
  }

  EinsumOperand ordered(const EinsumOperand& x, const Labels& order) {
    if (x.labels == order) return x;
    Ints axes;
    for (const int l : order)
      axes.push_back(std::find(x.labels.begin(), x.labels.end(), l) - x.labels.begin());
    return {r_.add(Transpose{}, {x.value, r_.constant(ints_tensor(axes))}), order};
  }

  /// The sum over all labels but those.
  template <class F>
  EinsumOperand summed(const EinsumOperand& x, const F& stays) {
    Ints axes;
    for (std::size_t i = 0; i < x.labels.size(); ++i)
      if (!stays(x.labels[i])) axes.push_back(static_cast<std::int64_t>(i));
    if (axes.empty()) return x;
    return {r_.add(ReduceSum{}, {x.value, r_.constant(ints_tensor(axes))}), those(x.labels, stays)};
  }

  /// As [batch..., rows, columns], these two the other way round where that leaves the last axis the last.
  ValueId matrix(const EinsumOperand& x, const Labels& batch, const Labels& rows, const Labels& columns,
                 bool& transposed) {
    transposed = !columns.empty() && !x.labels.empty() && holds(rows, x.labels.back());
    const auto& first = transposed ? columns : rows;
    const auto& second = transposed ? rows : columns;
    auto to = sizes_of(batch);
    for (const auto* labels : {&first, &second})
      to.push_back(static_cast<std::int64_t>(element_count(sizes_of(*labels))));
    return shaped(ordered(x, joined(batch, first, second)).value, to);
  }

  EinsumOperand product(EinsumOperand a, EinsumOperand b, const Labels& kept) {
    a = summed(a, [&](int l) { return holds(kept, l) || holds(b.labels, l); });
    b = summed(b, [&](int l) { return holds(kept, l) || holds(a.labels, l); });
    const auto alone = [&](const EinsumOperand& x, const EinsumOperand& y) {
      return those(x.labels, [&](int l) { return !holds(y.labels, l); });
    };
    // The operand whose own axes come first in what is kept gives the rows.
    const auto own = std::find_if(kept.begin(), kept.end(),
                                  [&](int l) { return holds(a.labels, l) != holds(b.labels, l); });
    if (own != kept.end() && holds(b.labels, *own)) std::swap(a, b);
    const auto both = those(a.labels, [&](int l) { return holds(b.labels, l); });
    const auto inner = those(both, [&](int l) { return !holds(kept, l); });
    Labels batch, rows, columns;
    for (const int l : kept)  // each once, in the order of the result
      if (holds(both, l) && !holds(batch, l)) batch.push_back(l);
    rows = alone(a, b), columns = alone(b, a);
    MatMul multiply;
    const auto left = matrix(a, batch, rows, inner, multiply.transpose_a);
    const auto right = matrix(b, batch, inner, columns, multiply.transpose_b);
    const auto y = inner.empty() ? r_.add(Multiply{}, {left, right}) : r_.add(multiply, {left, right});
    const auto labels = joined(batch, rows, columns);
    return {shaped(y, sizes_of(labels)), labels};
  }

  Rewrite& r_;
  const EinsumTerms& terms_;
  std::map<int, std::int64_t> sizes_;
};

/// Each product of the first operands is a tensor.
bool products_fit(const Match& m, const EinsumTerms& terms) {
  const Node& n = m.root_node();
  std::map<int, std::int64_t> running;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const auto dims = m.graph().type(n.inputs[i]).shape.sizes();
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      auto& size = running[terms.inputs[i][axis]];
      size = std::max(size, dims[axis]);
    }
    const auto needed = needed_after(terms, i);
    Dims sizes;
    std::erase_if(running, [&](const auto& label) { return !holds(needed, label.first); });
    for (const auto& [label, size] : running) sizes.push_back(size);
    if (!extent_of(sizes)) return false;
  }
  return true;
}

Found<EinsumTerms> decomposable(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  for (const auto v : n.inputs) {
    const auto& type = g.type(v);
    if (!is_float(type.element)) return Verdict::no("it sums {}", name_of(type.element));
    if (!type.shape.known()) return Verdict::no("the shape of {} is not known", m.label(v));
    if (type.shape.count().is(0)) return Verdict::no("{} is empty", m.label(v));
  }
  auto terms = einsum_terms(*n.op.as<Einsum>(), InferContext(g, n));
  for (auto labels : terms->inputs) {
    std::sort(labels.begin(), labels.end());
    if (std::adjacent_find(labels.begin(), labels.end()) != labels.end())
      return Verdict::no("it takes a diagonal");
  }
  if (!products_fit(m, *terms)) return Verdict::no("a product of some of its operands is too large");
  return *std::move(terms);
}

}  // namespace

void add_decompose_einsum(Rules& rules) {
  rules.push_back(
      rule("decompose-einsum", "Turns an Einsum of known shapes into Transposes and matrix products",
           RuleSet::normalize, is<Einsum>())
          .when(decomposable)
          .make([](Rewrite& r, const EinsumTerms& terms) { r.replace(Contraction(r, terms).result()); }));
}

}  // namespace lamina
