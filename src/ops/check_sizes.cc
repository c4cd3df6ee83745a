#include "ops/check_sizes.h"

#include <algorithm>

#include "ops/require.h"

namespace lamina {
namespace {

std::string text_of(const Ints& sizes) {
  return sizes.size() == 1 ? std::to_string(sizes[0]) : to_string(sizes);
}

bool has_second_input(SizesRule rule) { return rule != SizesRule::any && rule != SizesRule::positive; }

/// The sum, or nothing where i64 does not hold it. `sizes`: none is below 0.
std::optional<std::int64_t> sum_of(const Ints& sizes) {
  std::int64_t sum = 0;
  for (const auto size : sizes)
    if (__builtin_add_overflow(sum, size, &sum)) return std::nullopt;
  return sum;
}

}  // namespace

std::string CheckSizes::fault(const Ints& sizes, const std::optional<Ints>& others) const {
  const std::int64_t least = rule == SizesRule::positive ? 1 : 0;
  if (std::any_of(sizes.begin(), sizes.end(), [&](auto size) { return size < least; }))
    return fmt::format("{} is {}, wanted {} or more", what, text_of(sizes), least);
  if (!has_second_input(rule) || !others) return {};
  if (rule == SizesRule::sum) {
    const auto sum = sum_of(sizes);
    if (sum == others->at(0)) return {};
    return fmt::format("{} is {}, wanted numbers that add up to {}", what, text_of(sizes), others->at(0));
  }
  bool good = sizes.size() == others->size();
  for (std::size_t i = 0; good && i < sizes.size(); ++i)
    good = rule == SizesRule::same ? sizes[i] == (*others)[i] : sizes[i] >= (*others)[i];
  if (good) return {};
  return fmt::format("{} is {}, wanted {}{}", what, text_of(sizes),
                     rule == SizesRule::at_least ? "at least " : "", text_of(*others));
}

void CheckSizes::infer(InferContext& c) const {
  require_list(c, 0, "sizes");
  c.require(c.has(1) == has_second_input(rule), "the rule {} {} a second input",
            enum_names<SizesRule>[static_cast<std::size_t>(rule)], c.has(1) ? "has not" : "wants");
  if (c.has(1)) {
    const auto count = require_list(c, 1, "others");
    c.require(rule != SizesRule::sum || count.fits(1), "others has {} elements, wanted 1", to_string(count));
  }
  c.set(0, ElementType::i64, c.shape(0));
  c.set(1, ElementType::i64, Shape::of({}));
  const auto sizes = c.ints(0), others = c.has(1) ? c.ints(1) : std::nullopt;
  if (!sizes) return;
  const auto wrong = fault(*sizes, others);
  c.require(wrong.empty(), "{}", wrong);
}

void CheckSizes::evaluate(EvalContext& c) const {
  const auto sizes = c.ints(0);
  c.set(0, from_ints(ElementType::i64, c.dims(0), sizes));
  c.set(1, Tensor::scalar<std::int64_t>(std::ssize(sizes)));
}

void register_check_sizes(Registry& r) { r.add<CheckSizes>(); }

}  // namespace lamina
