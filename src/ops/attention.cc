#include "ops/attention.h"

#include <cmath>
#include <limits>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "graph/op_model.h"
#include "ops/linear_attention.h"
#include "ops/operators.h"
#include "ops/product.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {
namespace {

Dims leading(const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); }

Shape leading(const Shape& shape) {
  return Shape(std::vector<Dim>(shape.dims().begin(), shape.dims().end() - 2));
}

/// Everything about one call; batches are matrices [L,E], [S,E], [S,V].
struct Attention {
  std::int64_t rows = 0, columns = 0, size = 0, width = 0;
  std::vector<std::int64_t> q_matrix, k_matrix, v_matrix;  // per batch
  std::vector<double> q, k, v;
  double scale = 1;
  bool causal = false;
  std::vector<double> mask;           // added; empty: none
  std::vector<std::int64_t> mask_at;  // per batch, row and column

  void weights(std::int64_t batch, std::int64_t first, std::int64_t last, std::vector<double>& out) const;
  void softmax(std::vector<double>& weights) const;
};

/// weights = q * k^T * scale + mask for rows [first, last).
void Attention::weights(std::int64_t batch, std::int64_t first, std::int64_t last,
                        std::vector<double>& out) const {
  const double* query = q.data() + q_matrix[static_cast<std::size_t>(batch)] * rows * size;
  const double* key = k.data() + k_matrix[static_cast<std::size_t>(batch)] * columns * size;
  const Pieces pieces(columns, kTileCols);
  const auto fill = [this](const double* from, std::int64_t begin, std::int64_t end) {
    return [=, this](std::int64_t k0, std::int64_t k1, const Strips<double>& strips) {
      for (auto i = begin; i < end; ++i)
        for (auto e = k0; e < k1; ++e) strips.at(e - k0, i - begin) = from[i * size + e];
    };
  };
  for (std::int64_t p = 0; p < pieces.number; ++p) {
    const auto c0 = pieces.begin(p), c1 = pieces.end(p);
    const auto sums =
        tile_product<double>(last - first, c1 - c0, size, fill(query, first, last), fill(key, c0, c1));
    for (auto l = first; l < last; ++l)
      for (auto s = c0; s < c1; ++s) {
        double w = sums.at(l - first, s - c0) * scale;
        if (causal && s > l) w = -std::numeric_limits<double>::infinity();
        if (!mask.empty())
          w += mask[static_cast<std::size_t>(
              mask_at[static_cast<std::size_t>((batch * rows + l) * columns + s)])];
        out[static_cast<std::size_t>((l - first) * columns + s)] = w;
      }
  }
}

/// Row by row. A row in which nothing takes part gives NaN, as the formula says.
void Attention::softmax(std::vector<double>& weights) const {
  for (std::size_t row = 0; row < weights.size(); row += static_cast<std::size_t>(columns)) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    const auto end = row + static_cast<std::size_t>(columns);
    for (auto i = row; i < end; ++i) most = std::max(most, weights[i]);
    for (auto i = row; i < end; ++i) sum += weights[i] = std::exp(weights[i] - most);
    for (auto i = row; i < end; ++i) weights[i] /= sum;
  }
}

}  // namespace

void ScaledDotProductAttention::infer(InferContext& c) const {
  constexpr std::array<std::string_view, 3> names{"query", "key", "value"};
  for (std::size_t i = 0; i < 3; ++i) {
    require_float(c, i, names[i]);
    require_same_element(c, 0, i, names[i]);
    require_rank(c, i, 2, SIZE_MAX, names[i]);
  }
  if (c.has(3)) {
    const auto e = c.element(3);
    c.require(e == ElementType::undefined || e == ElementType::boolean || is_float(e),
              "mask is {}, wanted booleans or floats", name_of(e));
  }
  if (c.has(4)) {
    require_float(c, 4, "scale");
    require_dim(c, c.shape(4).count(), 1, "number of scales");
  }
  const auto &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  if (!q.ranked() || !k.ranked() || !v.ranked()) return c.set(0, c.element(0), Shape());
  require_dim(c, k[k.rank() - 1], q[q.rank() - 1], "last dim of the key");
  require_dim(c, v[v.rank() - 2], k[k.rank() - 2], "number of values");
  const auto keys = broadcast(leading(q), leading(k));
  const auto batch = keys ? broadcast(*keys, leading(v)) : std::nullopt;
  c.require(batch.has_value(), "leading dims of {}, {} and {} do not broadcast", to_string(q), to_string(k),
            to_string(v));
  auto out = batch->dims();
  out.push_back(q[q.rank() - 2]);
  if (c.has(3) && !causal) {
    auto scores = out;
    scores.push_back(k[k.rank() - 2]);
    require_broadcast(c, 3, Shape(std::move(scores)), "mask");
  }
  out.push_back(v[v.rank() - 1]);
  c.set(0, c.element(0), Shape(std::move(out)));
}

void ScaledDotProductAttention::evaluate(EvalContext& c) const {
  const auto &q = c.dims(0), &k = c.dims(1), &v = c.dims(2);
  const Dims batch = leading(c.out_dims());
  Attention a;
  a.rows = q[q.size() - 2];
  a.columns = k[k.size() - 2];
  a.size = q.back();
  a.width = v.back();
  a.q = c.doubles(0);
  a.k = c.doubles(1);
  a.v = c.doubles(2);
  a.q_matrix = broadcast_offsets(leading(q), batch);
  a.k_matrix = broadcast_offsets(leading(k), batch);
  a.v_matrix = broadcast_offsets(leading(v), batch);
  a.scale = c.has(4) ? c.doubles(4)[0] : 1 / std::sqrt(static_cast<double>(a.size));
  a.causal = causal;
  if (c.has(3) && !causal) {
    a.mask = c.doubles(3);
    if (c.in(3).element_type() == ElementType::boolean)
      for (auto& m : a.mask) m = m != 0 ? 0 : -std::numeric_limits<double>::infinity();
    auto scores = batch;
    scores.insert(scores.end(), {a.rows, a.columns});
    a.mask_at = broadcast_offsets(a.mask.size() == 1 ? Dims{} : c.dims(3), scores);
  }
  std::vector<double> y(c.out().size());
  const Pieces pieces(a.rows, kTileRows);
  parallel_for(volume(batch, 0, batch.size()) * pieces.number, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto task = begin; task < end; ++task) {
      const auto b = task / pieces.number, first = pieces.begin(task % pieces.number),
                 last = pieces.end(task % pieces.number);
      std::vector<double> weights(static_cast<std::size_t>((last - first) * a.columns));
      a.weights(b, first, last, weights);
      a.softmax(weights);
      StopPoints points;
      const double* value = a.v.data() + a.v_matrix[static_cast<std::size_t>(b)] * a.columns * a.width;
      for (auto l = first; l < last; ++l) {
        double* __restrict to = y.data() + (b * a.rows + l) * a.width;
        for (std::int64_t s = 0; s < a.columns; ++s) {
          const double w = weights[static_cast<std::size_t>((l - first) * a.columns + s)];
          for (std::int64_t i = 0; i < a.width; ++i) to[i] += w * value[s * a.width + i];
          points(a.width);
        }
      }
    }
  });
  c.store(0, y);
}

void register_attention(Registry& r) {
  r.add<ScaledDotProductAttention>();
  r.add<LinearAttention>();
}

}  // namespace lamina
