#pragma once
/// Sizes that a model computes, and that must be checked before they are used.
#include "ops/eval.h"

namespace lamina {

/// What sizes must be, besides 0 or more.
enum class SizesRule : std::uint8_t {
  any,
  positive,  ///< 1 or more
  sum,       ///< together as much as the number in the second input
  same,      ///< those in the second input
  at_least,  ///< not less than those in the second input
};
template <>
inline constexpr std::array enum_names<SizesRule> = {std::string_view("any"), std::string_view("positive"),
                                                     std::string_view("sum"), std::string_view("same"),
                                                     std::string_view("at_least")};

/// CheckSizes(sizes, others?) -> sizes in i64, as they are, and their number (i64 scalar). An error where one
/// is below 0 or breaks the rule. The number is a result of the check: who needs it alone has the error, too.
struct CheckSizes {
  static constexpr OpInfo info{
      "CheckSizes",   1, 2, 2, Trait::none, "Sizes as they are; an error where one is wrong", 0,
      OpFamily::shape};
  SizesRule rule = SizesRule::any;
  std::string what = "sizes";  ///< what the model calls them, for errors
  template <class V>
  void visit(V& v) {
    v("rule", rule);
    v("what", what);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;

  /// What is wrong; empty if nothing is.
  std::string fault(const Ints& sizes, const std::optional<Ints>& others) const;
};

void register_check_sizes(Registry& r);

}  // namespace lamina
