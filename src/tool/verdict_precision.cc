#include "tool/verdict_precision.h"

#include <algorithm>
#include <cmath>

#include "ops/decompose.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "tool/summary.h"
#include "tool/verdict_words.h"

namespace lamina::tool {
namespace {

constexpr double kProfits = 0.95;  // of the time in f32: with more, 8 bits gain nothing

/// True if the node only converts between integers and floats.
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

class Sentences {
 public:
  explicit Sentences(const PrecisionFacts& facts) : f_(facts) {}

  PrecisionVerdict verdict() {
    out_.integers = integers();
    out_.bf16 = bf16();
    return out_;
  }

 private:
  /// "this processor (avx512 with VNNI)"
  std::string processor() const {
    const auto& f = f_.machine.features;
    const bool vnni = f.has(Feature::avx512_vnni) || f.has(Feature::avx_vnni);
    return fmt::format("{} ({}, {} VNNI)", f_.here ? "this processor" : "that processor",
                       name_of(f_.machine.isa()), vnni ? "with" : "without");
  }

  std::string why_no_products() const {
    const auto where =
        f_.dearest_kind.empty() ? "" : fmt::format(" ({} takes most of the time)", f_.dearest_kind);
    return "no convolution or matrix product with constant weights is a step of the plan" + where;
  }

  std::string integers() {
    double now = 0, in_floats = 0, levels = 0;
    std::size_t narrow = 0;
    std::vector<const ProductCost*> compared, losers;
    std::size_t quantised = 0;
    for (const auto& p : f_.products) quantised += p.in_8_bits();
    for (const auto& p : f_.products) {
      if ((quantised > 0 && !p.in_8_bits()) || p.f32 <= 0 || p.i8 <= 0) continue;
      compared.push_back(&p);
      const auto in_float = p.runs == ElementType::bf16 && p.bf16 > 0 ? p.bf16 : p.f32;
      now += p.i8, in_floats += in_float, narrow += p.runs == ElementType::bf16;
      if (p.i8 > kProfits * in_float) losers.push_back(&p);
    }
    if (compared.empty())
      return fmt::format("8 bits gain nothing here: {}.",
                         f_.products.empty() ? why_no_products() : "no kernel takes its products in 8 bits");
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
      out_.quantising = f_.estimate > 0 ? std::max(0.0, in_floats - now) / f_.estimate : 0;
      const auto type = narrow == compared.size() ? "in bf16" : narrow > 0 ? "as they run" : "in f32";
      const auto how = now >= kProfits * in_floats      ? "would not pay"
                       : out_.quantising < kWorthSaying ? "would gain almost nothing"
                                                        : "would pay";
      return fmt::format("8 bits {} on {}: {} {} in 8 bits and {} {}, of {} for all steps; {}{}.", how,
                         processor(), products, times_text(now), times_text(in_floats), type,
                         times_text(f_.estimate), which, why_quantised_is_f32());
    }
    for (const auto& plan : f_.all.plans)
      for (const auto& step : plan->steps)
        if (runs_a_node(step) && converts_levels(plan->graph.node(step.node))) levels += step.cost;
    const auto conversions = levels > 0 ? fmt::format(", conversions at {},", times_text(levels)) : "";
    const auto floats = f_.products.size() - quantised;
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
    for (const auto& p : f_.products) {
      if (p.in_8_bits() || (dearest && dearest->f32 >= p.f32)) continue;
      for (const auto& f : f_.all.outcomes)
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
    if (f_.s.impl().options().precision == Precision::f32)
      for (const auto& f : f_.all.outcomes)
        if (f.type == "DequantizeLinear" || f.type == "FakeQuantize" || f.type == "Dequantize")
          return "; the model is quantised and runs in f32, as you asked";
    return "";
  }

  std::string bf16() {
    if (const auto can = multiplies_bf16(f_.machine); !can)
      return fmt::format("bf16 would gain nothing: {}.", can.reason());
    double in_f32 = 0, in_bf16 = 0;
    std::size_t floats = 0, narrow = 0, integers = 0;
    for (const auto& p : f_.products) {
      narrow += p.runs == ElementType::bf16, integers += p.in_8_bits();
      if (p.in_8_bits() || p.bf16 <= 0 || p.f32 <= 0) continue;
      ++floats, in_f32 += p.f32, in_bf16 += std::min(p.f32, p.bf16);
    }
    if (f_.products.empty()) return fmt::format("bf16 would gain nothing: {}.", why_no_products());
    if (floats == 0 && integers == f_.products.size())
      return fmt::format(
          "bf16 would gain nothing: {} in 8 bits already.",
          integers == 1 ? "its only product runs" : fmt::format("all {} products run", integers));
    if (floats == 0) return "bf16 would gain nothing: no kernel multiplies bf16 numbers for these products.";
    if (narrow > 0)
      return fmt::format(
          "bf16 is used: {} of {} multiply bf16 numbers, and the {} in floats are estimated at {}, in f32 at "
          "{}.",
          narrow, count_of(f_.products.size(), "product"), floats, times_text(in_bf16), times_text(in_f32));
    const double gain = f_.estimate > 0 ? (in_f32 - in_bf16) / f_.estimate : 0;
    const auto figures =
        fmt::format("{} in f32 {} estimated at {}, in bf16 at {}", count_of(floats, "product"),
                    floats == 1 ? "is" : "are", times_text(in_f32), times_text(in_bf16));
    if (f_.s.impl().precision() == Precision::bf16)
      return fmt::format(
          "bf16 was asked for and no product uses it: {}, and conversions cost more or values must stay f32.",
          figures);
    out_.narrowing = gain;
    if (gain < kWorthSaying) return fmt::format("bf16 would gain almost nothing: {}.", figures);
    return fmt::format("bf16 would save up to {} of the estimated time: {}, before conversions.",
                       percent(gain), figures);
  }

  const PrecisionFacts& f_;
  PrecisionVerdict out_;
};

}  // namespace

PrecisionVerdict precision_verdict(const PrecisionFacts& facts) { return Sentences(facts).verdict(); }

}  // namespace lamina::tool
