// Pads, triangles, running products, one-hot rows: what OpenVINO's operators lack of lamina's.
#include <algorithm>
#include <numeric>

#include "formats/ir/write/legalise.h"
#include "ops/check_sizes.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::ir {
namespace {

/// 0, 1, ... before the size, in i64.
ValueId count_to(Legalisation& c, ValueId size, const std::string& name) {
  return c.add(Range{ElementType::i64}, {c.integer(0, name + "_first"), size, c.integer(1, name + "_step")},
               name);
}

ValueId element_of(Legalisation& c, ValueId list, std::int64_t i, const std::string& name) {
  if (const auto known = c.known_ints(list)) return c.integer(known->at(static_cast<std::size_t>(i)), name);
  const ValueId wide = c.converted(list, ElementType::i64, name + "_list");
  return c.add(Gather{}, {wide, c.integer(i, name + "_index"), c.integer(0, name + "_axis")}, name);
}

/// Around the end: along each axis the elements -begin, ..., size + end - 1, modulo the size.
std::vector<ValueId> pad(Legalisation& c) {
  if (c.op<Pad>().pad_mode != PadMode::wrap) return {};
  ValueId y = c.in(0);
  const auto rank = static_cast<std::int64_t>(c.rank(y));
  const auto begins = c.known_ints(c.in(1)), ends = c.known_ints(c.in(2));
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (begins && ends && begins->at(i) == 0 && ends->at(i) == 0) continue;
    const std::string name = fmt::format("axis{}", axis);
    const ValueId size = c.size_of(c.in(0), axis, name + "_size");
    const ValueId begin = element_of(c, c.in(1), axis, name + "_begin");
    const ValueId from = c.add(Negative{}, {begin}, name + "_from");
    const ValueId to = c.add(Add{}, {size, element_of(c, c.in(2), axis, name + "_end")}, name + "_to");
    const ValueId places =
        c.add(Range{ElementType::i64}, {from, to, c.integer(1, name + "_step")}, name + "_places");
    const ValueId around = c.add(FloorMod{}, {places, size}, name + "_around");
    y = c.add(Gather{}, {y, around, c.integer(axis, name)}, name + "_wrapped");
  }
  return {y};
}

/// OpenVINO knows no such check. A length of -1 would be what is left to its VariadicSplit, so that numbers
/// below 0 are doubled: then they are lengths to nobody.
std::vector<ValueId> check_sizes(Legalisation& c) {
  auto sizes = c.converted(c.in(0), ElementType::i64, "sizes");
  const auto count = c.type(sizes).shape.ranked() && c.rank(sizes) == 0 ? c.integer(1, "number")
                                                                        : c.size_of(sizes, 0, "number");
  const auto known = c.known_ints(sizes);
  if (!known || std::any_of(known->begin(), known->end(), [](auto size) { return size < 0; }))
    sizes = c.add(Minimum{}, {sizes, c.add(Multiply{}, {sizes, c.integer(2, "two")}, "doubled")}, "checked");
  return {sizes, count};
}

std::vector<ValueId> trilu(Legalisation& c) {
  const ElementType type = c.element(c.in(0));
  const ValueId rows = count_to(c, c.size_of(c.in(0), -2, "rows"), "row");
  const ValueId columns = count_to(c, c.size_of(c.in(0), -1, "columns"), "column");
  ValueId diagonal = c.reshaped(rows, {-1, 1}, "row_down");
  if (c.has(1)) {
    const ValueId k = c.converted(c.scalar(c.in(1), "k"), ElementType::i64, "k_i64");
    diagonal = c.add(Add{}, {diagonal, k}, "diagonal");
  }
  const ValueId kept = c.op<Trilu>().upper ? c.add(GreaterEqual{}, {columns, diagonal}, "kept")
                                           : c.add(LessEqual{}, {columns, diagonal}, "kept");
  const ValueId zero = type == ElementType::boolean ? c.add_constant(Tensor::scalar(false), "zero")
                                                    : c.number(0, type, "zero");
  return {c.add(Select{}, {kept, c.in(0), zero}, "triangle")};
}

/// Products of rows of a triangle: x [..., i, ...] becomes [..., i, j, ...], with 1 where j is no factor of
/// i.
std::vector<ValueId> running_product(Legalisation& c) {
  const auto& op = c.op<CumProd>();
  Ints given = {0};
  if (c.has(1)) {
    const auto known = c.known_ints(c.in(1));
    if (!known || known->size() != 1) c.refuse("products along an axis that is computed");
    given = *known;
  }
  const std::size_t rank = c.rank(c.in(0)), axis = normalize_axis(given[0], rank, "axis");
  const auto along = static_cast<std::int64_t>(axis);
  const ValueId size = c.size_of(c.in(0), along, "size");
  const ValueId row = c.reshaped(count_to(c, size, "row"), {-1, 1}, "row_down");
  const ValueId column = count_to(c, size, "column");
  const auto compare = [&]() {
    if (op.reverse)
      return op.exclusive ? c.add(Greater{}, {column, row}, "factors")
                          : c.add(GreaterEqual{}, {column, row}, "factors");
    return op.exclusive ? c.add(Less{}, {column, row}, "factors")
                        : c.add(LessEqual{}, {column, row}, "factors");
  };
  ValueId factors = compare();
  if (axis + 1 < rank) {
    Ints behind(rank - axis - 1);
    std::iota(behind.begin(), behind.end(), 2);
    factors = c.add(Unsqueeze{}, {factors, c.ints(behind, "behind")}, "factors_lined_up");
  }
  const ValueId x = c.add(Unsqueeze{}, {c.in(0), c.ints({along}, "new_axis")}, "repeated");
  const ValueId kept = c.add(Select{}, {factors, x, c.number(1, c.element(x), "one")}, "kept");
  return {c.add(ReduceProd{}, {kept, c.ints({along + 1}, "axes")}, "products")};
}

/// Negative indices count from the end.
std::vector<ValueId> one_hot(Legalisation& c) {
  auto op = c.op<OneHot>();
  if (op.negative_indices_mode == NegativeIndices::ignore_negative) return {};
  op.negative_indices_mode = NegativeIndices::ignore_negative;
  const ElementType type = c.element(c.in(0));
  const ValueId depth = c.converted(c.in(1), type, "depth");
  const ValueId negative = c.add(Less{}, {c.in(0), c.number(0, type, "zero")}, "negative");
  const ValueId from_end = c.add(Add{}, {c.in(0), depth}, "from_end");
  const ValueId indices = c.add(Select{}, {negative, from_end, c.in(0)}, "indices");
  return {c.add(op, {indices, c.in(1), c.in(2), c.in(3)}, "rows")};
}

/// Without an order, or with an empty one, the axes are reversed; OpenVINO's files cannot say the latter.
std::vector<ValueId> transpose(Legalisation& c) {
  if (c.has(1)) {
    const Shape& order = c.shape(c.in(1));
    if (!order.ranked() || order.rank() != 1 || !order[0].is(0)) return {};
  }
  Ints order(c.rank(c.in(0)));
  std::iota(order.rbegin(), order.rend(), 0);
  return {c.add(Transpose{}, {c.in(0), c.ints(order, "reversed")}, "transposed")};
}

/// A term of an Einsum names an axis twice, and leaves axes unnamed.
bool is_diagonal_beside_ellipsis(std::string term) {
  if (term.find('.') == std::string::npos) return false;
  std::erase(term, '.');
  std::sort(term.begin(), term.end());
  return std::adjacent_find(term.begin(), term.end()) != term.end();
}

/// Letters that the equation does not use, in place of the ellipsis: its last `count`.
std::string letters_for(const std::string& equation) {
  std::string unused;
  for (const char c : std::string_view("zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA"))
    if (equation.find(c) == std::string::npos) unused += c;
  return unused;
}

/// OpenVINO knows no diagonals beside an ellipsis: all axes get letters.
std::vector<ValueId> einsum(Legalisation& c) {
  std::string equation = c.op<Einsum>().equation;
  std::erase(equation, ' ');
  const auto arrow = equation.find("->");
  if (arrow == std::string::npos) return {};
  bool diagonal = false;
  std::vector<std::string> terms(1);
  for (const char ch : equation.substr(0, arrow))
    if (ch == ',')
      terms.emplace_back();
    else
      terms.back() += ch;
  for (const auto& term : terms) diagonal = diagonal || is_diagonal_beside_ellipsis(term);
  if (!diagonal || terms.size() != c.inputs()) return {};
  const std::string unused = letters_for(equation);
  std::string left;
  std::size_t most = 0;
  const auto expand = [&](std::string term, std::size_t axes) {
    if (axes > unused.size()) c.refuse("so many axes");
    if (const auto dots = term.find("..."); dots != std::string::npos)
      term.replace(dots, 3, unused.substr(unused.size() - axes));
    return term;
  };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto named =
        terms[i].size() - static_cast<std::size_t>(std::count(terms[i].begin(), terms[i].end(), '.'));
    const std::size_t axes = c.rank(c.in(i)) - std::min(named, c.rank(c.in(i)));
    most = std::max(most, axes);
    left += (i == 0 ? "" : ",") + expand(terms[i], axes);
  }
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < c.inputs(); ++i) inputs.push_back(c.in(i));
  return {c.add(Einsum{left + "->" + expand(equation.substr(arrow + 2), most)}, inputs, "sums")};
}

std::vector<ValueId> running_sum(Legalisation& c) {
  if (c.has(1)) return {};
  return {c.add(c.op<CumSum>(), {c.in(0), c.integer(0, "axis")}, "sums")};
}

}  // namespace

void register_movement(LegalisationTable& t) {
  t.add("Pad", pad);
  t.add("Trilu", trilu);
  t.add("CheckSizes", check_sizes);
  t.add("CumProd", running_product);
  t.add("CumSum", running_sum);
  t.add("OneHot", one_hot);
  t.add("Transpose", transpose);
  t.add("Einsum", einsum);
}

}  // namespace lamina::ir
