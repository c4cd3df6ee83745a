#include "tests/sweep/check.h"

#include <algorithm>
#include <cmath>

#include "base/arena.h"
#include "base/error.h"
#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "kernels/epilogue.h"
#include "ops/eval.h"
#include "ops/operators.h"
#include "tests/sweep/layer.h"
#include "tests/sweep/run.h"

namespace lamina::sweep {
namespace {

constexpr std::size_t kSuspects = 8;  // elements of the largest differences that are looked at

/// One offer's result, as far as it is kept.
struct Result {
  std::string kernel, label;
  int threads;
  std::map<std::int64_t, float> at;  ///< elements that are looked at
};

/// Elements at which two results differ most, for their size.
std::vector<std::int64_t> suspects(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<std::pair<float, std::int64_t>> worst;
  float least = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    float off = std::fabs(a[i] - b[i]) / (1 + std::fabs(a[i]));
    if (std::isnan(off)) off = std::numeric_limits<float>::infinity();
    if (off <= least) continue;
    worst.emplace_back(off, static_cast<std::int64_t>(i));
    std::push_heap(worst.begin(), worst.end(), std::greater<>());
    if (worst.size() <= kSuspects) continue;
    std::pop_heap(worst.begin(), worst.end(), std::greater<>());
    worst.pop_back();
    least = worst.front().first;
  }
  std::vector<std::int64_t> out;
  for (const auto& [off, i] : worst) out.push_back(i);
  return out;
}

std::string without_numbers(std::string text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool in_word =
        i > 0 && (std::isalnum(static_cast<unsigned char>(text[i - 1])) || text[i - 1] == '_');
    if (!std::isdigit(static_cast<unsigned char>(text[i])) || in_word) {
      if (!std::isdigit(static_cast<unsigned char>(text[i])) || out.empty() || out.back() != 'N')
        out += text[i];
    } else if (out.empty() || out.back() != 'N') {
      out += 'N';
    }
  }
  return out;
}

class Checker {
 public:
  Checker(const Case& c, const CheckOptions& options) : c_(c), options_(options) {
    if (c.kind == Kind::graph)
      prepare_graph();
    else
      prepare_layer();
  }

  Outcome run() {
    // One of ours first, to compare with: on a number of threads that differs from case to case.
    const auto count = options_.threads.size();
    if (options_.compare && anchor_.empty()) run_all(options_.threads[c_.seed % count], true);
    for (const int threads : options_.threads) run_all(threads, false);
    judge();
    return std::move(outcome_);
  }

 private:
  void prepare_layer() {
    layer_ = std::make_unique<Layer>(c_);
    const auto depth = static_cast<std::size_t>(std::max<std::int64_t>(1, depth_of(c_)));
    points_ = layer_->points(std::clamp<std::size_t>(options_.products / depth, 24, 2000));
  }
  void prepare_graph() {
    graph_ = parse_graph(c_.text, operators());
    node_ = graph_.order().back();
    std::uint64_t seed = c_.seed;
    std::vector<Tensor> given;
    for (const auto v : graph_.inputs())
      given.push_back(seeded_tensor(graph_.type(v).element, graph_.type(v).shape.sizes(), ++seed));
    InterpreterOptions observe;
    observe.observe = [&](const Graph&, NodeId, const std::vector<Tensor>& in,
                          const std::vector<Tensor>& out) {
      inputs_ = in;
      anchor_ = to_floats(out.at(0));
    };
    wanted_ = to_floats(interpret(graph_, given, observe).at(0));
    anchor_ = wanted_;
  }

  const Graph& graph() const { return layer_ ? layer_->graph() : graph_; }
  NodeId node() const { return layer_ ? layer_->node() : node_; }
  const std::vector<Tensor>& inputs() const { return layer_ ? layer_->inputs() : inputs_; }

  void run_all(int threads, bool ours) {
    on_threads(threads, [&] {
      const auto answers = ask_kernels(NodeView(graph(), node()));
      if (!ours)
        for (const auto& r : answers.refusals)
          if (r.kernel.starts_with("onednn")) ++outcome_.refusals[without_numbers(r.reason)];
      for (const auto& offer : answers.offers) {
        if (offer.is_view || offer.last_resort || offer.stages < epilogue_size(graph().node(node())))
          continue;
        const bool wanted = offer.kernel.starts_with(options_.kernel);
        if (ours ? wanted || offer.kernel.find("native") == std::string::npos : !wanted) continue;
        run_one(offer, threads);
        if (ours) break;
      }
    });
  }

  void run_one(const Offer& offer, int threads) {
    set_running(fmt::format("{} on {} threads: {}", offer.label, threads, to_line(c_)));
    const auto values =
        to_floats(run_offer(graph(), node(), offer, inputs(), {c_.seed % 2 == 0, options_.behind}).at(0));
    ++outcome_.runs;
    outcome_.labels.insert(offer.label);
    Result result{offer.kernel, offer.label, threads, {}};
    if (anchor_.empty()) {
      anchor_ = values;
    } else {
      for (const auto i : suspects(anchor_, values)) result.at[i] = values[static_cast<std::size_t>(i)];
    }
    for (const auto i : points_) result.at[i] = values[static_cast<std::size_t>(i)];
    results_.push_back(std::move(result));
  }

  Expected expected(std::int64_t i) const {
    if (layer_) return layer_->at(i);
    const double value = wanted_[static_cast<std::size_t>(i)];
    const bool half = graph().type(graph().node(node()).outputs[0]).element == ElementType::bf16;
    return {value, (half ? 0x1p-7 : 3e-5) * std::fabs(value) + 3e-5};
  }

  void judge() {
    std::map<std::int64_t, Expected> known;
    for (auto& r : results_) {
      // Where others differ from the first it may be the wrong one.
      if (&r == &results_.front() && layer_)
        for (const auto& other : results_)
          for (const auto& [i, value] : other.at) r.at[i] = anchor_[static_cast<std::size_t>(i)];
      std::size_t wrong = 0;
      std::string first;
      for (const auto& [i, value] : r.at) {
        auto it = known.find(i);
        if (it == known.end()) it = known.emplace(i, expected(i)).first;
        const auto& e = it->second;
        if (std::fabs(value - e.value) <= e.error || value == e.value) continue;
        if (wrong++ == 0)
          first = fmt::format("element {} is {}, wanted {} +- {}", i, value, e.value, e.error);
      }
      if (wrong != 0)
        outcome_.wrong.push_back(
            {r.kernel, r.label, fmt::format("{}; {} of {} looked at", first, wrong, r.at.size()), r.threads});
    }
  }

  const Case& c_;
  const CheckOptions& options_;
  std::unique_ptr<Layer> layer_;
  Graph graph_;
  NodeId node_;
  std::vector<Tensor> inputs_;
  std::vector<float> wanted_, anchor_;
  std::vector<std::int64_t> points_;
  std::vector<Result> results_;
  Outcome outcome_;
};

}  // namespace

Outcome check(const Case& c, const CheckOptions& options) { return Checker(c, options).run(); }

}  // namespace lamina::sweep
