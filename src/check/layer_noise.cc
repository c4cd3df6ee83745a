#include "check/layer_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "check/pieces.h"
#include "exec/runner.h"
#include "interpreter/interpreter.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/quantization.h"
#include "rules/optimize.h"

namespace lamina::check {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kEnough = 0.5;        // of the outputs' noise, for the layers to leave out
constexpr double kWorthNaming = 0.03;  // of the outputs' noise
constexpr double kExact = 100;         // dB: what is above has no noise but f32's

/// Names that quantisers give to the 8-bit form of a value, and to what is made of it again.
constexpr std::string_view kSuffixes[] = {"_DequantizeLinear_Output", "_QuantizeLinear_Output", "_quantized",
                                          "_dequantized", "/fq_output_0"};

double power_decibel(double noise, double signal) {
  if (noise == 0) return kInfinite;
  return signal == 0 ? -kInfinite : 10 * std::log10(signal / noise);
}

bool is_float_value(const Graph& graph, ValueId v) { return is_float(graph.type(v).element); }

bool is_computed(const Graph& graph, ValueId v) {
  return v.valid() && graph.value(v).kind == ValueKind::output_of_node;
}

/// The value itself, or what a Dequantize makes of it; invalid where there is neither.
ValueId as_floats(const Graph& graph, ValueId v) {
  if (!v.valid() || graph.constant(v)) return {};
  if (is_float_value(graph, v)) return v;
  for (const auto& use : graph.value(v).uses)
    if (const Node& n = graph.node(use.node); n.op.is<Dequantize>() && use.input == 0) return n.outputs[0];
  return {};
}

/// The name of the node's layer in the file, and its type.
Source layer_of(const Graph& graph, NodeId id) {
  const Node& n = graph.node(id);
  if (!n.sources.empty())
    if (const auto& s = graph.sources[n.sources.front().index]; !s.name.empty()) return s;
  return {graph.label(id), std::string(n.op.name())};
}

bool has_weights(const Graph& graph, NodeId id) {
  const Node& n = graph.node(id);
  return n.op.has(Trait::products | Trait::weights) && n.inputs.size() > 1 && n.inputs[1].valid() &&
         graph.constant(n.inputs[1]);
}

/// Both graphs with the same names for what is the same.
class Matched {
 public:
  Matched(const Graph& quantised, const Graph& f32) : quantised_(quantised), f32_(f32) {
    match_borders();
    std::map<ValueId, ValueId> twins;  // by value of the f32 graph
    std::set<ValueId> taken;
    for (const auto id : f32.order())
      for (const auto v : f32.node(id).outputs)
        if (const auto twin = find(v); twin.valid() && taken.insert(twin).second) twins[v] = twin;
    // First every name is moved out of the way, then those that are the same are given.
    rename_all(quantised_, "quantised ");
    rename_all(f32_, "f32 ");
    std::size_t count = 0;
    for (std::size_t i = 0; i < f32.inputs().size(); ++i) {
      f32_.set_value_name(f32.inputs()[i], fmt::format("input {}", i));
      quantised_.set_value_name(quantised.inputs()[i], fmt::format("input {}", i));
    }
    for (const auto& [v, twin] : twins) {
      const auto name = fmt::format("same {}", count++);
      f32_.set_value_name(v, name);
      quantised_.set_value_name(twin, name);
      values_.insert(v);
      twins_.insert(twin);
    }
  }

  const Graph& quantised() const { return quantised_; }
  const Graph& f32() const { return f32_; }
  bool has(ValueId of_f32) const { return values_.contains(of_f32); }
  const std::set<ValueId>& values() const { return values_; }
  const std::set<ValueId>& twins() const { return twins_; }

 private:
  void match_borders() const {
    const auto &a = quantised_.inputs(), &b = f32_.inputs();
    if (a.size() != b.size() || quantised_.results().size() != f32_.results().size())
      fail(ErrorCode::bad_input,
           "the quantised model has {} inputs and {} outputs, the f32 model {} and {}: wanted the same",
           a.size(), quantised_.results().size(), b.size(), f32_.results().size());
  }

  ValueId find(ValueId v) const {
    if (!is_float_value(f32_, v)) return {};
    const auto& name = f32_.value(v).name;
    const auto fits = [&](ValueId twin) {
      return is_computed(quantised_, twin) && quantised_.type(twin).shape.fits(f32_.type(v).shape);
    };
    if (const auto twin = as_floats(quantised_, quantised_.find_value(name)); fits(twin)) return twin;
    for (const auto suffix : kSuffixes)
      if (const auto twin = as_floats(quantised_, quantised_.find_value(name + std::string(suffix)));
          fits(twin))
        return twin;
    for (std::size_t r = 0; r < f32_.results().size(); ++r)
      if (const auto twin = quantised_.results()[r].value;
          f32_.results()[r].value == v && fits(twin) && is_float_value(quantised_, twin))
        return twin;
    return {};
  }

  static void rename_all(Graph& graph, const std::string& prefix) {
    for (std::uint32_t i = 0; i < graph.value_slots(); ++i)
      if (graph.value({i}).kind != ValueKind::none)
        graph.set_value_name({i}, prefix + std::string(graph.value({i}).name));
  }

  Graph quantised_, f32_;
  std::set<ValueId> values_, twins_;
};

using Values = std::map<ValueId, Tensor>;

/// The results of the graph; values that are wanted are kept.
std::vector<Tensor> run_and_keep(const Graph& graph, const std::vector<Tensor>& inputs,
                                 const std::set<ValueId>& wanted, Values& kept) {
  for (std::size_t i = 0; i < inputs.size(); ++i) kept[graph.inputs()[i]] = inputs[i];
  InterpreterOptions options;
  options.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>&,
                        const std::vector<Tensor>& out) {
    for (std::size_t i = 0; i < out.size(); ++i)
      if (const auto v = g.node(id).outputs[i]; wanted.contains(v)) kept[v] = out[i];
  };
  return interpret(graph, inputs, options);
}

/// The f32 graph with another input for each noisy value, which is added to it. Run by lamina's kernels.
class NoisyModel {
 public:
  NoisyModel(const Graph& f32, const std::vector<Tensor>& inputs,
             const std::vector<std::pair<ValueId, Tensor>>& noises)
      : inputs_(inputs.size()) {
    Graph g = f32;
    for (const auto& [value, noise] : noises) {
      const auto input = g.add_input("", {noise.element_type(), Shape::of(noise.shape())});
      const auto sum = g.add(Add{}, {value, input});
      g.replace(value, sum);
      g.set_input(g.producer(sum), 0, value);
      zeros_.push_back(
          from_doubles(noise.element_type(), noise.shape(), std::vector<double>(noise.size(), 0)));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      g.set_type(g.inputs()[i], {inputs[i].element_type(), Shape::of(inputs[i].shape())});
    g.infer_types();
    Ledger ledger;
    optimize(g, {}, ledger);
    runner_.emplace(
        std::make_shared<Program>(std::move(g), ProgramOptions{}, std::make_shared<ModelWeights>()));
    for (std::size_t i = 0; i < inputs.size(); ++i) runner_->set_input(i, inputs[i]);
    for (std::size_t i = 0; i < zeros_.size(); ++i) runner_->set_input(inputs_ + i, zeros_[i]);
    results_ = f32.results().size();
  }

  void set(std::size_t noise, const Tensor& tensor) { runner_->set_input(inputs_ + noise, tensor); }
  void clear(std::size_t noise) { set(noise, zeros_[noise]); }
  std::vector<Tensor> run() {
    runner_->run();
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < results_; ++i) out.push_back(runner_->output(i).clone());
    return out;
  }

 private:
  std::size_t inputs_, results_ = 0;
  std::vector<Tensor> zeros_;
  std::optional<Runner> runner_;
};

/// Noise over signal in energies; not a number where the two cannot be compared.
double energy_ratio(const Tensor& noisy, const Tensor& exact) {
  if (!noisy.valid() || noisy.shape() != exact.shape() || !is_float(exact.element_type()))
    return std::numeric_limits<double>::quiet_NaN();
  const auto a = to_doubles(noisy.to_aligned()), b = to_doubles(exact.to_aligned());
  double noise = 0, signal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    noise += (a[i] - b[i]) * (a[i] - b[i]), signal += b[i] * b[i];
  }
  if (noise == 0) return 0;
  return signal == 0 ? std::numeric_limits<double>::quiet_NaN() : noise / signal;
}

double snr_of(const Tensor& noisy, const Tensor& exact) {
  const double ratio = energy_ratio(noisy, exact);
  return std::isnan(ratio) ? -kInfinite : power_decibel(ratio, 1);
}

/// By float output.
std::vector<double> energy_ratios(const std::vector<Tensor>& noisy, const std::vector<Tensor>& exact) {
  std::vector<double> out;
  for (std::size_t i = 0; i < exact.size(); ++i)
    if (const double r = energy_ratio(noisy[i], exact[i]); !std::isnan(r)) out.push_back(r);
  return out;
}

double sum_of(const std::vector<double>& values) {
  double out = 0;
  for (const double v : values) out += v;
  return out;
}

class Comparison {
 public:
  Comparison(const Graph& quantised, const Graph& f32, const std::vector<Tensor>& inputs,
             const std::function<void(double)>& progress)
      : matched_(quantised, f32), names_(f32), inputs_(inputs), progress_(progress) {}

  NoiseReport run() && {
    Values ours, theirs;
    const auto results = run_and_keep(matched_.quantised(), inputs_, matched_.twins(), theirs);
    at(0.25);
    const auto exact = run_and_keep(matched_.f32(), inputs_, matched_.values(), ours);
    at(0.5);
    for (std::size_t i = 0; i < results.size(); ++i)
      report_.outputs.push_back({matched_.f32().results()[i].name, agreement(results[i], exact[i])});
    measure_layers(ours, theirs);
    at(0.7);
    measure_shares();
    choose();
    std::stable_sort(report_.layers.begin(), report_.layers.end(),
                     [](const auto& a, const auto& b) { return a.snr < b.snr; });
    return std::move(report_);
  }

 private:
  void at(double done) const {
    if (progress_) progress_(done);
  }

  /// Each piece of the f32 graph between two matched values, on the quantised model's own values.
  void measure_layers(const Values& ours, const Values& theirs) {
    for (const auto& piece : pieces_of(matched_.quantised(), matched_.f32())) {
      if (piece.rewritten.nodes.empty()) continue;
      std::vector<Tensor> given, made;
      for (const auto v : piece.given) given.push_back(tensor_of(v, theirs));
      try {
        made = interpret(part_of(matched_.f32(), piece.rewritten, given).graph, given);
      } catch (const Error&) {  // other sizes than the quantised model's
      }
      for (std::size_t i = 0; i < piece.rewritten.outputs.size(); ++i) {
        const auto value = piece.rewritten.outputs[i];
        if (!matched_.has(value)) continue;
        const auto &quantised = tensor_of(piece.wanted[i], theirs), &exact = ours.at(value);
        auto layer = describe(value);
        layer.snr = snr_of(quantised, exact);
        layer.own_snr = made.empty() ? -kInfinite : snr_of(quantised, made[i]);
        if (!made.empty() && layer.own_snr < kExact && std::isfinite(layer.own_snr)) {
          noises_.emplace_back(value, minus(quantised, made[i]));
          of_noise_.push_back(report_.layers.size());
        }
        report_.layers.push_back(std::move(layer));
      }
    }
  }

  const Tensor& tensor_of(ValueId of_quantised, const Values& theirs) const {
    if (const auto* constant = matched_.quantised().constant(of_quantised)) return *constant;
    return theirs.at(of_quantised);
  }

  static Tensor minus(const Tensor& a, const Tensor& b) {
    auto x = to_doubles(a.to_aligned());
    const auto y = to_doubles(b.to_aligned());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::isfinite(x[i] - y[i]) ? x[i] - y[i] : 0;
    return from_doubles(b.element_type(), b.shape(), x);
  }

  /// Back from the value to values that are matched: the layers between.
  LayerNoise describe(ValueId value) {
    const Graph& g = names_;
    std::vector<NodeId> nodes, work{g.producer(value)};
    std::set<NodeId> seen{work[0]};
    while (!work.empty()) {
      const auto id = work.back();
      work.pop_back();
      nodes.push_back(id);
      for (const auto v : g.node(id).inputs)
        if (is_computed(g, v) && !matched_.has(v) && seen.insert(g.producer(v)).second)
          work.push_back(g.producer(v));
    }
    std::sort(nodes.begin(), nodes.end());
    LayerNoise out;
    out.value = g.value(value).name;
    std::vector<std::string> types, weighted;
    std::set<std::string> layers;
    for (const auto id : nodes) {
      const auto layer = layer_of(g, id);
      if (!layers.insert(layer.name).second) continue;
      types.push_back(layer.type);
      if (has_weights(g, id)) weighted.push_back(layer.name);
    }
    out.has_weights = !weighted.empty();
    out.name = weighted.empty() ? layer_of(g, g.producer(value)).name : weighted.back();
    constexpr std::size_t kNamed = 4;
    for (std::size_t i = 0; i < types.size() && i < kNamed; ++i) out.operators += (i ? "+" : "") + types[i];
    if (types.size() > kNamed) out.operators += fmt::format("+{} more", types.size() - kNamed);
    for (std::size_t i = 0; i + 1 < weighted.size(); ++i) {
      out.with.push_back(weighted[i]);
      report_.unmatched.emplace_back(weighted[i], out.name);
    }
    return out;
  }

  /// The outputs' noise by layer: each layer's own noise in a run of the f32 model.
  void measure_shares() {
    if (noises_.empty()) return;
    model_.emplace(matched_.f32(), inputs_, noises_);
    exact_ = model_->run();
    std::vector<double> energies;
    for (std::size_t i = 0; i < noises_.size(); ++i) {
      model_->set(i, noises_[i].second);
      energies.push_back(sum_of(energy_ratios(model_->run(), exact_)));
      model_->clear(i);
      at(0.7 + 0.3 * static_cast<double>(i + 1) / static_cast<double>(noises_.size()));
    }
    const double all = sum_of(energies);
    for (std::size_t i = 0; i < noises_.size() && all > 0; ++i)
      report_.layers[of_noise_[i]].share = energies[i] / all;
  }

  /// The fewest layers that cause half of the noise, and what is left without theirs.
  void choose() {
    for (std::size_t i = 0; i < report_.outputs.size(); ++i)
      if (const double snr = report_.outputs[i].agreement.snr; i == 0 || snr < report_.snr) report_.snr = snr;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < noises_.size(); ++i)
      if (layer(i).has_weights && layer(i).share >= kWorthNaming) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return layer(a).share > layer(b).share; });
    std::vector<bool> left_out(noises_.size(), false);
    for (const auto i : order) {
      if (report_.leave_out_share >= kEnough) break;
      report_.leave_out.push_back(layer(i).name);
      report_.leave_out_share += layer(i).share;
      left_out[i] = true;
    }
    report_.snr_without = report_.snr;
    if (report_.leave_out.empty()) return;
    const auto worst = [&](bool without) {
      for (std::size_t i = 0; i < noises_.size(); ++i)
        if (without && left_out[i])
          model_->clear(i);
        else
          model_->set(i, noises_[i].second);
      const auto ratios = energy_ratios(model_->run(), exact_);
      return ratios.empty() ? kInfinite : power_decibel(*std::max_element(ratios.begin(), ratios.end()), 1);
    };
    const double with = worst(false), without = worst(true);
    report_.snr_without = report_.snr + (std::isfinite(with) && std::isfinite(without) ? without - with : 0);
  }

  LayerNoise& layer(std::size_t noise) { return report_.layers[of_noise_[noise]]; }

  Matched matched_;
  const Graph& names_;  // the f32 graph with the file's names
  const std::vector<Tensor>& inputs_;
  const std::function<void(double)>& progress_;
  NoiseReport report_;
  std::vector<std::pair<ValueId, Tensor>> noises_;  // by value of the f32 graph
  std::vector<std::size_t> of_noise_;               // the layer of each
  std::optional<NoisyModel> model_;
  std::vector<Tensor> exact_;
};

}  // namespace

NoiseReport layer_noise(const Graph& quantised, const Graph& f32, const std::vector<Tensor>& inputs,
                        const std::function<void(double)>& progress) {
  return Comparison(quantised, f32, inputs, progress).run();
}

}  // namespace lamina::check
