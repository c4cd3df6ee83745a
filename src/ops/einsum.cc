#include <algorithm>
#include <cctype>
#include <map>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/generation.h"
#include "ops/walk.h"

namespace lamina {

namespace {

/// Axes are labels: the letter's code, or kEllipsis + place counted from the ellipsis' end.
using Labels = EinsumTerms::Labels;
constexpr int kEllipsis = 256;

struct Equation {
  std::vector<Labels> terms;  ///< '.' stands for an ellipsis until its rank is known
  Labels out;
  bool explicit_out = false;
};

Labels parse_term(const InferContext& c, std::string_view text) {
  Labels out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    if (std::isalpha(letter)) {
      out.push_back(letter);
    } else if (text.substr(i, 3) == "...") {
      c.require(std::find(out.begin(), out.end(), '.') == out.end(), "equation has two ellipses in \"{}\"",
                text);
      out.push_back('.');
      i += 2;
    } else {
      c.fail("equation has \"{}\" in \"{}\", wanted letters and ...", static_cast<char>(letter), text);
    }
  }
  return out;
}

Equation parse(const InferContext& c, std::string text) {
  std::erase_if(text, [](char l) { return l == ' '; });
  Equation out;
  const auto arrow = text.find("->");
  out.explicit_out = arrow != std::string::npos;
  if (out.explicit_out) out.out = parse_term(c, std::string_view(text).substr(arrow + 2));
  std::string_view left = std::string_view(text).substr(0, arrow);
  for (;;) {
    const auto comma = left.find(',');
    out.terms.push_back(parse_term(c, left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  c.require(out.terms.size() == c.inputs(), "equation \"{}\" has {} terms for {} inputs", text,
            out.terms.size(), c.inputs());
  return out;
}

/// The term with its ellipsis spelled out for a rank.
Labels expanded(const Labels& term, std::size_t ellipsis_rank) {
  Labels out;
  for (const int label : term) {
    if (label != '.') {
      out.push_back(label);
      continue;
    }
    for (auto k = ellipsis_rank; k-- > 0;) out.push_back(kEllipsis + static_cast<int>(k));
  }
  return out;
}

struct Bound : EinsumTerms {
  std::map<int, Dim> sizes;
};

void bind_size(const InferContext& c, std::map<int, Dim>& sizes, int label, const Dim& d) {
  const auto [at, added] = sizes.try_emplace(label, d);
  if (added || at->second.same(d) || d.is(1)) return;
  if (at->second.is(1) || (d.known() && at->second.fits(d))) {
    at->second = d;
  } else {
    c.require(at->second.fits(d) || (!d.known() && d.fits(1)), "axis sizes {} and {} of one letter differ",
              to_string(at->second), to_string(d));
  }
}

/// Implicit output: the ellipsis, then letters that occur once, sorted.
Labels implicit_out(const std::vector<Labels>& terms, std::size_t ellipsis_rank) {
  std::map<int, int> times;
  for (const auto& t : terms)
    for (const int l : t) ++times[l];
  Labels out = expanded({'.'}, ellipsis_rank);
  for (const auto& [label, n] : times)
    if (label < kEllipsis && n == 1) out.push_back(label);
  return out;
}

/// Nothing when a rank is unknown.
std::optional<Bound> bind(const InferContext& c, const Equation& e) {
  Bound b;
  std::size_t widest = 0;
  for (std::size_t i = 0; i < e.terms.size(); ++i) {
    const auto& shape = c.shape(i);
    if (!shape.ranked()) return std::nullopt;
    const auto& term = e.terms[i];
    const bool open = std::find(term.begin(), term.end(), '.') != term.end();
    const auto letters = term.size() - (open ? 1 : 0);
    c.require(open ? shape.rank() >= letters : shape.rank() == letters,
              "input {} has shape {}, its term has {} letters", i, to_string(shape), letters);
    widest = std::max(widest, shape.rank() - letters);
    b.inputs.push_back(expanded(term, shape.rank() - letters));
    for (std::size_t a = 0; a < shape.rank(); ++a) bind_size(c, b.sizes, b.inputs[i][a], shape[a]);
  }
  b.out = e.explicit_out ? expanded(e.out, widest) : implicit_out(b.inputs, widest);
  auto sorted = b.out;
  std::sort(sorted.begin(), sorted.end());
  c.require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
            "a letter of the output occurs twice");
  for (const int l : b.out) c.require(b.sizes.contains(l), "a letter of the output is in no input");
  return b;
}

template <class T>
struct Operand {
  Labels labels;
  std::vector<T> values;
};

/// Stride of each label in a row-major operand; repeated letters add up (a diagonal), size 1 does not move.
std::map<int, std::int64_t> label_strides(const Labels& labels, const Dims& dims) {
  std::map<int, std::int64_t> out;
  const auto strides = dense_strides(dims);
  for (std::size_t a = 0; a < labels.size(); ++a) out[labels[a]] += dims[a] == 1 ? 0 : strides[a];
  return out;
}

/// Products of two operands summed over the labels that are not kept.
template <class T>
Operand<T> contract(const Operand<T>& a, const Dims& a_dims, const Operand<T>& b, const Dims& b_dims,
                    const Labels& keep, const std::map<int, std::int64_t>& sizes) {
  const auto sa = label_strides(a.labels, a_dims), sb = label_strides(b.labels, b_dims);
  Labels sum;
  for (const auto& [l, size] : sizes)
    if ((sa.contains(l) || sb.contains(l)) && std::find(keep.begin(), keep.end(), l) == keep.end())
      sum.push_back(l);
  const auto offsets = [&](const Labels& labels, const auto& strides) {
    Dims dims;
    Ints steps;
    for (const int l : labels) {
      dims.push_back(sizes.at(l));
      steps.push_back(strides.contains(l) ? strides.at(l) : 0);
    }
    return offsets_of(dims, steps);
  };
  const auto outer_a = offsets(keep, sa), outer_b = offsets(keep, sb);
  const auto inner_a = offsets(sum, sa), inner_b = offsets(sum, sb);
  Operand<T> out{keep, std::vector<T>(outer_a.size())};
  parallel_for(static_cast<std::int64_t>(outer_a.size()), 64, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      T total{};
      for_pieces(inner_a.size(), [&](std::size_t first, std::size_t last) {
        for (auto k = first; k < last; ++k)
          total += a.values[static_cast<std::size_t>(outer_a[i] + inner_a[k])] *
                   b.values[static_cast<std::size_t>(outer_b[i] + inner_b[k])];
      });
      out.values[i] = total;
    }
  });
  return out;
}

/// Labels of a and b that the output or a later term still needs.
Labels still_needed(const Labels& a, const Labels& b, const Bound& bound, std::size_t next) {
  Labels out;
  const auto needed = [&](int l) {
    if (std::find(bound.out.begin(), bound.out.end(), l) != bound.out.end()) return true;
    return std::any_of(bound.inputs.begin() + static_cast<std::ptrdiff_t>(next), bound.inputs.end(),
                       [&](const Labels& t) { return std::find(t.begin(), t.end(), l) != t.end(); });
  };
  for (const auto* labels : {&a, &b})
    for (const int l : *labels)
      if (needed(l) && std::find(out.begin(), out.end(), l) == out.end()) out.push_back(l);
  return out;
}

template <class T, class Read>
std::vector<T> evaluate_einsum(EvalContext& c, const Bound& bound, const Read& read) {
  std::map<int, std::int64_t> sizes;
  for (const auto& [l, d] : bound.sizes) sizes[l] = d.size();
  Operand<T> sum{{}, {T(1)}};
  Dims sum_dims;
  for (std::size_t i = 0; i < bound.inputs.size(); ++i) {
    const Operand<T> next{bound.inputs[i], read(i)};
    const bool last = i + 1 == bound.inputs.size();
    const auto keep = last ? bound.out : still_needed(sum.labels, next.labels, bound, i + 1);
    sum = contract(sum, sum_dims, next, c.dims(i), keep, sizes);
    sum_dims.clear();
    for (const int l : keep) sum_dims.push_back(sizes.at(l));
  }
  return std::move(sum.values);
}

}  // namespace

std::optional<EinsumTerms> einsum_terms(const Einsum& op, const InferContext& c) {
  return bind(c, parse(c, op.equation));
}

void Einsum::infer(InferContext& c) const {
  const auto e = parse(c, equation);
  for (std::size_t i = 1; i < c.inputs(); ++i)
    c.require(c.element(i) == c.element(0) || c.element(i) == ElementType::undefined ||
                  c.element(0) == ElementType::undefined,
              "inputs have types {} and {}, wanted the same", name_of(c.element(0)), name_of(c.element(i)));
  const auto bound = bind(c, e);
  if (!bound) return c.set(0, c.element(0), Shape());
  std::vector<Dim> out;
  for (const int l : bound->out) out.push_back(bound->sizes.at(l));
  c.set(0, c.element(0), std::move(out));
}

void Einsum::evaluate(EvalContext& c) const {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < c.inputs(); ++i) inputs.push_back(c.in(i));
  const InferContext types(c.node(), inputs);
  const auto bound = bind(types, parse(types, equation));
  if (is_float(c.in(0).element_type())) {
    c.store(0, evaluate_einsum<double>(c, *bound, [&](std::size_t i) { return c.doubles(i); }));
  } else {
    const auto sums =
        evaluate_einsum<std::uint64_t>(c, *bound, [&](std::size_t i) {  // unsigned, so that sums wrap
          return c.numbers<std::uint64_t>(i);
        });
    c.store(0, sums);
  }
}

}  // namespace lamina
