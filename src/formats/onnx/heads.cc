#include "formats/onnx/heads.h"

#include <cmath>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/shaping.h"

namespace lamina::onnx {

std::int64_t read_heads(const Call& c, std::string_view name) {
  const auto heads = c.i(name, 0);
  if (heads <= 0 || heads > (std::int64_t{1} << 30)) c.fail("{} is {}, wanted 1 or more", name, heads);
  return heads;
}

void check_rank(const Call& c, ValueId v, std::string_view what, std::size_t rank, std::size_t or_rank) {
  const auto found = c.known_rank(v);
  if (found == rank || (or_rank != 0 && found == or_rank)) return;
  if (or_rank != 0) c.fail("{} has rank {}, wanted {} or {}", what, found, rank, or_rank);
  c.fail("{} has rank {}, wanted {}", what, found, rank);
}

ValueId apart(Call& c, ValueId v, std::int64_t heads) {
  check_rank(c, v, "a projection", 3);
  const auto width = c.type(v).shape[2];
  if (width.known() && width.size() % heads != 0) c.fail("{} channels for {} heads", width.size(), heads);
  return c.add(Reshape{true}, {v, c.ints_constant({0, 0, heads, width.known() ? width.size() / heads : -1})});
}

ValueId split_heads(Call& c, ValueId v, std::int64_t heads) {
  return c.transpose(apart(c, v, heads), {0, 2, 1, 3});
}

ValueId join_heads(Call& c, ValueId v) {
  return c.add(Reshape{true}, {c.transpose(v, {0, 2, 1, 3}), c.ints_constant({0, 0, -1})});
}

ValueId counted(Call& c, ValueId size) {
  return c.add(Range{ElementType::i64}, {c.int_constant(0), size, c.int_constant(1)});
}

ValueId sizes_of(Call& c, ValueId v, std::int64_t first, std::int64_t last) {
  return c.slice(c.shape_of(v), 0, first, last);
}

ValueId scale_by_size(Call& c, ValueId q) {
  const auto size = c.type(q).shape[3];
  if (size.known()) return c.number_like(1 / std::sqrt(static_cast<double>(size.size())), q);
  const auto type = c.known_element(q), wide = type == ElementType::f64 ? type : ElementType::f32;
  const auto root = c.add(Sqrt{}, {c.convert(size_of(c, q, 3), wide)});
  return c.convert(divide(c, c.number(1, wide), root), type);
}

ValueId scale_of_scores(Call& c, ValueId q) {
  return c.has_attribute("scale") ? c.number_like(c.f("scale", 1), q) : scale_by_size(c, q);
}

ValueId soft_capped(Call& c, ValueId scores, double cap) {
  if (cap == 0) return scores;
  const auto most = c.number_like(cap, scores);
  return multiply(c, c.add(Tanh{}, {divide(c, scores, most)}), most);
}

HeadGroups::HeadGroups(Call& c, const QueryKeyValue& a) : c_(c), a_(a) {
  const auto heads = c.type(a.q).shape[1], groups = c.type(a.k).shape[1];
  if (!groups.fits(c.type(a.v).shape[1]))
    c.fail("{} heads of keys, {} of values", to_string(groups), to_string(c.type(a.v).shape[1]));
  if (heads.same(groups)) return;
  if (!heads.known() || !groups.known()) {
    const auto count = sizes_of(c, a.k, 1, 2);
    sizes_ = c.concat({count, divide(c, sizes_of(c, a.q, 1, 2), count)}, 0);
    return;
  }
  if (groups.size() == 0 || heads.size() % groups.size() != 0)
    c.fail("{} heads of queries for {} of keys", heads.size(), groups.size());
  sizes_ = c.ints_constant({groups.size(), heads.size() / groups.size()});
}

QueryKeyValue HeadGroups::grouped() const {
  if (!any()) return a_;
  const auto size = c_.type(a_.q).shape[3];
  const auto fixed = c_.known_ints(sizes_);
  ValueId q;
  if (size.known() && size.size() > 0 && fixed)
    q = c_.add(Reshape{true}, {a_.q, c_.ints_constant({0, (*fixed)[0], (*fixed)[1], -1, size.size()})});
  else
    q = c_.reshape(a_.q, c_.concat({sizes_of(c_, a_.q, 0, 1), sizes_, sizes_of(c_, a_.q, 2, 4)}, 0));
  return {q, c_.unsqueeze(a_.k, {2}), c_.unsqueeze(a_.v, {2})};
}

ValueId HeadGroups::grouped_mask(ValueId mask) const {
  const auto rank = static_cast<std::int64_t>(c_.known_rank(mask));
  if (!any() || rank < 3) return mask;
  const auto heads = c_.type(mask).shape[static_cast<std::size_t>(rank - 3)];
  if (heads.is(1)) return rank == 3 ? mask : c_.unsqueeze(mask, {2});
  if (!heads.same(c_.type(a_.q).shape[1])) {
    // Perhaps one mask for all heads, perhaps one for each: all get theirs.
    const auto one = c_.ints_constant({1});
    const auto target = c_.concat({sizes_of(c_, a_.q, 1, 2), one, one}, 0);
    mask = c_.add(Broadcast{BroadcastMode::bidirectional}, {mask, target});
  }
  return c_.reshape(
      mask, c_.concat({sizes_of(c_, mask, 0, rank - 3), sizes_, sizes_of(c_, mask, rank - 2, rank)}, 0));
}

ValueId HeadGroups::ungrouped(ValueId v, ValueId last, std::int64_t axis) const {
  if (!any()) return v;
  const auto heads = c_.type(a_.q).shape[1], size = c_.type(last).shape[static_cast<std::size_t>(axis)];
  if (heads.known() && size.known() && size.size() > 0)
    return c_.add(Reshape{true}, {v, c_.ints_constant({0, heads.size(), -1, size.size()})});
  return c_.reshape(v, c_.concat({sizes_of(c_, a_.q, 0, 3), sizes_of(c_, last, axis, axis + 1)}, 0));
}

}  // namespace lamina::onnx
