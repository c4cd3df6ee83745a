#include "quantise/leave_out.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/progress.h"
#include "ops/activation.h"
#include "quantise/layer_queries.h"

namespace lamina {
namespace {

constexpr double kWanted = 6;          // dB more are enough: half the noise's amplitude
constexpr double kGood = 50;           // dB: there is nothing to mend
constexpr double kWorthwhile = 0.3;    // dB more are the least that is worth leaving out something
constexpr double kWorthNaming = 0.01;  // of the outputs' noise
constexpr std::size_t kMostLeftOut = 16;

/// Nodes that a quantiser is told to leave alone, in one step, each once.
using Candidate = std::vector<NodeId>;

class LeaveOut {
 public:
  LeaveOut(NoisyOutputs& outputs, std::vector<NoiseRow>& rows, double snr)
      : outputs_(outputs),
        g_(outputs.models.f32_graph),
        switches_(outputs.models.switched.switches),
        rows_(rows),
        snr_(snr) {}

  LeftOut run() && {
    measure_shares();
    out_.sqnr_db = snr_;
    if (snr_ >= kGood) return std::move(out_);
    std::vector<std::size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return rows_[a].noise.share > rows_[b].noise.share; });
    std::erase_if(order, [&](auto i) { return rows_[i].noise.share < kWorthNaming; });
    if (order.size() > kMostLeftOut) order.resize(kMostLeftOut);
    Candidate nodes, best;
    double most = kWorthwhile;
    for (const auto i : order) {
      for (const auto n : candidate(rows_[i])) add(n, nodes);
      const double gained = gain(without(nodes));
      if (gained >= most) {
        out_.sqnr_db = snr_ + gained;
        best = nodes;
        most = gained;
      }
      if (gained >= kWanted) break;
      most += kWorthwhile;  // each further step must pay, too
    }
    name(best);
    return std::move(out_);
  }

 private:
  Switched only(const std::vector<std::size_t>& on) const {
    auto out = outputs_.all(false);
    for (const auto i : on) out[i] = true;
    return out;
  }

  void measure_shares() {
    StageProgress progress(outputs_.models.running.progress, "quantising one layer at a time", rows_.size());
    double sum = 0;
    const double rest = outputs_.noise(outputs_.all(false)).energy;
    for (auto& row : rows_) {
      auto on = row.roundings;
      on.insert(on.end(), row.own.begin(), row.own.end());
      const double energy = std::max(0.0, outputs_.noise(only(on)).energy - rest);
      row.noise.share = std::isfinite(energy) ? energy : 0;
      sum += row.noise.share;
      progress.one_done();
    }
    for (auto& row : rows_) row.noise.share = sum > 0 ? row.noise.share / sum : 0;
    sum_ = sum;
  }

  /// The gain in decibel when only the switches `rest` are on. If the noises of what is left out and of the
  /// rest cancel or add up by chance, the measured gain says little about other inputs: it is bounded by the
  /// gain that independent noises have.
  double gain(const Switched& rest) {
    Switched off = rest;
    off.flip();
    const auto [left, worst] = outputs_.noise(rest);
    const double gone = outputs_.noise(off).energy, measured = worst - snr_;
    return left > 0 ? std::min(measured, 10 * std::log10((left + gone) / left)) : measured;
  }

  /// The layer; and if most of its noise is that of rounding what it reads, all nodes for which a quantiser
  /// would round that.
  Candidate candidate(const NoiseRow& row) {
    constexpr double kHalf = 0.5;
    Candidate out;
    for (const auto i : row.own) add_all(switches_[i], out);
    if (row.roundings.empty()) return out;
    const double weights = outputs_.noise(only(row.own)).energy / (sum_ > 0 ? sum_ : 1);
    if (weights >= kHalf * row.noise.share) return out;
    for (const auto i : row.roundings) add_touching(switches_[i].value(), out);
    return out;
  }

  static void add(NodeId n, Candidate& out) {
    if (std::find(out.begin(), out.end(), n) == out.end()) out.push_back(n);
  }

  void add_layers(const NoiseSwitch& s, Candidate& out) const {
    bool weighted = false;
    for (const auto n : s.nodes)
      if (is_layer(g_, n)) add(n, out), weighted = true;
    if (!weighted) add(g_.producer(s.value()), out);
  }

  /// Adds every node that a quantiser must leave alone so that this switch is off.
  void add_all(const NoiseSwitch& s, Candidate& out) const {
    if (!s.rounding) add_layers(s, out);
    if (s.rounding || s.only_levels)
      for (const auto& m : s.meetings) add_touching(m.value, out);
  }

  /// Adds the nodes that give or read the value: quantisers round it for any of them.
  void add_touching(ValueId v, Candidate& out) const {
    for (const auto n : givers(v)) add(n, out);
    for (const auto& use : g_.value(v).uses) add(use.node, out);
  }

  /// The node that makes the value; with a bound, which the quantised model may not have, the one before.
  std::vector<NodeId> givers(ValueId v) const {
    std::vector<NodeId> out;
    for (auto n = g_.producer(v); n.valid(); n = g_.producer(g_.node(n).inputs[0])) {
      out.push_back(n);
      if (!g_.node(n).op.is<Relu>() && !g_.node(n).op.is<Clamp>()) break;
    }
    return out;
  }

  /// All switches on but those that are off when a quantiser leaves these nodes alone.
  Switched without(const Candidate& nodes) const {
    const auto has = [&](NodeId n) { return std::find(nodes.begin(), nodes.end(), n) != nodes.end(); };
    auto on = outputs_.all(true);
    for (std::size_t i = 0; i < on.size(); ++i) {
      const auto& s = switches_[i];
      Candidate wanted;
      add_all(s, wanted);
      on[i] = !std::all_of(wanted.begin(), wanted.end(), has);
    }
    return on;
  }

  void name(const Candidate& nodes) {
    const auto add_name = [](std::vector<std::string>& to, const std::string& text) {
      if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
    };
    for (const auto n : nodes) {
      const auto source = layer_source(g_, n);
      add_name(out_.nodes, source.name);
      out_.has_unnamed |= source.name == g_.value(g_.node(n).outputs[0]).name;
      if (is_layer(g_, n)) add_name(out_.layers, source.name);
    }
  }

  NoisyOutputs& outputs_;
  const Graph& g_;
  const std::vector<NoiseSwitch>& switches_;
  std::vector<NoiseRow>& rows_;
  const double snr_;
  LeftOut out_;
  double sum_ = 0;  // noise at the outputs by each layer alone, added up
};

}  // namespace

LeftOut choose_left_out(NoisyOutputs& outputs, std::vector<NoiseRow>& rows, double snr) {
  return LeaveOut(outputs, rows, snr).run();
}

Source layer_source(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (!n.sources.empty())
    if (const auto& s = g.sources[n.sources.front().index]; !s.name.empty()) return s;
  return {g.label(id), n.op.name()};
}

}  // namespace lamina
