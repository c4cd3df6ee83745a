#include "formats/ir/write/legalise.h"

#include <cmath>

#include "formats/ir/write/legaliser.h"
#include "graph/infer.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/shaping.h"

namespace lamina::ir {
namespace {

/// Larger constants stay as small as they are, with a Convert behind them.
constexpr std::size_t kFoldedElements = 4096;

}  // namespace

int Legalisation::version() const { return legaliser_.version(); }
const TensorType& Legalisation::type(ValueId value) const { return legaliser_.graph().type(value); }
const Tensor* Legalisation::constant(ValueId value) const { return legaliser_.graph().constant(value); }

std::size_t Legalisation::rank(ValueId value) const {
  if (!shape(value).ranked()) refuse("an unknown rank");
  return shape(value).rank();
}

const Node* Legalisation::maker(ValueId value) const {
  const NodeId id = legaliser_.graph().producer(value);
  return id.valid() ? &legaliser_.graph().node(id) : nullptr;
}

std::optional<Ints> Legalisation::known_ints(ValueId value) const {
  const Tensor* tensor = constant(value);
  if (!tensor || !is_integer(tensor->element_type()) || bits_of(tensor->element_type()) < 8)
    return std::nullopt;
  return to_ints(*tensor);
}

ValueId Legalisation::add(const Op& op, std::vector<ValueId> inputs, const std::string& suffix) {
  return add_many(op, std::move(inputs), 1, suffix)[0];
}

std::vector<ValueId> Legalisation::add_many(const Op& op, std::vector<ValueId> inputs, int outputs,
                                            const std::string& suffix, std::vector<Graph> bodies) {
  return legaliser_.emit(op, std::move(inputs), outputs, fmt::format("{}/{}", label_, suffix),
                         std::move(bodies));
}

ValueId Legalisation::add_constant(Tensor tensor, const std::string& suffix) {
  return legaliser_.graph().add_constant(std::move(tensor),
                                         legaliser_.fresh(fmt::format("{}/{}", label_, suffix)));
}

ValueId Legalisation::ints(const Ints& list, const std::string& suffix) {
  return add_constant(Tensor::of(Dims{std::ssize(list)}, list), suffix);
}

ValueId Legalisation::integer(std::int64_t value, const std::string& suffix) {
  return add_constant(Tensor::scalar(value), suffix);
}

ValueId Legalisation::number(double value, ElementType type, const std::string& suffix) {
  return add_constant(from_doubles(type, {}, {value}), suffix);
}

ValueId Legalisation::converted(ValueId value, ElementType type, const std::string& suffix) {
  if (element(value) == type) return value;
  if (const Tensor* tensor = constant(value); tensor && tensor->size() <= kFoldedElements)
    return add_constant(lamina::convert(*tensor, type), suffix);
  return add(Convert{type}, {value}, suffix);
}

ValueId Legalisation::reshaped(ValueId value, const Ints& pattern, const std::string& suffix,
                               bool special_zero) {
  bool known = true;
  for (const auto size : pattern) known = known && size >= 0 && !(special_zero && size == 0);
  if (const Tensor* tensor = constant(value); tensor && known)
    return add_constant(tensor->reshaped(pattern), suffix);
  return add(Reshape{special_zero}, {value, ints(pattern, suffix + "_shape")}, suffix);
}

ValueId Legalisation::along(ValueId value, std::size_t axis, std::size_t rank_of_all,
                            const std::string& suffix) {
  const std::size_t own = rank(value);
  if (own == 0) return value;
  if (own != 1) refuse("an operand of rank {}, wanted 0 or 1", own);
  const Dim& size = shape(value)[0];
  Ints pattern(rank_of_all, 1);
  pattern[axis] = size.known() ? size.size() : -1;
  return reshaped(value, pattern, suffix);
}

ValueId Legalisation::scalar(ValueId value, const std::string& suffix) {
  if (shape(value).ranked() && shape(value).rank() == 0) return value;
  return reshaped(value, {}, suffix);
}

ValueId Legalisation::sizes_of(ValueId value, const std::string& suffix) {
  if (shape(value).known()) {
    const Dims sizes = shape(value).sizes();
    return ints(Ints(sizes.begin(), sizes.end()), suffix);
  }
  return add(ShapeOf{ElementType::i64}, {value}, suffix);
}

ValueId Legalisation::size_of(ValueId value, std::int64_t axis, const std::string& suffix) {
  if (const Shape& s = shape(value); s.ranked()) {
    const auto at = normalize_axis(axis, s.rank(), "axis");
    if (s[at].known()) return integer(s[at].size(), suffix);
  }
  return add(
      Gather{},
      {sizes_of(value, suffix + "_sizes"), integer(axis, suffix + "_axis"), integer(0, suffix + "_along")},
      suffix);
}

void Legalisation::refuse_text(const std::string& text) const {
  fail(ErrorCode::unsupported, "{} \"{}\": IR has no operator for {}", op_.name(), label_, text);
}

}  // namespace lamina::ir
