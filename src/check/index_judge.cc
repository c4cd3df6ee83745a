#include "check/index_judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "check/score_rows.h"
#include "ops/eval.h"

namespace lamina::checking {
namespace {

constexpr double kLevelInOneOf = 25;  // elements may be a level off where no sample shows it
constexpr double kInfinite = std::numeric_limits<double>::infinity();

using Indices = std::vector<std::vector<std::int64_t>>;

class IndexJudge {
 public:
  explicit IndexJudge(const IndexCase& c)
      : case_(c),
        op_(*c.chooser.op.as<TopK>()),
        rows_(op_, c.reader.scores(), c.reader.indices()),
        order_(order_of(c.reader.sources())) {}

  Agreement result() && {
    auto out = measured(pairs_of(case_.got, case_.stored, false), false);
    out.integers = true;
    out.ranking.reset();
    out.mismatches = count_mismatches(case_.got, case_.stored);
    const auto stored = losses_of(case_.reader.read(case_.stored), case_.reader.sources(), order_);
    if (!stored.fault.empty()) {
      out.fault = stored.fault + fmt::format(" at [{}]", fmt::join(place_in_result(stored.at), ","));
      return out;
    }
    const auto seen = seen_losses();
    const auto noise = noise_by_row(stored.taken);
    const double most = std::max(*std::max_element(noise.begin(), noise.end()), seen.largest);
    double worst = -1;
    for (std::size_t e = 0; e < stored.loss.size(); ++e) {
      const double own = noise[rows_.row_of(case_.reader.sources()[e])];
      // One row alone may be as far off as any was.
      const double allowed = std::min(kStoredMargin * most, kStoredMargin * own + most) + 1.01 * case_.step;
      const double loss = stored.loss[e], share = loss == 0 ? 0 : loss / allowed;
      if (share <= worst) continue;
      worst = share;
      out.loss = {loss, allowed};
      if (loss > allowed)
        out.fault = fmt::format("the score at the stored index is worse than roundings explain at [{}]",
                                fmt::join(place_in_result(e), ","));
    }
    if (const auto n = static_cast<double>(stored.taken.size());
        out.ok() && stored.rest > kStoredMargin * seen.sum + case_.step * n / kLevelInOneOf)
      out.fault = "the scores at the stored indices are worse together than roundings explain";
    return out;
  }

 private:
  /// What a set of indices loses, beyond the tolerance.
  struct Losses {
    double largest = 0, second = 0, sum = 0;
    double rest = 0;                  ///< the sum without the largest two, which chance may make
    std::vector<double> loss;         ///< of each element
    std::vector<std::int64_t> taken;  ///< the index by which each element is explained
    std::string fault;
    std::size_t at = 0;  ///< the fault's element

    void add(std::size_t element, double l) {
      loss[element] = l;
      sum += l;
      if (l > largest) std::swap(l, largest);
      if (l > second) std::swap(l, second);
      rest += l;
    }
  };

  static std::vector<std::size_t> everything(std::size_t size) {
    std::vector<std::size_t> out(size);
    std::iota(out.begin(), out.end(), 0u);
    return out;
  }

  /// Elements row by row, in each row by place.
  std::vector<std::size_t> order_of(const std::vector<std::size_t>& sources) const {
    auto out = everything(sources.size());
    std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(rows_.row_of(sources[a]), rows_.place_of(sources[a])) <
             std::pair(rows_.row_of(sources[b]), rows_.place_of(sources[b]));
    });
    return out;
  }

  Losses losses_of(const Indices& indices, const std::vector<std::size_t>& sources,
                   const std::vector<std::size_t>& order) const {
    Losses out;
    out.taken.assign(indices.size(), 0);
    out.loss.assign(indices.size(), 0);
    for (std::size_t first = 0, end = 0; first < order.size() && out.fault.empty(); first = end) {
      const auto row = rows_.row_of(sources[order[first]]);
      while (end < order.size() && rows_.row_of(sources[order[end]]) == row) ++end;
      add_row(row, std::span(order).subspan(first, end - first), indices, sources, out);
    }
    return out;
  }

  /// `elements` of one row, by place.
  void add_row(std::size_t row, std::span<const std::size_t> elements, const Indices& indices,
               const std::vector<std::size_t>& sources, Losses& out) const {
    std::vector<std::size_t> once;  // an element for each place
    std::vector<bool> used(static_cast<std::size_t>(rows_.size()), false);
    for (const auto e : elements) {
      const bool again = !once.empty() && sources[once.back()] == sources[e];
      const auto place = rows_.place_of(sources[e]);
      std::int64_t taken = -1;
      out.fault = again ? take_again(indices[e], taken = out.taken[once.back()])
                        : take(row, place, indices[e], used, taken);
      if (!out.fault.empty()) {
        out.at = e;
        return;
      }
      out.taken[e] = taken;
      if (again) continue;
      if (op_.sort == TopKSort::index && !once.empty() && indices[e].size() == 1 &&
          taken < out.taken[once.back()]) {
        out.fault =
            fmt::format("index {} stands behind {}, though indices ascend", taken, out.taken[once.back()]);
        out.at = e;
        return;
      }
      once.push_back(e);
      used[static_cast<std::size_t>(taken)] = true;
    }
    add_losses(row, std::move(once), sources, out);
  }

  /// `once`: an element for each place of the row.
  void add_losses(std::size_t row, std::vector<std::size_t> once, const std::vector<std::size_t>& sources,
                  Losses& out) const {
    if (rows_.undecided(row)) return;
    if (op_.sort == TopKSort::value) {
      for (const auto e : once)
        add_loss(rows_.best(row, rows_.place_of(sources[e])), rows_.score(row, out.taken[e]), e, out);
      return;
    }
    std::stable_sort(once.begin(), once.end(), [&](std::size_t a, std::size_t b) {
      return rows_.score(row, out.taken[a]) > rows_.score(row, out.taken[b]);
    });
    for (std::size_t q = 0; q < once.size(); ++q) {
      // Where only some places of a row are in the result, these may be its worst ones.
      const Exact best = rows_.best(row, rows_.places() - once.size() + q);
      const Exact score = rows_.score(row, out.taken[once[q]]);
      if (score < best) add_loss(best, score, once[q], out);
    }
  }

  /// Takes the index whose score is nearest to the place's. Returns what is wrong.
  std::string take(std::size_t row, std::size_t place, const std::vector<std::int64_t>& from,
                   const std::vector<bool>& used, std::int64_t& taken) const {
    if (from.empty()) return "no index gives the stored value";
    double nearest = kInfinite;
    for (const auto j : from) {
      if (j < 0 || j >= rows_.size())
        return fmt::format("index {} lies outside of the axis of {}", j, rows_.size());
      if (used[static_cast<std::size_t>(j)]) continue;
      const double off = std::fabs(distance(rows_.best(row, place), rows_.score(row, j)));
      if (taken < 0 || off < nearest) taken = j, nearest = off;
    }
    return taken >= 0 ? "" : fmt::format("index {} stands twice in a row of indices", from.front());
  }

  /// The same index arrives at another element of the result.
  static std::string take_again(const std::vector<std::int64_t>& from, std::int64_t taken) {
    return std::find(from.begin(), from.end(), taken) != from.end() ? "" : "one index has two values";
  }

  static double distance(Exact a, Exact b) { return a == b ? 0 : static_cast<double>(a - b); }

  void add_loss(Exact best, Exact score, std::size_t element, Losses& out) const {
    const double off = std::fabs(distance(best, score));
    const double loss =
        std::isinf(off)
            ? kInfinite
            : off - case_.tolerance * static_cast<double>(std::max(std::fabs(best), std::fabs(score)));
    if (loss > 0) out.add(element, loss);
  }

  /// The most that a sample's choices lose, measured by the reference's scores.
  Losses seen_losses() const {
    Losses out;
    const auto add = [&](const Losses& l) {
      if (!l.fault.empty()) return;
      out.largest = std::max(out.largest, l.largest), out.sum = std::max(out.sum, l.sum);
    };
    const auto sources = everything(case_.reader.indices().size());
    const auto order = order_of(sources);
    for (const auto& sample : case_.indices) {
      if (!sample.valid() || sample.shape() != case_.reader.indices().shape()) continue;
      Indices indices;
      for (const auto j : to_numbers<std::int64_t>(sample.to_aligned())) indices.push_back({j});
      add(losses_of(indices, sources, order));
    }
    if (case_.got_is_right) add(losses_of(case_.reader.read(case_.got), case_.reader.sources(), order_));
    return out;
  }

  /// How far samples move scores of each row against each other: the best ones, and those that anybody chose.
  std::vector<double> noise_by_row(const std::vector<std::int64_t>& taken) const {
    std::vector<double> most(rows_.count(), 0);
    for (const auto& scores : case_.scores) {
      if (!scores.valid() || scores.shape() != case_.reader.scores().shape()) continue;
      const ScoreRows sample(op_, scores, case_.reader.indices());
      std::vector<double> low(rows_.count(), kInfinite), high(rows_.count(), -kInfinite);
      const auto see = [&](std::size_t row, std::int64_t j) {
        const auto off = static_cast<double>(sample.score(row, j) - rows_.score(row, j));
        if (std::isfinite(off)) low[row] = std::min(low[row], off), high[row] = std::max(high[row], off);
      };
      for (std::size_t row = 0; row < rows_.count(); ++row) {
        for (const auto j : rows_.contenders(row)) see(row, j);
        for (const auto j : sample.contenders(row).first(sample.places())) see(row, j);
      }
      for (std::size_t e = 0; e < taken.size(); ++e) see(rows_.row_of(case_.reader.sources()[e]), taken[e]);
      for (std::size_t row = 0; row < rows_.count(); ++row)
        if (high[row] > low[row]) most[row] = std::max(most[row], high[row] - low[row]);
    }
    return most;
  }

  Dims place_in_result(std::size_t element) const { return place_of(element, case_.stored.shape()); }

  const IndexCase& case_;
  const TopK& op_;
  ScoreRows rows_;
  std::vector<std::size_t> order_;
};

}  // namespace

Agreement judge_indices(const IndexCase& c) { return IndexJudge(c).result(); }

}  // namespace lamina::checking
