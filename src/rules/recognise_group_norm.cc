/// Group normalisation as frameworks export it: a Reshape to groups, their normalisation, a Reshape back,
/// then scale and bias by channel.
#include <algorithm>

#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/shaping.h"
#include "rules/certain_shapes.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

struct WrittenGroupNorm {
  GroupNormalization op;
  std::vector<double> scale, bias;
};

/// The normalisation is over all axes behind the groups.
Verdict over_the_rest(const Match& m, const Pattern& mvn, const Shape& grouped) {
  auto axes = constant_ints(m.graph(), m.node(mvn), 1);
  if (!axes) return Verdict::no("the axes of {} are not known", m.label(mvn));
  for (auto& a : *axes) a = static_cast<std::int64_t>(normalize_axis(a, grouped.rank(), "axis"));
  std::sort(axes->begin(), axes->end());
  bool rest = axes->size() == grouped.rank() - 2;
  for (std::size_t i = 0; rest && i < axes->size(); ++i)
    rest = (*axes)[i] == static_cast<std::int64_t>(i + 2);
  return rest ? Verdict::yes() : Verdict::no("{} does not normalise over all axes of a group", m.label(mvn));
}

/// Groups of channels, by the shapes; images must stay apart.
Found<std::int64_t> groups_of(const Match& m, const Pattern& x, const Shape& grouped) {
  const auto& shape = m.shape(x);
  if (!shape.ranked() || shape.rank() < 3 || !grouped.ranked() || grouped.rank() < 3)
    return Verdict::no("the shape of {} is not known well enough", m.label(x));
  if (!shape[1].known() || !grouped[1].known())
    return Verdict::no("the channels of {} are not known", m.label(x));
  const auto channels = shape[1].size(), groups = grouped[1].size();
  if (!shape[0].same(grouped[0])) return Verdict::no("its groups reach over images");
  if (groups < 1 || channels % groups != 0)
    return Verdict::no("{} channels are no multiple of {} groups", channels, groups);
  return groups;
}

}  // namespace

void add_recognise_group_norm(Rules& rules) {
  const auto x = any(), scale = constant_only(), bias = constant_only();
  const auto grouped = is<Reshape>(x, any()).used_once();
  const auto mvn = is<MVN>(grouped, constant()).used_once().that([](const Graph&, const Node& n) {
    const auto* op = n.op.as<MVN>();
    return op->normalize_variance && op->eps_mode == MvnEpsMode::inside_sqrt && n.bodies.empty();
  });
  const auto back = is<Reshape>(mvn, any()).used_once();
  const auto scaled = is<Multiply>(back, scale).any_order().used_once();
  const auto root = is<Add>(scaled, bias).any_order();
  rules.push_back(
      rule("recognise-group-norm", "Normalisation of groups of channels, then a scale and a bias by channel",
           RuleSet::runtime, root)
          .when([=](const Match& m) -> Found<WrittenGroupNorm> {
            const auto& shape = m.graph().type(m.node(grouped).outputs[0]).shape;
            const auto groups = groups_of(m, x, shape);
            if (!groups) return groups.verdict();
            if (auto v = over_the_rest(m, mvn, shape); !v) return v;
            const auto& to = m.graph().type(m.root_node().outputs[0]).shape;
            if (!to.same(m.shape(x)) || !m.graph().type(m.node(back).outputs[0]).shape.same(m.shape(x)))
              return Verdict::no("it makes {} of {}", to_string(to), to_string(m.shape(x)));
            for (const auto& reshape : {grouped, back})
              if (auto v = never_fails(m, reshape); !v) return v;
            for (const auto& operand : {scale, bias})
              if (auto v = one_per_channel(m.label(operand), m.shape(operand), to, 1); !v) return v;
            const auto channels = static_cast<std::size_t>(m.shape(x)[1].size());
            return WrittenGroupNorm{{*groups, m.op<MVN>(mvn).eps},
                                    per_channel(m.tensor(scale), channels),
                                    per_channel(m.tensor(bias), channels)};
          })
          .make([=](Rewrite& r, const WrittenGroupNorm& found) {
            const auto element = r.match().type(x).element;
            const auto constant_of = [&](const std::vector<double>& values) {
              return r.constant(from_doubles(element, {static_cast<std::int64_t>(values.size())}, values));
            };
            r.named_after(mvn);
            r.replace(
                r.add(found.op, {r.match().value(x), constant_of(found.scale), constant_of(found.bias)}));
          }));
}

}  // namespace lamina
