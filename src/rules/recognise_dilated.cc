/// A convolution of blocks that were moved into the batch, as TensorFlow spells dilations.
#include <algorithm>

#include "ops/convolution.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// Blocks and pads, or crops, of a SpaceToBatch or BatchToSpace: one number per axis.
struct Blocks {
  Ints block, begin, end;
};

Found<Blocks> blocks_of(const Match& m, const Pattern& word) {
  const Graph& g = m.graph();
  const Node& n = m.node(word);
  const auto block = constant_ints(g, n, 1), begin = constant_ints(g, n, 2), end = constant_ints(g, n, 3);
  if (!block || !begin || !end) return Verdict::no("the blocks of {} are not constant", m.label(word));
  const auto& shape = g.type(n.inputs[0]).shape;
  if (!shape.ranked() || shape.rank() < 3 || block->size() != shape.rank() || begin->size() != shape.rank() ||
      end->size() != shape.rank())
    return Verdict::no("the rank of what {} reads is not known", m.label(word));
  if ((*block)[1] != 1 || (*begin)[1] != 0 || (*end)[1] != 0)
    return Verdict::no("{} moves or pads channels, too", m.label(word));
  return Blocks{*block, *begin, *end};
}

/// Of a window's list; an empty one means the same number everywhere.
std::int64_t at(const Ints& list, std::size_t i, std::int64_t usual) {
  return list.empty() ? usual : list[i];
}

/// The convolution of the whole. Each part is a row of every n-th pixel, so what lies between two taps is n
/// times as far; zeros around a part are n times as many around the whole.
Found<Convolution> dilated(const Convolution& part, const Blocks& in, const Blocks& out) {
  auto whole = part;
  const auto axes = in.block.size() - 2;
  whole.dilations.assign(axes, 1);
  whole.pads_begin.assign(axes, 0);
  whole.pads_end.assign(axes, 0);
  whole.auto_pad = AutoPad::explicit_;
  const bool valid = part.auto_pad == AutoPad::valid;
  for (std::size_t i = 0; i < axes; ++i) {
    const auto n = in.block[i + 2];
    const auto pad = [&](const Ints& own, const Ints& before, const Ints& cropped) {
      return before[i + 2] + (valid ? 0 : n * at(own, i, 0)) - cropped[i + 2];
    };
    whole.dilations[i] = n * at(part.dilations, i, 1);
    whole.pads_begin[i] = pad(part.pads_begin, in.begin, out.begin);
    whole.pads_end[i] = pad(part.pads_end, in.end, out.end);
    if (whole.pads_begin[i] < 0 || whole.pads_end[i] < 0)
      return Verdict::no("axis {} is cropped by more than it was padded", i + 2);
  }
  return whole;
}

}  // namespace

void add_recognise_dilated(Rules& rules) {
  const auto x = any(), weights = any();
  const auto apart = is<SpaceToBatch>(x).used_once();
  const auto conv = is<Convolution>(apart, weights).used_once().that([](const Graph&, const Node& n) {
    return n.bodies.empty() && !has_input(n, 3) && !has_input(n, 4);
  });
  const auto together = is<BatchToSpace>(conv);
  rules.push_back(
      rule("recognise-dilated-convolution",
           "A convolution between SpaceToBatch and BatchToSpace has dilations", RuleSet::portable, together)
          .when([=](const Match& m) -> Found<Convolution> {
            const auto in = blocks_of(m, apart), out = blocks_of(m, together);
            if (!in) return in.verdict();
            if (!out) return out.verdict();
            if (in->block != out->block)
              return Verdict::no("the blocks of {} and {} differ", m.label(apart), m.label(together));
            const auto& part = m.op<Convolution>(conv);
            if (part.auto_pad == AutoPad::same_upper || part.auto_pad == AutoPad::same_lower)
              return Verdict::no("{} pads each part by its own size", m.label(conv));
            if (std::any_of(part.strides.begin(), part.strides.end(), [](auto s) { return s != 1; }))
              return Verdict::no("{} has strides", m.label(conv));
            return dilated(part, *in, *out);
          })
          .make([=](Rewrite& r, const Convolution& whole) {
            auto inputs = r.match().node(conv).inputs;
            inputs[0] = r.match().value(x);
            r.named_after(conv);
            r.replace(r.add(whole, std::move(inputs)));
          }));
}

}  // namespace lamina
