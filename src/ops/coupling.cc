#include "ops/coupling.h"

#include <cmath>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/require.h"

namespace lamina {

void PairwiseCoupling::infer(InferContext& c) const {
  require_float(c, 0, "probabilities of pairs");
  require_rank(c, 0, 2, "probabilities of pairs");
  c.require(classes >= 2 && classes <= 4096, "classes is {}, wanted 2..4096", classes);
  if (c.shape(0).ranked()) require_dim(c, c.shape(0)[1], Dim(classes * (classes - 1) / 2), "number of pairs");
  c.set(0, c.element(0), Shape{c.shape(0).ranked() ? c.shape(0)[0] : Dim(), Dim(classes)});
}

namespace {

/// One row: minimises p Q p, one class after the other.
void couple(const double* pairs, std::size_t k, double* p, std::vector<double>& q, std::vector<double>& r,
            StopPoints& points) {
  r.assign(k * k, 0);
  for (std::size_t i = 0, at = 0; i < k; ++i)
    for (std::size_t j = i + 1; j < k; ++j, ++at) {
      r[i * k + j] = pairs[at];
      r[j * k + i] = 1 - pairs[at];
    }
  q.assign(k * k, 0);
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < k; ++j) {
      if (i == j) continue;
      q[i * k + i] += r[j * k + i] * r[j * k + i];
      q[i * k + j] = -r[j * k + i] * r[i * k + j];
    }
  std::vector<double> qp(k);
  std::fill_n(p, k, 1.0 / static_cast<double>(k));
  const double enough = 0.005 / static_cast<double>(k);
  for (int round = 0; round < 100; ++round) {
    points(static_cast<std::int64_t>(k * k));
    double pqp = 0, error = 0;
    for (std::size_t i = 0; i < k; ++i) {
      qp[i] = 0;
      for (std::size_t j = 0; j < k; ++j) qp[i] += q[i * k + j] * p[j];
      pqp += p[i] * qp[i];
    }
    for (const double v : qp) error = std::max(error, std::fabs(v - pqp));
    if (error < enough) break;
    for (std::size_t i = 0; i < k; ++i) {
      const double own = q[i * k + i], diff = (pqp - qp[i]) / own;
      p[i] += diff;
      pqp = (pqp + diff * (diff * own + 2 * qp[i])) / ((1 + diff) * (1 + diff));
      for (std::size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + diff * q[i * k + j]) / (1 + diff);
        p[j] /= 1 + diff;
      }
    }
  }
}

}  // namespace

void PairwiseCoupling::evaluate(EvalContext& c) const {
  const auto x = c.doubles(0);
  const auto k = static_cast<std::size_t>(classes), pairs = k * (k - 1) / 2;
  std::vector<double> out(c.out().size());
  parallel_for(c.dims(0)[0], 1, [&](std::int64_t begin, std::int64_t end) {
    StopPoints points;
    std::vector<double> q, r;
    for (auto n = static_cast<std::size_t>(begin); n < static_cast<std::size_t>(end); ++n)
      couple(x.data() + n * pairs, k, out.data() + n * k, q, r, points);
  });
  c.store(0, out);
}

}  // namespace lamina
