#include "explain/verdict.h"

#include <algorithm>
#include <map>

#include "explain/summary.h"
#include "explain/verdict_precision.h"
#include "explain/verdict_words.h"

namespace lamina {
namespace {

/// What may be gained, and how to see it.
struct Advice {
  double gain = 0;  ///< of the time
  std::string text, command;
};

struct TimeVerdict {
  std::string text;
  double between = 0;  ///< the share of the time that passes between the steps
};

/// Element-wise steps that are worth a look.
struct UnfusedSteps {
  double time = 0;                  ///< their share of the time
  std::string most_expensive = {};  ///< a layer
};

struct FusionVerdict {
  std::string text;
  UnfusedSteps fusible = {};       ///< steps that could run in the step before them
  UnfusedSteps without_host = {};  ///< steps after others, none of which they could run in
};

class Judge {
 public:
  Judge(const Findings& all, const Compiled& compiled, std::string model,
        const std::vector<std::string>& asked, bool here)
      : all_(all),
        compiled_(compiled),
        machine_(compiled.program()->machine()),
        model_(std::move(model)),
        asked_(asked),
        here_(here),
        estimate_(all.estimate()),
        products_(product_costs(all.plans, machine_, compiled.threads())) {}

  ModelVerdict verdict() const {
    auto time_taken = time();
    auto fused = fusion();
    const auto all = kinds();
    auto precision = precision_verdict({all_, compiled_, machine_, here_, estimate_, products_,
                                        all.empty() || all[0].second < 0.5 ? std::string() : all[0].first});
    auto best = next(time_taken, fused, precision);
    return {std::move(time_taken.text),
            std::move(fused.text),
            std::move(precision.integers.text),
            std::move(precision.bf16.text),
            std::move(best.text),
            std::move(best.command),
            products_};
  }

 private:
  double share(const PlanStep& s) const {
    if (all_.timed()) return all_.share(all_.profile.of(s));
    return estimate_ > 0 ? s.cost / estimate_ : 0;
  }
  /// The command line of a verb with the options that were given, without those that `more` has, too.
  std::string line(const std::string& verb, const std::string& more) const {
    const auto reads = [](const std::string& option) {
      return option == "--weights" || option == "--extensions" || option == "--settable";
    };
    auto text = fmt::format("lamina {} {}", verb, shell_word(model_));
    for (std::size_t i = 0; i + 1 < asked_.size(); i += 2)
      if (!more.starts_with(asked_[i] + " ") && (verb != "quantize" || reads(asked_[i])))
        text += fmt::format(" {} {}", asked_[i], shell_word(asked_[i + 1]));
    return text + " " + more;
  }
  template <class F>
  void for_steps(F&& f) const {
    for (const auto& plan : all_.plans)
      for (const auto& step : plan->steps) f(*plan, step);
  }

  /// Shares of the time, by kind of operator.
  std::vector<std::pair<std::string, double>> kinds() const {
    std::map<std::string, double> sums;
    for_steps([&](const Plan& plan, const PlanStep& step) {
      const auto kind = !step.runs_a_node() ? "reorders and copies" : plan.graph.node(step.node).op.name();
      sums[kind == "Elementwise" ? "element-wise arithmetic" : kind] += share(step);
    });
    std::vector<std::pair<std::string, double>> out(sums.begin(), sums.end());
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
  }

  TimeVerdict time() const {
    std::map<std::string, double> named;  // several steps may compute one layer
    double in_steps = 0;
    for_steps([&](const Plan&, const PlanStep& step) {
      in_steps += share(step);
      if (step.runs_a_node()) named[step.name] += share(step);
    });
    std::vector<std::pair<double, std::string>> layers;
    for (const auto& [name, part] : named) layers.emplace_back(part, name);
    if (layers.empty())
      return {"No step computes anything: the outputs are constants or the inputs themselves."};
    std::stable_sort(layers.begin(), layers.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string what;
    std::size_t said = 0;
    for (const auto& [kind, part] : kinds()) {
      if (said == kMostNames || (said > 0 && part < 2 * kWorthSaying)) break;
      what += fmt::format("{}{} {} %", said++ ? ", " : "", kind, std::lround(100 * part));
    }
    const double between = all_.timed() ? std::max(0.0, 1 - in_steps) : 0;
    if (between >= 0.1) what += fmt::format(", the time between the steps {}", percent(between));
    std::vector<std::string> dearest;
    for (const auto& [part, name] : layers)
      if (dearest.size() < kMostNames && (dearest.empty() || part >= kWorthSaying))
        dearest.push_back(fmt::format("{} ({})", in_quotes(name), percent(part)));
    return {fmt::format("A run {}: {}; the {} {}.",
                        all_.timed() ? fmt::format("takes {}", times_text(all_.profile.whole()))
                                     : fmt::format("is estimated at {} on one thread", times_text(estimate_)),
                        what, dearest.size() == 1 ? "most expensive layer is" : "most expensive layers are",
                        list(dearest, dearest.size())),
            between};
  }

  /// "58 of the 66 layers run in another layer's step"
  std::string fused_layers() const {
    std::size_t fused = 0, layers = 0;
    for (const auto& f : all_.outcomes) {
      layers += f.kind != LayerOutcome::Kind::constant;
      fused += f.kind == LayerOutcome::Kind::fused;
    }
    return fmt::format("{} of the {} {} in another layer's step", fused, count_of(layers, "layer"),
                       fused == 1 ? "runs" : "run");
  }

  /// The most expensive first.
  std::vector<LoneStep> lone() const {
    auto out = lone_steps(all_.plans, all_.outcomes);
    std::stable_sort(out.begin(), out.end(),
                     [&](const auto& a, const auto& b) { return share(*a.step) > share(*b.step); });
    std::erase_if(out, [](const LoneStep& one) { return one.operators == "Convert"; });  // bf16's own
    return out;
  }

  FusionVerdict fusion() const {
    const auto alone = lone();
    std::vector<const LoneStep*> could, apart, others;
    for (const auto& one : alone)
      (one.behind.empty() ? others : one.decomposed ? apart : could).push_back(&one);
    if (!could.empty()) return could_be_fused(could);
    if (!apart.empty())
      return {fmt::format("All layers that should be fused are: {}; {} is not fused into {}, since {}.",
                          fused_layers(), in_quotes(apart[0]->name), in_quotes(apart[0]->behind),
                          reason(apart[0]->reasons))};
    if (!others.empty()) return cannot_be_fused(others);
    return {fmt::format("Nothing is left to fuse: {}, and no element-wise layer is a step of its own.",
                        fused_layers())};
  }
  FusionVerdict could_be_fused(const std::vector<const LoneStep*>& steps) const {
    FusionVerdict out;
    for (const auto* one : steps) out.fusible.time += share(*one->step);
    out.fusible.most_expensive = steps[0]->name;
    const bool single = steps.size() == 1;
    out.text = fmt::format(
        "{} could run in the step before {} and {} not ({} of the time); the most expensive is {} after "
        "{}: {}.",
        count_of(steps.size(), "element-wise step"), single ? "it" : "them", single ? "does" : "do",
        percent(out.fusible.time), in_quotes(steps[0]->name), in_quotes(steps[0]->behind),
        reason(steps[0]->reasons));
    return out;
  }
  /// All element-wise steps run on their own since there is no step that they could run in.
  FusionVerdict cannot_be_fused(const std::vector<const LoneStep*>& steps) const {
    FusionVerdict out;
    double time = 0;
    for (const auto* one : steps) {
      time += share(*one->step);
      if (one->reads_inputs_only) continue;
      if (out.without_host.most_expensive.empty()) out.without_host.most_expensive = one->name;
      out.without_host.time += share(*one->step);
    }
    out.text = fmt::format("{}: {}; {} ({} of the time), the most expensive is {}: {}.",
                           time < kWorthSaying ? "Almost nothing is left to fuse" : "No rule can fuse more",
                           fused_layers(),
                           count_of(steps.size(), "element-wise step") +
                               (steps.size() == 1 ? " runs on its own" : " run on their own"),
                           percent(time), in_quotes(steps[0]->name), reason(steps[0]->reasons));
    return out;
  }
  static std::string reason(const std::vector<std::string>& reasons) {
    return reasons.empty() ? "no rule fuses them" : clipped(printable(reasons[0]), 200);
  }

  /// Advice to look at the most expensive step that runs on the reference kernel.
  std::optional<Advice> slow_kernel() const {
    const PlanStep* worst = nullptr;
    double sum = 0;
    for_steps([&](const Plan&, const PlanStep& step) {
      if (!step.runs_a_node() || !step.label.starts_with("reference")) return;
      sum += share(step);
      if (!worst || share(step) > share(*worst)) worst = &step;
    });
    if (!worst || sum < 0.1) return std::nullopt;
    return Advice{sum,
                  fmt::format("The reference kernel, which is slow, takes {} of the time, most of it for {}: "
                              "this command shows which kernels refused that layer and why.",
                              percent(sum), in_quotes(worst->name)),
                  line("explain", "--node " + shell_word(worst->name))};
  }

  /// Layers for which another kernel is estimated to be nearly as fast.
  std::size_t near_rivals() const {
    std::size_t out = 0;
    for (const auto& plan : all_.plans)
      for (const auto& c : plan->choices)
        out += std::any_of(c.lost.begin(), c.lost.end(), [&](const auto& lost) {
          return !lost.decomposed && lost.label != c.label && lost.cost.us() <= 1.25 * c.cost.us() &&
                 c.cost.us() > 0;
        });
    return out;
  }

  void advise_precision(const PrecisionVerdict& found, std::vector<Advice>& all) const {
    if (found.bf16.gain >= kWorthSaying) {
      const auto more =
          found.integers.gain > found.bf16.gain && here_
              ? fmt::format(
                    "; 8 bits may gain more (up to {}), but `lamina quantize` needs samples of the inputs",
                    percent(found.integers.gain))
              : "";
      all.push_back({0.9 * found.bf16.gain,
                     fmt::format("Try bf16, which needs no other files: this command measures it, and "
                                 "`lamina check` with that option reports how far outputs drift{}.",
                                 more),
                     line(here_ ? "benchmark" : "explain", "--precision bf16")});
    }
    if (found.integers.gain >= 0.1 && here_) {
      const auto ending = model_.ends_with(".onnx") ? "onnx" : "xml";
      all.push_back({0.3 * found.integers.gain,
                     "Try 8 bits: this command quantises the model; replace SAMPLES by a folder with samples "
                     "of its inputs.",
                     line("quantize", fmt::format("--data SAMPLES -o quantized.{}", ending))});
    }
  }

  void advise_fusion(const FusionVerdict& found, std::vector<Advice>& all) const {
    if (found.fusible.time >= kWorthSaying)
      all.push_back(
          {found.fusible.time,
           fmt::format(
               "Look at the element-wise steps that could be fused: this command shows everything about {}.",
               in_quotes(found.fusible.most_expensive)),
           line("explain", "--node " + shell_word(found.fusible.most_expensive))});
    if (found.without_host.time >= 0.1)
      all.push_back(
          {0.3 * found.without_host.time,
           fmt::format("See why element-wise steps are not fused, and whether the model can be exported "
                       "differently: this command shows everything about the most expensive one, {}.",
                       in_quotes(found.without_host.most_expensive)),
           line("explain", "--node " + shell_word(found.without_host.most_expensive))});
  }

  /// For a model for which nothing is estimated to gain much.
  Advice last_resort() const {
    if (!here_)
      return {0,
              "No change is estimated to gain much: this command shows the rules and steps on that machine.",
              line("explain", "--summary")};
    const auto rivals = near_rivals();
    return {0,
            rivals
                ? fmt::format(
                      "No other precision or fusion is estimated to gain much: {} another kernel estimated "
                      "within a quarter of the chosen one, and this command measures which is faster.",
                      count_of(rivals, "layer") + (rivals == 1 ? " has" : " have"))
                : "No other precision, fusion or kernel is estimated to gain much: this command measures the "
                  "throughput with several requests at once.",
            line("benchmark", rivals ? "--tune" : "--hint throughput")};
  }

  /// The advice with the largest gain.
  Advice next(const TimeVerdict& time, const FusionVerdict& fusion, const PrecisionVerdict& precision) const {
    std::vector<Advice> all;
    if (auto slow = slow_kernel()) all.push_back(*slow);
    advise_precision(precision, all);
    advise_fusion(fusion, all);
    if (time.between >= 0.3 && compiled_.threads() > 1)
      all.push_back({0.5 * time.between,
                     fmt::format("The time between the steps is {} of a run, so the model may be too small "
                                 "for {} threads: this command runs it on one.",
                                 percent(time.between), compiled_.threads()),
                     line("benchmark", "--threads 1")});
    const auto best = std::max_element(all.begin(), all.end(),
                                       [](const auto& a, const auto& b) { return a.gain < b.gain; });
    return best != all.end() ? *best : last_resort();
  }

  const Findings& all_;
  const Compiled& compiled_;
  const Machine& machine_;
  std::string model_;
  std::vector<std::string> asked_;  ///< in pairs: option, value
  bool here_;
  double estimate_;
  std::vector<ProductCost> products_;
};

}  // namespace

ModelVerdict verdict_of(const Findings& all, const Compiled& compiled, const std::string& model,
                        const std::vector<std::string>& asked, bool here) {
  return Judge(all, compiled, model, asked, here).verdict();
}

}  // namespace lamina
