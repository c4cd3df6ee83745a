#include "explain/verdict_precision.h"

#include <algorithm>
#include <cmath>

#include "explain/summary.h"
#include "explain/verdict_words.h"
#include "ops/decompose.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"

namespace lamina {
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

  TypeVerdict integers() const {
    const auto quantised = static_cast<std::size_t>(std::count_if(
        f_.products.begin(), f_.products.end(), [](const ProductCost& p) { return p.in_8_bits(); }));
    const auto c = compared(quantised > 0);
    if (c.products.empty())
      return {fmt::format("8 bits gain nothing here: {}.", f_.products.empty()
                                                               ? why_no_products()
                                                               : "no kernel takes its products in 8 bits")};
    if (quantised > 0) return {gain_of_quantised(c, f_.products.size() - quantised)};
    return gain_of_quantising(c);
  }

  TypeVerdict bf16() const {
    if (const auto can = multiplies_bf16(f_.machine); !can)
      return {fmt::format("bf16 would gain nothing: {}.", can.reason())};
    Floats floats;
    std::size_t in_bf16 = 0;
    for (const auto& p : f_.products) {
      in_bf16 += p.runs == ElementType::bf16;
      if (p.in_8_bits() || p.bf16 <= 0 || p.f32 <= 0) continue;
      ++floats.count, floats.as_f32 += p.f32, floats.as_bf16 += std::min(p.f32, p.bf16);
    }
    if (floats.count == 0) return {fmt::format("bf16 would gain nothing: {}.", why_no_floats())};
    if (in_bf16 > 0)
      return {
          fmt::format("bf16 is used: {} of {} multiply bf16 numbers, and the {} in floats are estimated at "
                      "{}, in f32 at {}.",
                      in_bf16, count_of(f_.products.size(), "product"), floats.count,
                      times_text(floats.as_bf16), times_text(floats.as_f32))};
    return gain_of_bf16(floats);
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

  /// The products that have estimates both in 8 bits and in floats, with the sums of these estimates.
  struct Compared {
    std::vector<const ProductCost*> products;
    std::vector<const ProductCost*> losers;  ///< those that do not profit from 8 bits, the worst first
    double in_8_bits = 0, in_floats = 0;
    std::size_t in_bf16 = 0;  ///< products whose floats are bf16
  };
  /// `quantised`: only products that run in 8 bits.
  Compared compared(bool quantised) const {
    Compared out;
    for (const auto& p : f_.products) {
      if ((quantised && !p.in_8_bits()) || p.f32 <= 0 || p.i8 <= 0) continue;
      out.products.push_back(&p);
      const auto in_float = p.runs == ElementType::bf16 && p.bf16 > 0 ? p.bf16 : p.f32;
      out.in_8_bits += p.i8, out.in_floats += in_float, out.in_bf16 += p.runs == ElementType::bf16;
      if (p.i8 > kProfits * in_float) out.losers.push_back(&p);
    }
    std::stable_sort(out.losers.begin(), out.losers.end(),
                     [](const auto* a, const auto* b) { return a->i8 - a->f32 > b->i8 - b->f32; });
    return out;
  }

  /// "each of them profits", "2 do not profit: 'a' and 'b'"
  static std::string which_profit(const Compared& c) {
    const bool single = c.products.size() == 1;
    if (c.losers.empty()) return single ? "it profits" : "each of them profits";
    if (c.losers.size() == c.products.size()) return single ? "it does not profit" : "none of them profits";
    std::vector<std::string> names;
    for (const auto* p : c.losers)
      if (names.size() < kMostNames) names.push_back(in_quotes(p->layer));
    return fmt::format("{} {} not profit: {}", c.losers.size(), c.losers.size() == 1 ? "does" : "do",
                       list(names, c.losers.size()));
  }

  static std::string are_estimated(const Compared& c) {
    return count_of(c.products.size(), "product") + (c.products.size() == 1 ? " is" : " are") +
           " estimated at";
  }

  TypeVerdict gain_of_quantising(const Compared& c) const {
    const double gain = f_.estimate > 0 ? std::max(0.0, c.in_floats - c.in_8_bits) / f_.estimate : 0;
    const auto type = c.in_bf16 == c.products.size() ? "in bf16" : c.in_bf16 > 0 ? "as they run" : "in f32";
    const auto how = c.in_8_bits >= kProfits * c.in_floats ? "would not pay"
                     : gain < kWorthSaying                 ? "would gain almost nothing"
                                                           : "would pay";
    return {fmt::format("8 bits {} on {}: {} {} in 8 bits and {} {}, of {} for all steps; {}{}.", how,
                        processor(), are_estimated(c), times_text(c.in_8_bits), times_text(c.in_floats), type,
                        times_text(f_.estimate), which_profit(c), why_quantised_is_f32()),
            gain};
  }

  /// `floats`: the number of products that do not run in 8 bits.
  std::string gain_of_quantised(const Compared& c, std::size_t floats) const {
    double levels = 0;
    for (const auto& plan : f_.all.plans)
      for (const auto& step : plan->steps)
        if (step.runs_a_node() && converts_levels(plan->graph.node(step.node))) levels += step.cost;
    const auto conversions = levels > 0 ? fmt::format(", conversions at {},", times_text(levels)) : "";
    const auto left =
        floats ? fmt::format("; {} not in 8 bits{}",
                             count_of(floats, "product") + (floats == 1 ? " is" : " are"), why_float())
               : "";
    return fmt::format("8 bits {} on {}: {} {} in 8 bits{} and {} in f32; {}{}.",
                       c.in_8_bits + levels < kProfits * c.in_floats ? "pay" : "do not pay", processor(),
                       are_estimated(c), times_text(c.in_8_bits), conversions, times_text(c.in_floats),
                       which_profit(c), left);
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
    if (f_.compiled.options().precision == Precision::f32)
      for (const auto& f : f_.all.outcomes)
        if (f.type == "DequantizeLinear" || f.type == "FakeQuantize" || f.type == "Dequantize")
          return "; the model is quantised and runs in f32, as you asked";
    return "";
  }

  /// Products of floats, with the sums of their estimates.
  struct Floats {
    std::size_t count = 0;
    double as_f32 = 0, as_bf16 = 0;
  };

  /// Why there is no product of floats that could be one of bf16.
  std::string why_no_floats() const {
    const auto count = f_.products.size();
    if (count == 0) return why_no_products();
    if (!std::all_of(f_.products.begin(), f_.products.end(), [](const auto& p) { return p.in_8_bits(); }))
      return "no kernel multiplies bf16 numbers for these products";
    return (count == 1 ? "its only product runs" : fmt::format("all {} products run", count)) +
           " in 8 bits already";
  }

  /// For products that all run in f32.
  TypeVerdict gain_of_bf16(const Floats& floats) const {
    const auto figures =
        fmt::format("{} in f32 {} estimated at {}, in bf16 at {}", count_of(floats.count, "product"),
                    floats.count == 1 ? "is" : "are", times_text(floats.as_f32), times_text(floats.as_bf16));
    if (f_.compiled.precision() == Precision::bf16)
      return {
          fmt::format("bf16 was asked for and no product uses it: {}, and conversions cost more or values "
                      "must stay f32.",
                      figures)};
    const double gain = f_.estimate > 0 ? (floats.as_f32 - floats.as_bf16) / f_.estimate : 0;
    if (gain < kWorthSaying) return {fmt::format("bf16 would gain almost nothing: {}.", figures), gain};
    return {fmt::format("bf16 would save up to {} of the estimated time: {}, before conversions.",
                        percent(gain), figures),
            gain};
  }

  const PrecisionFacts& f_;
};

}  // namespace

PrecisionVerdict precision_verdict(const PrecisionFacts& facts) {
  const Sentences sentences(facts);
  return {sentences.integers(), sentences.bf16()};
}

}  // namespace lamina
