#include "ops/ctc_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/require.h"

namespace lamina {

void CTCLoss::infer(InferContext& c) const {
  require_rank(c, 0, 3, "logits");
  require_rank(c, 1, 1, "lengths of the logits");
  require_rank(c, 2, 2, "labels");
  require_rank(c, 3, 1, "lengths of the labels");
  for (const auto& [i, what] : {std::pair<std::size_t, const char*>(1, "lengths of the logits"),
                                {2, "labels"},
                                {3, "lengths of the labels"}})
    require_integer(c, i, what);
  const auto e = c.element(0);
  c.require(e == ElementType::undefined || is_float(e), "logits have type {}, wanted a float type",
            name_of(e));
  const auto blank = c.has(4) ? known_int(c, 4, "blank") : std::nullopt;
  Dim batch;
  for (const std::size_t i : {0, 1, 2, 3}) {
    if (!c.shape(i).ranked()) continue;
    c.require(batch.fits(c.shape(i)[0]), "input {} has shape {}, wanted a batch of {}", i,
              to_string(c.shape(i)), to_string(batch));
    if (!batch.known()) batch = c.shape(i)[0];
  }
  const auto &logits = c.shape(0), &labels = c.shape(2);
  if (logits.ranked()) {
    c.require(logits[2].high() >= 1, "logits have shape {}, wanted classes", to_string(logits));
    if (blank)
      c.require(*blank >= 0 && *blank < logits[2].high(), "blank is {}, wanted one of {} classes", *blank,
                to_string(logits[2]));
    if (labels.ranked())
      c.require(labels[1].fits(logits[1]), "labels have shape {}, wanted as many as the logits {} have times",
                to_string(labels), to_string(logits));
  }
  c.set(0, e, Shape{batch});
}

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// log(exp(a) + exp(b))
double log_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

/// What a sequence must read as.
Ints target_of(const CTCLoss& op, std::span<const std::int64_t> labels) {
  Ints out;
  for (const auto label : labels) {
    if (op.unique && std::find(out.begin(), out.end(), label) != out.end()) continue;
    if (op.preprocess_collapse_repeated && !out.empty() && out.back() == label) continue;
    out.push_back(label);
  }
  return out;
}

/// Log probabilities of the classes of one time.
void log_softmax(const double* x, std::vector<double>& out) {
  std::copy_n(x, out.size(), out.begin());
  const double most = *std::max_element(out.begin(), out.end());
  double sum = 0;
  for (const double v : out) sum += std::exp(v - most);
  for (double& v : out) v -= most + std::log(sum);
}

/// The log probability of all ways to read `target` in `times` rows of logits. State 2k is the blank before
/// label k, state 2k + 1 is label k.
double log_probability(const CTCLoss& op, const double* logits, std::int64_t times, std::int64_t classes,
                       const Ints& target, std::int64_t blank) {
  const auto states = 2 * target.size() + 1;
  std::vector<double> now(states, kNever), next(states), row(static_cast<std::size_t>(classes));
  now[0] = 0;
  StopPoints points(1 << 13);
  for (std::int64_t t = 0; t < times; ++t) {
    points(classes + static_cast<std::int64_t>(states));
    log_softmax(logits + t * classes, row);
    for (std::size_t s = 0; s < states; ++s) {
      const bool label = s % 2 == 1;
      const auto found = label ? target[s / 2] : blank;
      // a label stays only where repetitions count as one
      double sum = label && !op.ctc_merge_repeated ? kNever : now[s];
      if (s > 0) sum = log_sum(sum, now[s - 1]);
      if (label && s > 1 && (!op.ctc_merge_repeated || target[s / 2 - 1] != found))
        sum = log_sum(sum, now[s - 2]);
      next[s] = sum + row[static_cast<std::size_t>(found)];
    }
    std::swap(now, next);
  }
  return states == 1 ? now[0] : log_sum(now[states - 1], now[states - 2]);
}

std::int64_t checked(std::int64_t value, std::int64_t most, const char* what) {
  if (value < 0 || value > most) fail(ErrorCode::bad_input, "{} is {}, wanted 0..{}", what, value, most);
  return value;
}

}  // namespace

void CTCLoss::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto steps = dims[1], classes = dims[2];
  const auto logits = c.doubles(0);
  const Ints times = c.ints(1), labels = c.ints(2), counts = c.ints(3);
  const auto blank = c.has(4) ? c.ints(4).at(0) : classes - 1;
  std::vector<double> out(c.out().size());
  parallel_for(std::ssize(out), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto n = begin; n < end; ++n) {
      const auto at = static_cast<std::size_t>(n);
      const auto length = checked(times[at], steps, "the length of a sequence");
      const auto count = checked(counts[at], length, "the number of a sequence's labels");
      const auto target = target_of(*this, std::span(labels).subspan(static_cast<std::size_t>(n * steps),
                                                                     static_cast<std::size_t>(count)));
      for (const auto label : target) checked(label, classes - 1, "a label");
      out[at] = -log_probability(*this, logits.data() + n * steps * classes, length, classes, target, blank);
    }
  });
  c.store(0, out);
}

}  // namespace lamina
