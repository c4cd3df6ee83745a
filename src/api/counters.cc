#include "api/counters.h"

#include <tuple>

#include "api/layer_outcome.h"
#include "api/representative.h"

namespace lamina {
namespace {

/// True if step a stands for the layer rather than b: it took longer in the last run, or in all runs if
/// neither was in the last one.
bool is_dearer(const StepCount& a, const StepCount& b) {
  return std::tuple(a.latest, a.latest ? a.last : 0, a.sum) >
         std::tuple(b.latest, b.latest ? b.last : 0, b.sum);
}

/// Adds one step to a row, which may have several. Means are over all runs, so that rows add up to a run.
void add_times(LayerCounter& row, const StepCount& count) {
  const auto runs = static_cast<double>(count.all_runs);
  row.status = LayerStatus::executed;
  row.runs = count.all_runs;
  row.last_us += count.last;
  row.average_us += count.sum / runs;
  row.min_us += count.least;
  row.cpu_us += count.cpu / runs;
}

/// Rows of what was counted; what was not has an outcome in the plans that were, the last one first.
class Table {
 public:
  Table(const Compiled& compiled, const Runner& runner)
      : layers_(compiled.original().sources),
        representatives_(compiled.original()),
        counts_(runner.counts()) {
    for (const auto& layer : layers_)
      rows_.push_back({.name = layer.name, .type = layer.type, .kernel = "undef"});
    if (counts_.empty()) return;
    for (const auto& count : counts_)
      if (!count.moves) add_step(count);
    for (const auto& count : counts_) add_others(count);
    for (const auto& plans : runner.counted_plans())
      for (const auto& outcome : layer_outcomes(compiled, plans)) judge(outcome);
    for (const auto& count : counts_)
      if (count.moves) add_move(count);
  }
  std::vector<LayerCounter> take() { return std::move(rows_); }

 private:
  /// Adds a step to the row of the layer that names it; its work for other layers is included.
  void add_step(const StepCount& count) {
    const auto representative = representative_of(count.node);
    if (representative.valid()) return add(representative.index, count);
    // A step without a layer of the file, such as a reorder, gets a row of its own.
    rows_.push_back({.name = count.node.name, .type = count.node.op});
    add(rows_.size() - 1, count);
  }

  /// The row is executed as its dearest step is.
  void add(std::size_t row, const StepCount& count) {
    dearest_.resize(rows_.size());
    auto& dearest = dearest_[row];
    if (dearest == nullptr || is_dearer(count, *dearest)) dearest = &count;
    rows_[row].kernel = dearest->kernel;
    add_times(rows_[row], count);
  }

  /// Layers that the step runs, too: fused into its own, or in its bodies.
  void add_others(const StepCount& count) {
    if (count.moves) return;
    const auto into = name_of(count.node);
    for (const auto s : count.node.sources)
      if (s.index < layers_.size() && representatives_.stands_for(s, count.node.op)) is_in(s, into);
    for (std::uint32_t i = 0; i < layers_.size() && i < count.inside.size(); ++i)
      if (count.inside[i]) is_in({i}, into);
  }
  void is_in(SourceId s, const std::string& into) {
    auto& row = rows_[s.index];
    if (row.status != LayerStatus::not_run) return;
    row.status = LayerStatus::optimized_out;
    row.into = into;
  }

  /// A layer that no counted step stands for.
  void judge(const LayerOutcome& outcome) {
    auto& row = rows_[outcome.id.index];
    if (row.status != LayerStatus::not_run) return;
    switch (outcome.kind) {
      case LayerOutcome::Kind::runs:
      case LayerOutcome::Kind::body:
      case LayerOutcome::Kind::waiting:
      case LayerOutcome::Kind::untaken:
        return;
      case LayerOutcome::Kind::fused:
        if (outcome.nodes[0].step != nullptr) return;
        row.into = layers_.at(outcome.nodes[0].by.index).name;
        break;
      case LayerOutcome::Kind::free:
      case LayerOutcome::Kind::removed:
      case LayerOutcome::Kind::constant:
      case LayerOutcome::Kind::variable:
        break;
    }
    row.status = LayerStatus::optimized_out;
  }

  void add_move(const StepCount& count) {
    rows_.push_back({.name = fmt::format("{}_{}_{}_{}", name_of(count.node), lamina::name_of(count.from),
                                         lamina::name_of(count.to), name_of(count.reader)),
                     .type = "Reorder"});
    add(rows_.size() - 1, count);
  }

  SourceId representative_of(const NodeName& node) const {
    const auto representative = representatives_.of(node.name, node.op, node.sources);
    return representative.index < layers_.size() ? representative : SourceId{};
  }
  /// The name of the node's row.
  std::string name_of(const NodeName& node) const {
    const auto representative = representative_of(node);
    return representative.valid() ? layers_[representative.index].name : node.name;
  }

  const std::vector<Source>& layers_;
  const RepresentativeLayers representatives_;
  const std::vector<StepCount> counts_;
  std::vector<LayerCounter> rows_;
  std::vector<const StepCount*> dearest_;  // of each row
};

}  // namespace

std::vector<LayerCounter> counters_of(const Compiled& compiled, const Runner& runner) {
  return Table(compiled, runner).take();
}

}  // namespace lamina
