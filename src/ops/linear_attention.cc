#include "ops/linear_attention.h"

#include <array>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/require.h"

namespace lamina {
namespace {

Dim axis_of(const InferContext& c, std::size_t input, std::size_t axis) {
  const auto& shape = c.shape(input);
  return shape.ranked() ? shape[axis] : Dim();
}

/// One group: its tensors, and where its heads' queries and results are.
struct Group {
  std::int64_t tokens, key, width, heads, decay_width;
  const double *q, *k, *v, *decay, *beta;
  double *state, *y;

  void run() const;
  void step(std::int64_t t, std::vector<double>& written) const;
};

void Group::step(std::int64_t t, std::vector<double>& written) const {
  const double *kt = k + t * key, *vt = v + t * width;
  if (decay)
    for (std::int64_t d = 0; d < key; ++d)
      for (std::int64_t j = 0; j < width; ++j)
        state[d * width + j] *= decay[t * decay_width + (decay_width == 1 ? 0 : d)];
  for (std::int64_t j = 0; j < width; ++j) {
    double read = 0;
    for (std::int64_t d = 0; beta && d < key; ++d) read += kt[d] * state[d * width + j];
    written[static_cast<std::size_t>(j)] = beta ? beta[t] * (vt[j] - read) : vt[j];
  }
  for (std::int64_t d = 0; d < key; ++d)
    for (std::int64_t j = 0; j < width; ++j)
      state[d * width + j] += kt[d] * written[static_cast<std::size_t>(j)];
  for (std::int64_t h = 0; h < heads; ++h) {
    const double* qt = q + (h * tokens + t) * key;
    double* to = y + (h * tokens + t) * width;
    for (std::int64_t d = 0; d < key; ++d)
      for (std::int64_t j = 0; j < width; ++j) to[j] += qt[d] * state[d * width + j];
  }
}

void Group::run() const {
  std::vector<double> written(static_cast<std::size_t>(width));
  StopPoints points;
  for (std::int64_t t = 0; t < tokens; ++t) {
    step(t, written);
    points((heads + 2) * key * width);
  }
}

}  // namespace

void LinearAttention::infer(InferContext& c) const {
  constexpr std::array<std::string_view, 6> names{"query", "key", "value", "state", "decay", "beta"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!c.has(i)) continue;
    require_float(c, i, names[i]);
    require_same_element(c, 0, i, names[i]);
    require_rank(c, i, 4, names[i]);
  }
  const auto heads = axis_of(c, 0, 1), groups = axis_of(c, 1, 1);
  const auto batch = axis_of(c, 0, 0), tokens = axis_of(c, 0, 2), key = axis_of(c, 0, 3),
             width = axis_of(c, 2, 3);
  if (heads.known() && groups.known())
    c.require(groups.size() > 0 && heads.size() % groups.size() == 0, "{} heads of queries for {} of keys",
              heads.size(), groups.size());
  require_shape(c, 1, Shape({batch, groups, tokens, key}), "key");
  require_shape(c, 2, Shape({batch, groups, tokens, width}), "value");
  require_shape(c, 3, Shape({batch, groups, key, width}), "state");
  if (c.has(4)) {
    const auto rows = axis_of(c, 4, 3);
    require_shape(c, 4, Shape({batch, groups, tokens, rows.is(1) ? rows : key}), "decay");
  }
  if (c.has(5)) {
    const auto own = axis_of(c, 5, 1);
    require_shape(c, 5, Shape({batch, own.is(1) ? own : groups, tokens, Dim(1)}), "beta");
  }
  c.set(0, c.element(0), Shape({batch, heads, tokens, width}));
  c.set(1, c.element(0), Shape({batch, groups, key, width}));
}

void LinearAttention::evaluate(EvalContext& c) const {
  const auto &q = c.dims(0), &v = c.dims(2);
  const auto groups = c.dims(1)[1], heads = q[1] / groups, tokens = q[2], key = q[3], width = v[3];
  const auto queries = c.doubles(0), keys = c.doubles(1), written = c.doubles(2),
             decay = c.has(4) ? c.doubles(4) : std::vector<double>(),
             beta = c.has(5) ? c.doubles(5) : std::vector<double>();
  auto state = c.doubles(3);
  std::vector<double> y(c.out(0).size());
  const auto rows = c.has(4) ? c.dims(4)[3] : 0, betas = c.has(5) ? c.dims(5)[1] : 0;
  parallel_for(q[0] * groups, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto own = betas == 1 ? i / groups : i;
      Group{tokens,
            key,
            width,
            heads,
            rows,
            queries.data() + i * heads * tokens * key,
            keys.data() + i * tokens * key,
            written.data() + i * tokens * width,
            c.has(4) ? decay.data() + i * tokens * rows : nullptr,
            c.has(5) ? beta.data() + own * tokens : nullptr,
            state.data() + i * key * width,
            y.data() + i * heads * tokens * width}
          .run();
    }
  });
  c.store(0, y);
  c.store(1, state);
}

}  // namespace lamina
