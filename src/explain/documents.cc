#include "explain/documents.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace lamina {
namespace {

nlohmann::json json_of(const std::vector<CostPart>& parts) {
  auto j = nlohmann::json::array();
  for (const auto& p : parts)
    j.push_back(
        {{"family", p.family}, {"calls", p.calls}, {"work", p.work}, {"bytes", p.bytes}, {"us", p.us}});
  return j;
}

std::string_view name_of(RuleEvent::Kind kind) {
  return kind == RuleEvent::Kind::fired ? "fired" : kind == RuleEvent::Kind::refused ? "refused" : "removed";
}

nlohmann::json json_of(const std::vector<RuleEvent>& history) {
  auto j = nlohmann::json::array();
  for (const auto& e : history)
    j.push_back({{"rule", e.rule}, {"kind", name_of(e.kind)}, {"node", e.node}, {"text", e.text}});
  return j;
}

nlohmann::json json_of(const NodeExplanation& n, bool timed) {
  constexpr std::size_t kMost = 2000;
  nlohmann::json j{{"node", n.name},
                   {"operators", n.operators.size() > kMost ? clipped(n.operators, kMost) : n.operators}};
  if (n.idle.empty()) {
    j["kernel"] = n.kernel, j["layout"] = n.layout, j["precision"] = n.precision;
    j["flops"] = n.flops, j["bytes"] = n.bytes;
    if (timed) j["us"] = n.us, j["share"] = n.share;
  }
  if (!n.choice) return j;
  j["estimate_us"] = n.choice->estimate_us, j["parts"] = json_of(n.choice->parts);
  if (!n.choice->forced.empty()) j["forced"] = n.choice->forced;
  j["lost"] = nlohmann::json::array();
  j["refused"] = nlohmann::json::array();
  for (const auto& lost : n.choice->rejected)
    j["lost"].push_back({{"kernel", lost.kernel}, {"us", lost.estimate_us}, {"parts", json_of(lost.parts)}});
  for (const auto& r : n.choice->refusing)
    j["refused"].push_back({{"kernel", r.kernel}, {"reason", r.reason}});
  return j;
}

/// JSON of nodes that compute several layers, made once for all of them.
using KnownNodes = std::map<const NodeExplanation*, nlohmann::json>;

nlohmann::json json_of(const LayerExplanation& f, bool timed, KnownNodes& known) {
  nlohmann::json j{{"name", f.name},
                   {"type", f.type},
                   {"fate", name_of(f.fate)},
                   {"text", f.text},
                   {"with", f.companions},
                   {"nodes", nlohmann::json::array()},
                   {"history", json_of(f.history)}};
  if (f.fate == LayerFate::fused) j["into"] = f.into;
  if (!f.rule.empty()) j["rule"] = f.rule;
  if (timed && f.fate == LayerFate::runs) j["us"] = f.us, j["share"] = f.share;
  for (const auto& [node, chief] : f.nodes) {
    auto [it, fresh] = known.try_emplace(node.get());
    if (fresh) it->second = json_of(*node, timed);
    j["nodes"].push_back(it->second);
    j["nodes"].back()["chief"] = chief;
  }
  return j;
}

nlohmann::json json_of(const std::vector<UnfusedStep>& steps, bool timed) {
  auto out = nlohmann::json::array();
  for (const auto& s : steps) {
    out.push_back({{"node", s.node},
                   {"operators", s.operators},
                   {"kernel", s.kernel},
                   {"layers", s.layers},
                   {"behind", s.behind},
                   {"reasons", s.reasons}});
    if (timed) out.back()["us"] = s.us;
  }
  return out;
}

nlohmann::json json_of(const std::vector<ThroughputForecast>& forecast) {
  auto out = nlohmann::json::array();
  for (const auto& f : forecast)
    out.push_back({{"streams", f.streams},
                   {"threads_per_stream", f.threads_per_stream},
                   {"per_second", f.per_second > 0 ? nlohmann::json(f.per_second) : nlohmann::json()}});
  return out;
}

}  // namespace

nlohmann::json to_json(const Explanation& e) {
  nlohmann::json j{{"model", e.model},
                   {"precision", e.precision_notes},
                   {"estimate_us", e.totals.estimate_us},
                   {"rules", nlohmann::json::object()},
                   {"fused", e.fused_layers},
                   {"alone", json_of(e.alone, e.timed())}};
  if (e.timed()) j["us"] = e.totals.us, j["runs"] = e.totals.runs;
  for (const auto& r : e.rules) {
    j["rules"][r.rule] = {{"hits", r.hits}, {"refusals", r.refusals}};
    if (!r.left_out.empty()) j["rules"][r.rule]["left_out"] = r.left_out;
  }
  if (!e.forecast.empty()) j["streams"] = json_of(e.forecast);
  return j;
}

nlohmann::json to_json(const std::vector<const LayerExplanation*>& layers, bool timed) {
  auto j = nlohmann::json::array();
  KnownNodes known;
  for (const auto* f : layers) j.push_back(json_of(*f, timed, known));
  return j;
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

nlohmann::json to_json(const RuleAnswer& answer) {
  nlohmann::json j{{"model", answer.model},
                   {"rule", answer.rule},
                   {"node", answer.layer},
                   {"history", json_of(answer.history)},
                   {"plan", answer.plan}};
  if (answer.history.empty()) j["text"] = answer.text;
  return j;
}

}  // namespace lamina
