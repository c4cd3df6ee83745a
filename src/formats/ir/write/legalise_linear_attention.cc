// LinearAttention as a loop over its tokens.
#include "formats/building.h"
#include "formats/ir/write/legalise.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/linear_attention.h"
#include "ops/matmul.h"
#include "ops/shaping.h"

namespace lamina::ir {
namespace {

struct Sizes {
  std::int64_t heads, groups, key, width;
};

Sizes known_sizes(const Legalisation& c) {
  const auto &q = c.shape(c.in(0)), &v = c.shape(c.in(2));
  if (!q.ranked() || !v.ranked() || !q[1].known() || !q[3].known() || !v[1].known() || !v[3].known())
    c.refuse("an unknown number or size of heads");
  return {q[1].size(), v[1].size(), q[3].size(), v[3].size()};
}

/// One token: its inputs have an axis 2 of one element.
Graph token(const Legalisation& c, const Sizes& s, const std::vector<ValueId>& slices) {
  Graph body;
  body.name = "token";
  add_counters(body);
  auto state = body.add_input("state", c.type(c.in(3)));
  std::vector<ValueId> own;
  for (auto v : slices) {
    auto type = c.type(v);
    if (type.shape.ranked()) type.shape[2] = Dim(1);
    own.push_back(body.add_input(fmt::format("slice{}", own.size()), type));
  }
  const auto shaped = [&](ValueId v, const Ints& pattern) {
    const auto to = body.add_constant(Tensor::of(Dims{std::ssize(pattern)}, pattern));
    return body.add(Reshape{true}, {v, to});
  };
  std::size_t next = 3;
  if (c.has(4)) {
    const auto decay = own[next++];
    const auto column = body.add_constant(Tensor::of(Dims{4}, Ints{0, 1, 3, 2}));
    state = body.add(Multiply{}, {state, body.add(Transpose{}, {decay, column})});
  }
  auto v = own[2];
  if (c.has(5)) {
    const auto read = body.add(MatMul{}, {own[1], state});
    v = body.add(Multiply{}, {own[next], body.add(Subtract{}, {v, read})});
  }
  state = body.add(Add{}, {state, body.add(MatMul{true, false}, {own[1], v})});
  // The heads of a group are rows that read its state.
  const auto rows = shaped(own[0], {0, s.groups, s.heads / s.groups, s.key});
  const auto y = shaped(body.add(MatMul{}, {rows, state}), {0, s.heads, 1, s.width});
  body.add_result("goes_on", body.add_constant(Tensor::scalar<bool>(true)));
  body.add_result("state", state);
  body.add_result("y", y);
  return body;
}

std::vector<ValueId> linear_attention(Legalisation& c) {
  const auto s = known_sizes(c);
  std::vector<ValueId> slices{c.in(0), c.in(1), c.in(2)};
  for (const std::size_t i : {4, 5})
    if (c.has(i)) slices.push_back(c.in(i));
  std::vector<ValueId> inputs{ValueId(), ValueId(), c.in(3)};
  inputs.insert(inputs.end(), slices.begin(), slices.end());
  Loop loop;
  loop.carried = 1;
  loop.slice_axes.assign(slices.size(), 2);
  loop.concat_axes = {2};
  std::vector<Graph> bodies;
  bodies.push_back(token(c, s, slices));
  const auto made = c.add_many(loop, inputs, 2, "tokens", std::move(bodies));
  return {made[1], made[0]};
}

}  // namespace

void register_linear_attention(LegalisationTable& t) { t.add("LinearAttention", linear_attention); }

}  // namespace lamina::ir
