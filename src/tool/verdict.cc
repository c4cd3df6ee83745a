#include "tool/verdict.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ops/decompose.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "tool/summary.h"
#include "tool/verdict_words.h"

namespace lamina::tool {
namespace {

constexpr double kWorthSaying = 0.03;  // of the time
constexpr double kProfits = 0.95;      // of the time in f32: with more, 8 bits gain nothing
constexpr std::size_t kMostNames = 3;

bool runs_a_node(const PlanStep& s) {
  return s.kind == PlanStep::Kind::kernel || s.kind == PlanStep::Kind::dynamic;
}

/// It does nothing but make integers of numbers and numbers of integers.
bool converts_levels(const Node& n) {
  const auto is = [](const Node& x) {
    return x.op.is<Quantize>() || x.op.is<Dequantize>() || x.op.is<DynamicQuantize>();
  };
  if (is(n)) return true;
  const auto* body = n.op.is<Elementwise>() ? epilogue(n) : nullptr;
  if (!body) return false;
  const auto order = body->order();
  return std::all_of(order.begin(), order.end(),
                     [&](NodeId id) { return is(body->node(id)) || body->node(id).op.is<Convert>(); });
}

/// What may be gained, and how to see it.
struct Advice {
  double gain = 0;  ///< of the time
  std::string text, command;
};

class Judge {
 public:
  Judge(const Findings& all, const Session& s, std::string model, const std::vector<std::string>& asked,
        bool here)
      : all_(all),
        s_(s),
        machine_(s.impl().program()->machine()),
        model_(std::move(model)),
        asked_(asked),
        here_(here),
        estimate_(all.estimate()),
        products_(product_costs(all.plans, machine_, s.impl().threads())) {}

  ModelVerdict verdict() {
    ModelVerdict v;
    v.time = time();
    v.fusion = fusion();
    v.integers = integers();
    v.bf16 = bf16();
    const auto best = next();
    v.next = best.text;
    v.command = best.command;
    v.products = products_;
    return v;
  }

 private:
  double share(const PlanStep& s) const {
    if (all_.timed()) return all_.share(all_.profile.of(s));
    return estimate_ > 0 ? s.cost / estimate_ : 0;
  }
  /// With the options that were asked for, but for one that `more` has, too.
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
      const auto kind = !runs_a_node(step) ? "reorders and copies" : plan.graph.node(step.node).op.name();
      sums[kind == "Elementwise" ? "element-wise arithmetic" : kind] += share(step);
    });
    std::vector<std::pair<std::string, double>> out(sums.begin(), sums.end());
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
  }

  std::string time() {
    std::map<std::string, double> named;  // several steps may compute one layer
    double in_steps = 0;
    for_steps([&](const Plan&, const PlanStep& step) {
      in_steps += share(step);
      if (runs_a_node(step)) named[step.name] += share(step);
    });
    std::vector<std::pair<double, std::string>> layers;
    for (const auto& [name, part] : named) layers.emplace_back(part, name);
    if (layers.empty())
      return "No step computes anything: the outputs are constants or the inputs themselves.";
    std::stable_sort(layers.begin(), layers.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string what;
    std::size_t said = 0;
    for (const auto& [kind, part] : kinds()) {
      if (said == kMostNames || (said > 0 && part < 2 * kWorthSaying)) break;
      what += fmt::format("{}{} {} %", said++ ? ", " : "", kind, std::lround(100 * part));
    }
    between_ = all_.timed() ? std::max(0.0, 1 - in_steps) : 0;
    if (between_ >= 0.1) what += fmt::format(", what passes between the steps {}", percent(between_));
    std::vector<std::string> dearest;
    for (const auto& [part, name] : layers)
      if (dearest.size() < kMostNames && (dearest.empty() || part >= kWorthSaying))
        dearest.push_back(fmt::format("{} ({})", in_quotes(name), percent(part)));
    return fmt::format("A run {}: {}; the {} {}.",
                       all_.timed() ? fmt::format("takes {}", times_text(all_.profile.whole()))
                                    : fmt::format("is estimated at {} on one thread", times_text(estimate_)),
                       what, dearest.size() == 1 ? "dearest layer is" : "dearest layers are",
                       list(dearest, dearest.size()));
  }

  std::string fusion() {
    std::size_t fused = 0, layers = 0;
    for (const auto& f : all_.fates) {
      layers += f.kind != Fate::Kind::constant;
      fused += f.kind == Fate::Kind::fused;
    }
    const auto inside = fmt::format("{} of the {} {} in another layer's step", fused,
                                    count_of(layers, "layer"), fused == 1 ? "runs" : "run");
    const LoneStep *could = nullptr, *apart = nullptr, *other = nullptr;
    double lost = 0, alone_time = 0;
    std::size_t missed = 0;
    alone_ = lone_steps(all_.plans, all_.fates);
    std::stable_sort(alone_.begin(), alone_.end(),
                     [&](const auto& a, const auto& b) { return share(*a.step) > share(*b.step); });
    std::erase_if(alone_, [](const LoneStep& one) { return one.operators == "Convert"; });  // bf16's own
    const auto keep_dearer = [&](const LoneStep*& kept, const LoneStep& one) {
      if (!kept || share(*one.step) > share(*kept->step)) kept = &one;
    };
    for (const auto& one : alone_) {
      alone_time += share(*one.step);
      if (one.behind.empty()) {
        keep_dearer(other, one);
      } else if (one.decomposed) {
        keep_dearer(apart, one);
      } else {
        keep_dearer(could, one), ++missed, lost += share(*one.step);
      }
    }
    if (could) {
      missed_ = {lost, could->name};
      return fmt::format(
          "{} could run in the step before {} and {} not ({} of the time); the dearest is {} behind {}: {}.",
          count_of(missed, "element-wise step"), missed == 1 ? "it" : "them", missed == 1 ? "does" : "do",
          percent(lost), in_quotes(could->name), in_quotes(could->behind), reason(could->reasons));
    }
    if (apart)
      return fmt::format("Nothing is left that should be fused: {}; {} stays apart from {}, since {}.",
                         inside, in_quotes(apart->name), in_quotes(apart->behind), reason(apart->reasons));
    if (other) {
      for (const auto& one : alone_) {  // what reads an input has nothing to join
        if (!one.reasons.empty() && one.reasons[0].starts_with("it reads the input")) continue;
        if (unjoined_.first == 0) unjoined_.second = one.name;
        unjoined_.first += share(*one.step);
      }
      return fmt::format(
          "{}: {}; {} ({} of the time), the dearest is {}: {}.",
          alone_time < kWorthSaying ? "Next to nothing is left to fuse" : "No rule can fuse more", inside,
          count_of(alone_.size(), "element-wise step") +
              (alone_.size() == 1 ? " runs on its own" : " run on their own"),
          percent(alone_time), in_quotes(other->name), reason(other->reasons));
    }
    return fmt::format("Nothing is left to fuse: {}, and no element-wise layer is a step of its own.",
                       inside);
  }
  static std::string reason(const std::vector<std::string>& reasons) {
    return reasons.empty() ? "no rule joins them" : clipped(printable(reasons[0]), 200);
  }

  /// "this processor (avx512 with VNNI)"
  std::string processor() const {
    const auto& f = machine_.features;
    const bool vnni = f.has(Feature::avx512_vnni) || f.has(Feature::avx_vnni);
    return fmt::format("{} ({}, {} VNNI)", here_ ? "this processor" : "that processor",
                       name_of(machine_.isa()), vnni ? "with" : "without");
  }

  std::string why_no_products() const {
    const auto all = kinds();
    const auto where = all.empty() ? "" : fmt::format(" ({} takes most of the time)", all[0].first);
    return "no convolution or matrix product with constant weights is a step of the plan" + where;
  }

  std::string integers() {
    double now = 0, in_floats = 0, levels = 0;
    std::size_t narrow = 0;
    std::vector<const ProductCost*> compared, losers;
    std::size_t quantised = 0;
    for (const auto& p : products_) quantised += p.in_8_bits();
    for (const auto& p : products_) {
      if ((quantised > 0 && !p.in_8_bits()) || p.f32 <= 0 || p.i8 <= 0) continue;
      compared.push_back(&p);
      const auto in_float = p.runs == ElementType::bf16 && p.bf16 > 0 ? p.bf16 : p.f32;
      now += p.i8, in_floats += in_float, narrow += p.runs == ElementType::bf16;
      if (p.i8 > kProfits * in_float) losers.push_back(&p);
    }
    if (compared.empty())
      return fmt::format("8 bits gain nothing here: {}.",
                         products_.empty() ? why_no_products() : "no kernel takes its products in 8 bits");
    std::stable_sort(losers.begin(), losers.end(),
                     [](const auto* a, const auto* b) { return a->i8 - a->f32 > b->i8 - b->f32; });
    std::string which = compared.size() == 1 ? "it profits" : "each of them profits";
    if (losers.size() == compared.size()) {
      which = compared.size() == 1 ? "it does not profit" : "none of them profits";
    } else if (!losers.empty()) {
      std::vector<std::string> names;
      for (const auto* p : losers)
        if (names.size() < kMostNames) names.push_back(in_quotes(p->layer));
      which = fmt::format("{} {} not profit: {}", losers.size(), losers.size() == 1 ? "does" : "do",
                          list(names, losers.size()));
    }
    const auto products =
        count_of(compared.size(), "product") + (compared.size() == 1 ? " is" : " are") + " estimated at";
    if (quantised == 0) {
      quantising_ = estimate_ > 0 ? std::max(0.0, in_floats - now) / estimate_ : 0;
      const auto type = narrow == compared.size() ? "in bf16" : narrow > 0 ? "as they run" : "in f32";
      const auto how = now >= kProfits * in_floats  ? "would not pay"
                       : quantising_ < kWorthSaying ? "would gain next to nothing"
                                                    : "would pay";
      return fmt::format("8 bits {} on {}: {} {} in 8 bits and {} {}, of {} for all steps; {}{}.", how,
                         processor(), products, times_text(now), times_text(in_floats), type,
                         times_text(estimate_), which, why_quantised_is_f32());
    }
    for_steps([&](const Plan& plan, const PlanStep& step) {
      if (runs_a_node(step) && converts_levels(plan.graph.node(step.node))) levels += step.cost;
    });
    const auto conversions = levels > 0 ? fmt::format(", conversions at {},", times_text(levels)) : "";
    const auto floats = products_.size() - quantised;
    const auto left =
        floats ? fmt::format("; {} not in 8 bits{}",
                             count_of(floats, "product") + (floats == 1 ? " is" : " are"), why_float())
               : "";
    return fmt::format("8 bits {} on {}: {} {} in 8 bits{} and {} in f32; {}{}.",
                       now + levels < kProfits * in_floats ? "pay" : "do not pay", processor(), products,
                       times_text(now), conversions, times_text(in_floats), which, left);
  }

  /// Why the dearest product that multiplies floats does so, where a rule said it.
  std::string why_float() const {
    const ProductCost* dearest = nullptr;
    std::string why;
    for (const auto& p : products_) {
      if (p.in_8_bits() || (dearest && dearest->f32 >= p.f32)) continue;
      for (const auto& f : all_.fates)
        if (f.name == p.layer)
          for (const auto& e : f.history)
            if (e.kind == LedgerEntry::Kind::refused &&
                (e.rule == "int8-product" || e.rule == "int8-weights"))
              dearest = &p,
              why = fmt::format(", such as {}: {}", in_quotes(p.layer), clipped(printable(e.text), 160));
    }
    return why;
  }

  /// The file rounds to levels, and nothing of it runs in integers.
  std::string why_quantised_is_f32() const {
    const auto why = why_float();
    if (!why.empty()) return "; the model's own quantised layers run in f32" + why;
    if (s_.impl().options().precision == Precision::f32)
      for (const auto& f : all_.fates)
        if (f.type == "DequantizeLinear" || f.type == "FakeQuantize" || f.type == "Dequantize")
          return "; the model is quantised and runs in f32, as was asked";
    return "";
  }

  std::string bf16() {
    if (const auto can = multiplies_bf16(machine_); !can)
      return fmt::format("bf16 would gain nothing: {}.", can.reason());
    double in_f32 = 0, in_bf16 = 0;
    std::size_t floats = 0, narrow = 0, integers = 0;
    for (const auto& p : products_) {
      narrow += p.runs == ElementType::bf16, integers += p.in_8_bits();
      if (p.in_8_bits() || p.bf16 <= 0 || p.f32 <= 0) continue;
      ++floats, in_f32 += p.f32, in_bf16 += std::min(p.f32, p.bf16);
    }
    if (products_.empty()) return fmt::format("bf16 would gain nothing: {}.", why_no_products());
    if (floats == 0 && integers == products_.size())
      return fmt::format(
          "bf16 would gain nothing: {} in 8 bits already.",
          integers == 1 ? "its only product runs" : fmt::format("all {} products run", integers));
    if (floats == 0) return "bf16 would gain nothing: no kernel multiplies bf16 numbers for these products.";
    if (narrow > 0)
      return fmt::format(
          "bf16 is used: {} of {} multiply bf16 numbers, and the {} in floats are estimated at {}, in f32 at "
          "{}.",
          narrow, count_of(products_.size(), "product"), floats, times_text(in_bf16), times_text(in_f32));
    const double gain = estimate_ > 0 ? (in_f32 - in_bf16) / estimate_ : 0;
    const auto figures =
        fmt::format("{} in f32 {} estimated at {}, in bf16 at {}", count_of(floats, "product"),
                    floats == 1 ? "is" : "are", times_text(in_f32), times_text(in_bf16));
    if (s_.impl().precision() == Precision::bf16)
      return fmt::format(
          "bf16 was asked for and no product uses it: {}, and conversions cost more or values must stay f32.",
          figures);
    narrowing_ = gain;
    if (gain < kWorthSaying) return fmt::format("bf16 would gain next to nothing: {}.", figures);
    return fmt::format("bf16 would save up to {} of the estimated time: {}, before conversions.",
                       percent(gain), figures);
  }

  /// The dearest step that only the reference kernel takes.
  std::optional<Advice> slow_kernel() const {
    const PlanStep* worst = nullptr;
    double sum = 0;
    for_steps([&](const Plan&, const PlanStep& step) {
      if (!runs_a_node(step) || !step.label.starts_with("reference")) return;
      sum += share(step);
      if (!worst || share(step) > share(*worst)) worst = &step;
    });
    if (!worst || sum < 0.1) return std::nullopt;
    return Advice{sum,
                  fmt::format("The reference kernel, which is slow, takes {} of the time, most of it for {}: "
                              "this line says which kernels refused that layer and why.",
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

  Advice next() {
    std::vector<Advice> all;
    if (auto slow = slow_kernel()) all.push_back(*slow);
    if (narrowing_ >= kWorthSaying) {
      const auto more = quantising_ > narrowing_ && here_
                            ? fmt::format(
                                  "; 8 bits promise more (up to {}), for which `lamina quantize` wants "
                                  "samples of the inputs",
                                  percent(quantising_))
                            : "";
      all.push_back(
          {0.9 * narrowing_,
           fmt::format("Try bf16, which needs nothing else: this line measures it, and `lamina check` "
                       "with that option tells how far outputs drift{}.",
                       more),
           line(here_ ? "benchmark" : "explain", "--precision bf16")});
    }
    if (quantising_ >= 0.1 && here_) {
      const auto ending = model_.ends_with(".onnx") ? "onnx" : "xml";
      all.push_back(
          {0.3 * quantising_,
           "Try 8 bits: this line quantises the model, with a folder of samples of its inputs in the "
           "place of SAMPLES.",
           line("quantize", fmt::format("--data SAMPLES -o quantized.{}", ending))});
    }
    if (missed_.first >= kWorthSaying)
      all.push_back(
          {missed_.first,
           fmt::format("Look at the element-wise steps that could be fused: this line says all about {}.",
                       in_quotes(missed_.second)),
           line("explain", "--node " + shell_word(missed_.second))});
    if (unjoined_.first >= 0.1)
      all.push_back(
          {0.3 * unjoined_.first,
           fmt::format("Look at what keeps element-wise steps apart, in the model that was exported: this "
                       "line says all about the dearest, {}.",
                       in_quotes(unjoined_.second)),
           line("explain", "--node " + shell_word(unjoined_.second))});
    if (between_ >= 0.3 && s_.impl().threads() > 1)
      all.push_back(
          {0.5 * between_,
           fmt::format(
               "What passes between the steps takes {}, so the model may be too small for {} threads: "
               "this line runs it on one.",
               percent(between_), s_.impl().threads()),
           line("benchmark", "--threads 1")});
    const auto best = std::max_element(all.begin(), all.end(),
                                       [](const auto& a, const auto& b) { return a.gain < b.gain; });
    if (best != all.end()) return *best;
    if (!here_)
      return {0, "No change is estimated to gain much: this line compares kernels by layer on that machine.",
              line("explain", "--summary")};
    const auto rivals = near_rivals();
    return {
        0,
        rivals
            ? fmt::format(
                  "No other precision and no fusion promises much: {} another kernel estimated within a "
                  "quarter of the chosen one, and this line measures which is faster.",
                  count_of(rivals, "layer") + (rivals == 1 ? " has" : " have"))
            : "No other precision, fusion or kernel promises much: this line measures how fast it runs with "
              "several requests at once.",
        line("benchmark", rivals ? "--tune" : "--hint throughput")};
  }

  const Findings& all_;
  const Session& s_;
  const Machine& machine_;
  std::string model_;
  std::vector<std::string> asked_;  ///< in pairs: option, value
  bool here_;
  double estimate_;
  std::vector<ProductCost> products_;
  std::vector<LoneStep> alone_;
  // What may be gained, of the time: found out by the sentences.
  double between_ = 0, quantising_ = 0, narrowing_ = 0;
  std::pair<double, std::string> missed_, unjoined_;  ///< and by which layer
};

}  // namespace

ModelVerdict verdict_of(const Findings& all, const Session& s, const std::string& model,
                        const std::vector<std::string>& asked, bool here) {
  return Judge(all, s, model, asked, here).verdict();
}

nlohmann::json to_json(const ModelVerdict& v) {
  nlohmann::json j{{"time", v.time}, {"fusion", v.fusion}, {"integers", v.integers},
                   {"bf16", v.bf16}, {"next", v.next},     {"command", v.command}};
  j["products"] = nlohmann::json::array();
  for (const auto& p : v.products) {
    nlohmann::json row{{"layer", p.layer}, {"runs", name_of(p.runs)}};
    for (const auto& [type, us] : {std::pair("f32_us", p.f32), {"bf16_us", p.bf16}, {"i8_us", p.i8}})
      if (us > 0) row[type] = us;
    j["products"].push_back(std::move(row));
  }
  return j;
}

}  // namespace lamina::tool
