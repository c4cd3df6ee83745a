#include "ops/recurrent_math.h"

#include <algorithm>
#include <cmath>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/product.h"
#include "ops/scalar.h"

namespace lamina {
namespace {

struct NamedFunction {
  std::string_view name;
  double (*apply)(double, double, double);
  double alpha, beta;  // defaults, as in ONNX
};

constexpr std::array<NamedFunction, 11> kFunctions{{
    {"affine", [](double x, double a, double b) { return a * x + b; }, 1, 0},
    {"elu", [](double x, double a, double) { return scalar::elu(x, a); }, 1, 0},
    {"hardsigmoid", [](double x, double a, double b) { return scalar::hard_sigmoid(x, a, b); }, 0.2, 0.5},
    {"leakyrelu", [](double x, double a, double) { return x < 0 ? a * x : x; }, 0.01, 0},
    {"relu", [](double x, double, double) { return x < 0 ? 0 : x; }, 0, 0},
    {"scaledtanh", [](double x, double a, double b) { return a * std::tanh(b * x); }, 1, 1},
    {"sigmoid", [](double x, double, double) { return scalar::sigmoid(x); }, 0, 0},
    {"softplus", [](double x, double, double) { return scalar::softplus(x); }, 0, 0},
    {"softsign", [](double x, double, double) { return x / (1 + std::fabs(x)); }, 0, 0},
    {"tanh", [](double x, double, double) { return std::tanh(x); }, 0, 0},
    {"thresholdedrelu", [](double x, double a, double) { return x > a ? x : 0; }, 1, 0},
}};

const NamedFunction* find_function(std::string_view name) {
  std::string lower(name);
  for (auto& ch : lower)
    if (ch >= 'A' && ch <= 'Z') ch = static_cast<char>(ch - 'A' + 'a');
  for (const auto& f : kFunctions)
    if (f.name == lower) return &f;
  return nullptr;
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// One direction of a task: its slices of the weights, and the steps of one sequence.
class Runner {
 public:
  Runner(const RecurrentTask& t, std::int64_t direction);
  void run_sequence(std::int64_t n, RecurrentResult& out) const;

 private:
  using Vector = std::vector<double>;

  void step(const double* wx, Vector& h, Vector& c) const;
  void lstm(const double* wx, const Vector& rh, Vector& h, Vector& c) const;
  void gru(const double* wx, const Vector& rh, Vector& h) const;
  /// Recurrence weights of gates [first, last) times a vector.
  Vector recur(const Vector& v, std::int64_t first, std::int64_t last) const;
  double bias(std::int64_t i) const { return b_ ? b_[i] : 0; }
  double gate(std::size_t function, double x) const {
    if (t_.clip > 0) x = scalar::clamp(x, -t_.clip, t_.clip);
    return functions_[function](x);
  }

  const RecurrentTask& t_;
  std::int64_t direction_, directions_, gates_;
  bool reverse_;
  const double *b_ = nullptr, *p_ = nullptr;
  std::vector<GateFunction> functions_;
  Vector r_;   // transposed: [hidden, gates * hidden]
  Vector wx_;  // W * x of all steps: [batch, time, gates * hidden]
};

std::int64_t gates_of(RecurrentKind kind) {
  return kind == RecurrentKind::lstm ? 4 : kind == RecurrentKind::gru ? 3 : 1;
}

/// y[i, j] = sum over k of x[i, k] * w[j, k]
std::vector<double> products(const double* x, const double* w, std::int64_t rows, std::int64_t cols,
                             std::int64_t depth) {
  std::vector<double> y(index(rows * cols));
  const Pieces m(rows, kTileRows), n(cols, kTileCols);
  const auto fill = [depth](const double* from, std::int64_t count) {
    return [=](std::int64_t k0, std::int64_t k1, const Strips<double>& strips) {
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t k = k0; k < k1; ++k) strips.at(k - k0, i) = from[i * depth + k];
    };
  };
  parallel_for(m.number * n.number, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto task = begin; task < end; ++task) {
      const auto i0 = m.begin(task / n.number), i1 = m.end(task / n.number);
      const auto j0 = n.begin(task % n.number), j1 = n.end(task % n.number);
      const auto sums = tile_product<double>(i1 - i0, j1 - j0, depth, fill(x + i0 * depth, i1 - i0),
                                             fill(w + j0 * depth, j1 - j0));
      for (auto i = i0; i < i1; ++i)
        for (auto j = j0; j < j1; ++j) y[index(i * cols + j)] = sums.at(i - i0, j - j0);
    }
  });
  return y;
}

Runner::Runner(const RecurrentTask& t, std::int64_t direction)
    : t_(t),
      direction_(direction),
      directions_(t.direction == Direction::bidirectional ? 2 : 1),
      gates_(gates_of(t.kind)),
      reverse_(t.direction == Direction::reverse || direction == 1) {
  const auto width = gates_ * t.hidden;
  if (!t.b.empty()) b_ = t.b.data() + direction * static_cast<std::int64_t>(t.b.size()) / directions_;
  if (!t.p.empty()) p_ = t.p.data() + direction * 3 * t.hidden;
  const auto per_direction = static_cast<std::ptrdiff_t>(t.kind == RecurrentKind::lstm  ? 3
                                                         : t.kind == RecurrentKind::gru ? 2
                                                                                        : 1);
  const bool own = static_cast<std::ptrdiff_t>(t.activations.size()) == 2 * per_direction;
  functions_.assign(t.activations.begin() + (own ? direction * per_direction : 0),
                    t.activations.begin() + (own ? (direction + 1) * per_direction : per_direction));
  r_.resize(index(t.hidden * width));
  const double* r = t.r.data() + direction * width * t.hidden;
  for (std::int64_t j = 0; j < width; ++j)
    for (std::int64_t k = 0; k < t.hidden; ++k) r_[index(k * width + j)] = r[j * t.hidden + k];
  wx_ = products(t.x.data(), t.w.data() + direction * width * t.input, t.batch * t.time, width, t.input);
}

Runner::Vector Runner::recur(const Vector& v, std::int64_t first, std::int64_t last) const {
  const auto width = gates_ * t_.hidden, count = (last - first) * t_.hidden;
  Vector out(index(count));
  double* __restrict to = out.data();
  for (std::int64_t k = 0; k < t_.hidden; ++k) {
    const double s = v[index(k)];
    const double* __restrict from = r_.data() + k * width + first * t_.hidden;
    for (std::int64_t j = 0; j < count; ++j) to[j] += s * from[j];
  }
  return out;
}

void Runner::lstm(const double* wx, const Vector& rh, Vector& h, Vector& c) const {
  const auto n = t_.hidden;
  for (std::int64_t j = 0; j < n; ++j) {
    const auto sum = [&](std::int64_t gate) {
      return wx[gate * n + j] + rh[index(gate * n + j)] + bias(gate * n + j);
    };
    const auto peephole = [&](std::int64_t which) { return p_ ? p_[which * n + j] : 0; };
    const double before = c[index(j)];
    const double i = gate(0, sum(1) + peephole(0) * before);
    const double f = t_.coupled ? 1 - i : gate(0, sum(0) + peephole(2) * before);
    const double now = f * before + i * gate(1, sum(2));
    const double o = gate(0, sum(3) + peephole(1) * now);
    c[index(j)] = now;
    h[index(j)] = o * functions_[2](now);
  }
}

void Runner::gru(const double* wx, const Vector& rh, Vector& h) const {
  const auto n = t_.hidden;
  Vector z(index(n)), r(index(n)), reset(index(n));
  for (std::int64_t j = 0; j < n; ++j) {
    z[index(j)] = gate(0, wx[j] + rh[index(j)] + bias(j));
    r[index(j)] = gate(0, wx[n + j] + rh[index(n + j)] + bias(n + j));
    reset[index(j)] = r[index(j)] * h[index(j)];
  }
  const auto inner = t_.linear_before_reset ? Vector() : recur(reset, 2, 3);
  for (std::int64_t j = 0; j < n; ++j) {
    const double recurrent =
        t_.linear_before_reset ? r[index(j)] * (rh[index(2 * n + j)] + bias(3 * n + j)) : inner[index(j)];
    const double candidate = gate(1, wx[2 * n + j] + recurrent + bias(2 * n + j));
    h[index(j)] = (1 - z[index(j)]) * candidate + z[index(j)] * h[index(j)];
  }
}

void Runner::step(const double* wx, Vector& h, Vector& c) const {
  const bool all = t_.kind != RecurrentKind::gru || t_.linear_before_reset;
  const auto rh = recur(h, 0, all ? gates_ : 2);
  if (t_.kind == RecurrentKind::lstm) return lstm(wx, rh, h, c);
  if (t_.kind == RecurrentKind::gru) return gru(wx, rh, h);
  for (std::int64_t j = 0; j < t_.hidden; ++j) h[index(j)] = gate(0, wx[j] + rh[index(j)] + bias(j));
}

void Runner::run_sequence(std::int64_t n, RecurrentResult& out) const {
  const auto hidden = t_.hidden, state = (n * directions_ + direction_) * hidden;
  const auto initial = [&](const Vector& from) {
    return from.empty() ? Vector(index(hidden)) : Vector(from.begin() + state, from.begin() + state + hidden);
  };
  auto h = initial(t_.h), c = initial(t_.c);
  const auto length = t_.lengths.empty() ? t_.time : t_.lengths[index(n)];
  StopPoints points;
  for (std::int64_t s = 0; s < length; ++s) {
    points(gates_ * hidden * (hidden + 16));
    const auto at = reverse_ ? length - 1 - s : s;
    step(wx_.data() + (n * t_.time + at) * gates_ * hidden, h, c);
    std::copy(h.begin(), h.end(), out.y.begin() + ((n * directions_ + direction_) * t_.time + at) * hidden);
  }
  std::copy(h.begin(), h.end(), out.h.begin() + state);
  if (t_.kind == RecurrentKind::lstm) std::copy(c.begin(), c.end(), out.c.begin() + state);
}

}  // namespace

bool known_activation(std::string_view name) { return find_function(name) != nullptr; }

std::string activation_names() {
  std::string all;
  for (const auto& f : kFunctions) all += (all.empty() ? "" : ", ") + std::string(f.name);
  return all;
}

std::vector<GateFunction> activations_of(const Recurrent& op) {
  std::vector<GateFunction> out;
  for (std::size_t i = 0; i < op.activations.size(); ++i) {
    const auto* f = find_function(op.activations[i]);
    LAMINA_CHECK(f, "activation {}", op.activations[i]);
    out.push_back({f->apply, i < op.activations_alpha.size() ? op.activations_alpha[i] : f->alpha,
                   i < op.activations_beta.size() ? op.activations_beta[i] : f->beta});
  }
  return out;
}

RecurrentResult run(const RecurrentTask& task) {
  const std::int64_t directions = task.direction == Direction::bidirectional ? 2 : 1;
  RecurrentResult out;
  const auto states = index(task.batch * directions * task.hidden);
  out.y.resize(states * index(task.time));
  out.h.resize(states);
  if (task.kind == RecurrentKind::lstm) out.c.resize(states);
  if (states == 0) return out;
  for (std::int64_t d = 0; d < directions; ++d) {
    const Runner runner(task, d);
    parallel_for(task.batch, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto n = begin; n < end; ++n) runner.run_sequence(n, out);
    });
  }
  return out;
}

}  // namespace lamina
