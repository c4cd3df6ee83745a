#include "quantise/layer_noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/inside.h"
#include "base/error.h"
#include "ops/elementwise.h"
#include "quantise/layer_queries.h"
#include "quantise/leave_out.h"
#include "quantise/prepared_f32.h"
#include "rules/weights.h"
#include "rules/widen_half.h"

namespace lamina {
namespace {

constexpr double kUnlike = 1;     // dB: layers with other weights are below
constexpr double kMatched = 0.5;  // of the layers with weights, at least
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNone : std::min(a, b); }

Graph widened(Graph g) {
  widen_half(g);
  return g;
}

/// Gives the graph's float inputs the element types of the other graph's, with a Convert behind each, so that
/// one sample fits both: a model in half precision takes f32, too.
Graph with_inputs_of(const Graph& other, Graph g) {
  for (std::size_t i = 0; i < g.inputs().size() && i < other.inputs().size(); ++i) {
    const auto v = g.inputs()[i];
    const auto own = g.type(v).element, wanted = other.type(other.inputs()[i]).element;
    if (own == wanted || !is_float(own) || !is_float(wanted)) continue;
    g.set_type(v, {wanted, g.type(v).shape});
    const auto converted = g.add(Convert{own}, {v});
    g.replace(v, converted);
    g.set_input(g.producer(converted), 0, v);
  }
  g.infer_types();
  return g;
}

class Comparison {
 public:
  Comparison(const Model& quantised, const Model& f32, const Samples& samples, const Running& running)
      : q_model_(quantised),
        f_model_(f32),
        samples_(samples),
        running_(running),
        q_(widened(Inside::of(quantised).loaded().graph)),
        f_(with_inputs_of(q_, prepared_f32(widened(Inside::of(f32).loaded().graph), q_))) {
    if (has_levels(f_))
      fail(ErrorCode::bad_input, "the f32 model is quantised itself: wanted the model before quantisation");
    equalise_as(f_, q_);
    counterparts_ = find_counterparts(q_, f_);
    forget_other_scales();
    switched_ = make_switched(q_, f_, counterparts_);
  }

  NoiseReport run() && {
    count_layers();
    look_at_samples();
    measure_values();
    measure_switches();
    require_likeness();
    rows();
    NoisyOutputs outputs({q_model_, f_model_, f_, switched_, samples_, running_});
    outputs.measure(report_);
    if (report_.has_shares) report_.left_out = choose_left_out(outputs, rows_, report_.sqnr_db);
    for (auto& row : rows_) report_.layers.push_back(std::move(row.noise));
    add_rows_not_comparable();
    const auto key = [](const LayerNoise& l) { return std::isnan(l.sqnr_db) ? -kInfinite : l.sqnr_db; };
    std::stable_sort(report_.layers.begin(), report_.layers.end(),
                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
    return std::move(report_);
  }

 private:
  /// Channels whose scale is another one in the quantised graph have no counterpart, though their names are
  /// the same: the two layers around them are measured as one.
  void forget_other_scales() {
    for (const auto& pair : pairs_of_other_scale(f_, q_, counterparts_)) {
      not_comparable_.push_back(pair.first);
      for (auto at = pair.first; at != pair.second;) {
        const auto v = f_.node(at).outputs[0];
        counterparts_.forget(v);
        at = f_.value(v).uses.at(0).node;
      }
    }
  }

  /// Counts layers with weights, and how many of them have a measurement of their own.
  void count_layers() {
    std::set<NodeId> layers, matched, recognised(not_comparable_.begin(), not_comparable_.end());
    for (const auto id : f_.order())
      if (is_layer(f_, id)) layers.insert(id);
    NodeId first;
    for (const auto& s : switched_.switches) {
      const bool is_recognised =
          std::any_of(s.nodes.begin(), s.nodes.end(), [&](auto n) { return recognised.contains(n); });
      const auto count =
          std::count_if(s.nodes.begin(), s.nodes.end(), [&](auto n) { return layers.contains(n); });
      for (const auto n : s.nodes) {
        if (!layers.contains(n)) continue;
        if (count == 1) matched.insert(n);
        if (count == 1 || is_recognised) recognised.insert(n);
      }
    }
    report_.weighted = layers.size(), report_.matched = matched.size();
    for (const auto id : f_.order())
      if (layers.contains(id) && !recognised.contains(id)) {
        first = id;
        break;
      }
    if (static_cast<double>(recognised.size()) < kMatched * static_cast<double>(layers.size()))
      fail(ErrorCode::bad_input,
           "{} of the {} layers with weights of the f32 model have a counterpart in the quantised model, "
           "\"{}\" ({}) has none: wanted the model that was quantised",
           recognised.size(), layers.size(), f_.label(first), f_.node(first).op.name());
  }

  /// Networks hide numbers that are not finite: a ReLU makes 0 of NaN, and no level is infinite.
  void look_at_samples() {
    std::vector<std::size_t> counts(q_.inputs().size());
    for (std::size_t s = 0; s < samples_.count; ++s) {
      const auto inputs = samples_.get(s);
      for (std::size_t i = 0; i < inputs.size() && i < counts.size(); ++i)
        counts[i] += is_float(inputs[i].element_type()) && !all_finite(inputs[i]);
    }
    report_.samples = samples_.count;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] > 0) report_.not_finite.push_back({q_.value(q_.inputs()[i]).name, counts[i]});
  }

  /// Measures every value of the quantised model beside the f32 model's.
  void measure_values() {
    Observed first{f_model_, f_, {}}, second{q_model_, q_, {}};
    for (const auto& s : switched_.switches)
      for (const auto& m : s.meetings)
        if (!s.rounding) first.values.push_back(m.value), second.values.push_back(m.on);
    std::vector<Drift> drifts(first.values.size());
    observe_both(
        first, second, samples_, running_, "comparing",
        [&](std::size_t i, const Tensor& exact, const Tensor& other) { drifts[i].add(exact, other); });
    for (std::size_t i = 0; i < drifts.size(); ++i) snr_[first.values[i]] = drifts[i].sqnr();
  }

  /// Measures what each switch changes if everything before it is quantised.
  void measure_switches() {
    Observed pairs{q_model_, switched_.graph, {}};
    std::vector<std::size_t> owner;
    for (std::size_t i = 0; i < switched_.switches.size(); ++i)
      for (const auto& m : switched_.switches[i].meetings)
        pairs.values.insert(pairs.values.end(), {m.off, m.on}), owner.push_back(i);
    const Samples all_on{samples_.count,
                         [this](std::size_t i) { return with_all_on(samples_.get(i), switched_); }};
    std::vector<Drift> drifts(owner.size());
    std::map<std::size_t, Tensor> exact;  // by sample, until the other value of the pair comes
    observe(pairs, all_on, running_, "measuring",
            [&](std::size_t sample, std::size_t i, const Tensor& value) {
              if (i % 2 == 0)
                exact[sample] = value.clone();
              else
                drifts[i / 2].add(exact.extract(sample).mapped(), value);
            });
    own_.assign(switched_.switches.size(), kInfinite);
    for (std::size_t i = 0; i < drifts.size(); ++i)
      own_[owner[i]] = worse(own_[owner[i]], drifts[i].not_comparable() ? kNone : drifts[i].sqnr());
  }

  bool has_weights(const NoiseSwitch& s) const {
    return std::any_of(s.nodes.begin(), s.nodes.end(), [&](auto n) { return is_layer(f_, n); });
  }

  /// Refuses a model whose names are the same by chance: its numbers are not.
  void require_likeness() const {
    std::size_t unlike = 0, all = 0;
    const NoiseSwitch* first = nullptr;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const auto& s = switched_.switches[i];
      if (s.rounding || !has_weights(s)) continue;
      ++all;
      if (own_[i] >= kUnlike) continue;
      if (++unlike == 1) first = &s;
    }
    if (unlike * 2 > all)
      fail(ErrorCode::bad_input,
           "{} of {} layers compute something else in the f32 model, \"{}\" is the first: wanted the model "
           "that was quantised",
           unlike, all, f_.label(f_.producer(first->value())));
  }

  void rows() {
    std::set<std::size_t> used;
    std::map<ValueId, std::size_t> roundings;
    for (std::size_t i = 0; i < own_.size(); ++i)
      if (switched_.switches[i].rounding) roundings[switched_.switches[i].value()] = i;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const auto& s = switched_.switches[i];
      if (s.rounding) continue;
      NoiseRow row{describe(s), {i}, {}};
      row.noise.sqnr_db = kInfinite;
      for (const auto& m : s.meetings) row.noise.sqnr_db = worse(row.noise.sqnr_db, snr_.at(m.value));
      row.noise.own_sqnr_db = own_[i];
      row.noise.input_sqnr_db = kInfinite;
      for (const auto v : s.levels)
        if (const auto it = roundings.find(v); it != roundings.end() && !(own_[it->second] >= kExactSnr)) {
          row.roundings.push_back(it->second);
          row.noise.input_sqnr_db = worse(row.noise.input_sqnr_db, own_[it->second]);
        }
      if (row.noise.own_sqnr_db >= kExactSnr && row.roundings.empty()) {
        report_.exact += row.noise.has_weights;
        continue;
      }
      used.insert(row.roundings.begin(), row.roundings.end());
      add_row(std::move(row));
    }
    add_other_roundings(used);
  }

  /// A layer with several outputs has one row.
  void add_row(NoiseRow row) {
    const auto same = std::find_if(rows_.begin(), rows_.end(),
                                   [&](const auto& other) { return other.noise.name == row.noise.name; });
    if (same == rows_.end()) return rows_.push_back(std::move(row));
    auto &to = same->noise, &from = row.noise;
    if (to.operators != from.operators) to.operators += "+" + from.operators;
    to.sqnr_db = worse(to.sqnr_db, from.sqnr_db);
    to.own_sqnr_db = worse(to.own_sqnr_db, from.own_sqnr_db);
    to.input_sqnr_db = worse(to.input_sqnr_db, from.input_sqnr_db);
    to.has_weights |= from.has_weights;
    for (auto& name : from.with)
      if (std::find(to.with.begin(), to.with.end(), name) == to.with.end())
        to.with.push_back(std::move(name));
    same->own.insert(same->own.end(), row.own.begin(), row.own.end());
    for (const auto i : row.roundings)
      if (std::find(same->roundings.begin(), same->roundings.end(), i) == same->roundings.end())
        same->roundings.push_back(i);
  }

  /// Adds rows for levels that no layer reads: those of the model's outputs, or before what is not measured.
  void add_other_roundings(const std::set<std::size_t>& used) {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const auto& s = switched_.switches[i];
      if (!s.rounding || used.contains(i) || own_[i] >= kExactSnr) continue;
      NoiseRow row{{}, {i}, {}};
      const auto maker = f_.producer(s.value());
      row.noise.name = maker.valid() ? layer_source(f_, maker).name : f_.value(s.value()).name;
      row.noise.operators = "rounding";
      row.noise.sqnr_db = row.noise.own_sqnr_db = own_[i];
      row.noise.input_sqnr_db = kInfinite;
      if (const auto it = snr_.find(s.value()); it != snr_.end()) row.noise.sqnr_db = it->second;
      add_row(std::move(row));
    }
  }

  /// Layers that are measured as parts of others only: a row each that says so.
  void add_rows_not_comparable() {
    for (const auto id : not_comparable_) {
      const auto layer = layer_source(f_, id);
      LayerNoise row{.name = layer.name, .operators = layer.type};
      row.sqnr_db = row.own_sqnr_db = kNone;
      row.input_sqnr_db = kInfinite;
      row.has_weights = true;
      report_.layers.push_back(std::move(row));
    }
  }

  LayerNoise describe(const NoiseSwitch& s) const {
    constexpr std::size_t kNamed = 4;
    LayerNoise out;
    std::vector<std::string> types, weighted;
    std::set<std::string> layers;
    for (const auto id : s.nodes) {
      const auto layer = layer_source(f_, id);
      if (!layers.insert(layer.name).second) continue;
      types.push_back(layer.type);
      if (is_layer(f_, id)) weighted.push_back(layer.name);
    }
    out.has_weights = !weighted.empty();
    out.name = weighted.empty() ? layer_source(f_, f_.producer(s.value())).name : weighted.back();
    for (std::size_t i = 0; i < types.size() && i < kNamed; ++i) out.operators += (i ? "+" : "") + types[i];
    if (types.size() > kNamed) out.operators += fmt::format("+{} more", types.size() - kNamed);
    if (!weighted.empty()) weighted.pop_back();
    out.with = std::move(weighted);
    return out;
  }

  const Model &q_model_, &f_model_;
  const Samples& samples_;
  const Running& running_;
  Graph q_, f_;
  Counterparts counterparts_;
  SwitchedGraph switched_;
  NoiseReport report_;
  std::vector<NodeId> not_comparable_;  // layers whose result has another scale in the quantised graph
  std::map<ValueId, double> snr_;       // by value of the f32 graph
  std::vector<double> own_;             // by switch
  std::vector<NoiseRow> rows_;
};

}  // namespace

NoiseReport layer_noise(const Model& quantised, const Model& f32, const Samples& samples,
                        const Running& running) {
  return Comparison(quantised, f32, samples, running).run();
}

}  // namespace lamina
