#include "quantise/leave_out.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "api/inside.h"
#include "base/progress.h"
#include "ops/activation.h"

namespace lamina {
namespace {

constexpr double kWanted = 6;          // dB more are enough: half the noise's amplitude
constexpr double kGood = 50;           // dB: there is nothing to mend
constexpr double kWorthwhile = 0.3;    // dB more are the least that is worth leaving out something
constexpr double kWorthNaming = 0.01;  // of the outputs' noise
constexpr std::size_t kMostLeftOut = 16;

/// What a quantiser is told to leave alone, in one step.
struct Candidate {
  std::vector<NodeId> nodes;
};

class LeaveOut {
 public:
  LeaveOut(NoisyOutputs& outputs, std::vector<NoiseRow>& rows, NoiseReport& report)
      : outputs_(outputs),
        g_(outputs.models.f32_graph),
        switches_(outputs.models.switched.switches),
        rows_(rows),
        report_(report) {}

  void run() {
    measure_shares();
    report_.snr_without = report_.snr;
    if (report_.snr >= kGood) return;
    std::vector<std::size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return rows_[a].noise.share > rows_[b].noise.share; });
    std::erase_if(order, [&](auto i) { return rows_[i].noise.share < kWorthNaming; });
    if (order.size() > kMostLeftOut) order.resize(kMostLeftOut);
    std::vector<NodeId> nodes, best;
    double most = kWorthwhile;
    for (const auto i : order) {
      for (const auto n : candidate(rows_[i]).nodes)
        if (std::find(nodes.begin(), nodes.end(), n) == nodes.end()) nodes.push_back(n);
      const double gained = gain(without(nodes));
      if (gained >= most) {
        report_.snr_without = report_.snr + gained;
        best = nodes;
        most = gained;
      }
      if (gained >= kWanted) break;
      most += kWorthwhile;  // each further step must pay, too
    }
    name(best);
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

  /// In decibel. Where the noise of what is left out and of the rest cancel or add up by chance, the measured
  /// gain says little of other inputs: it is no more than what independent noises have.
  double gain(const Switched& rest) {
    Switched off = rest;
    off.flip();
    const auto [left, worst] = outputs_.noise(rest);
    const double gone = outputs_.noise(off).energy, measured = worst - report_.snr;
    return left > 0 ? std::min(measured, 10 * std::log10((left + gone) / left)) : measured;
  }

  /// The layer; and where the noise is that of what it reads, all who would have that rounded otherwise.
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
    if (std::find(out.nodes.begin(), out.nodes.end(), n) == out.nodes.end()) out.nodes.push_back(n);
  }

  void add_layers(const NoiseSwitch& s, Candidate& out) const {
    bool weighted = false;
    for (const auto n : s.nodes)
      if (is_layer(g_, n)) add(n, out), weighted = true;
    if (!weighted) add(g_.producer(s.value()), out);
  }

  /// Every node that a quantiser must leave alone so that this switch is off.
  void add_all(const NoiseSwitch& s, Candidate& out) const {
    if (!s.rounding) add_layers(s, out);
    if (s.rounding || s.only_levels)
      for (const auto& m : s.meetings) add_touching(m.value, out);
  }

  /// Nodes that give or read the value: quantisers round it for any of them.
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

  /// All switches but those of which these nodes are everything.
  Switched without(const std::vector<NodeId>& nodes) const {
    const auto has = [&](NodeId n) { return std::find(nodes.begin(), nodes.end(), n) != nodes.end(); };
    auto on = outputs_.all(true);
    for (std::size_t i = 0; i < on.size(); ++i) {
      const auto& s = switches_[i];
      Candidate wanted;
      add_all(s, wanted);
      on[i] = !std::all_of(wanted.nodes.begin(), wanted.nodes.end(), has);
    }
    return on;
  }

  void name(const std::vector<NodeId>& nodes) {
    const auto add_name = [](std::vector<std::string>& to, const std::string& text) {
      if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
    };
    for (const auto n : nodes) {
      const auto source = layer_source(g_, n);
      add_name(report_.leave_out, source.name);
      report_.leave_out_unnamed |= source.name == g_.value(g_.node(n).outputs[0]).name;
      if (is_layer(g_, n)) add_name(report_.leave_out_layers, source.name);
    }
  }

  NoisyOutputs& outputs_;
  const Graph& g_;
  const std::vector<NoiseSwitch>& switches_;
  std::vector<NoiseRow>& rows_;
  NoiseReport& report_;
  double sum_ = 0;  // of the layers' energies at the outputs
};

}  // namespace

void choose_left_out(NoisyOutputs& outputs, std::vector<NoiseRow>& rows, NoiseReport& report) {
  LeaveOut(outputs, rows, report).run();
}

Source layer_source(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (!n.sources.empty())
    if (const auto& s = g.sources[n.sources.front().index]; !s.name.empty()) return s;
  return {g.label(id), n.op.name()};
}

NoisyOutputs::NoisyOutputs(const NoisyModels& m) : models(m), runs_(m.quantised, m.switched, m.running) {
  const CompiledModel compiled(Inside::changed(m.f32, m.f32_graph), m.running.options);
  auto request = compiled.create_request();
  for (std::size_t s = 0; s < m.samples.count; ++s) {
    if (!compiled.variables().empty()) request.reset_state();
    const auto inputs = m.samples.get(s);
    for (std::size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
    request.run();
    auto& results = exact_.emplace_back();
    for (std::size_t i = 0; i < compiled.outputs().size(); ++i) results.push_back(request.output(i).clone());
  }
}

std::vector<Drift> NoisyOutputs::drifts(const Switched& on) {
  std::vector<Drift> out(exact_.empty() ? 0 : exact_[0].size());
  for (std::size_t s = 0; s < exact_.size(); ++s) {
    const auto results = runs_.run(models.samples.get(s), on);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].add(exact_[s][i], results[i]);
  }
  return out;
}

void NoisyOutputs::measure(NoiseReport& report) {
  const auto now = drifts(all(true));
  bool noisy = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    report.outputs.push_back({models.f32_graph.results()[i].name, now[i]});
    if (!is_float(exact_[0][i].element_type()) || !std::isfinite(now[i].relative())) continue;
    counted_.push_back(i);
    noisy |= now[i].relative() > 0;
    for (const auto& results : exact_) report.compared += results[i].size();
  }
  report.has_shares = noisy;
  report.snr = report.snr_without = noise(all(true)).worst;
  report.snr_of_rest = noise(all(false)).worst;
}

NoisyOutputs::Noise NoisyOutputs::noise(const Switched& on) {
  const auto all = drifts(on);
  Noise out;
  for (const auto i : counted_) {
    out.energy += all[i].relative() * all[i].relative();
    out.worst = std::min(out.worst, all[i].sqnr());
  }
  return out;
}

}  // namespace lamina
