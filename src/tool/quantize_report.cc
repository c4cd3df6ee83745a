#include "tool/quantize_report.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "draw/report_page.h"
#include "draw/text.h"
#include "tool/common.h"
#include "tool/noise_cells.h"

namespace lamina::tool {
namespace {

constexpr std::size_t kMostRows = 4000;  // layers that have a row in the page

std::size_t quantised_layers(const QuantisedModel& m) {
  return static_cast<std::size_t>(
      std::count_if(m.layers.begin(), m.layers.end(), [](const auto& l) { return l.layer.reason.empty(); }));
}

/// Reasons for f32 with the layers that have them.
std::map<std::string, std::vector<std::string>> reasons(const QuantisedModel& m) {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& l : m.layers)
    if (!l.layer.reason.empty()) out[l.layer.reason].push_back(l.layer.name);
  return out;
}

std::string settings(const QuantiseRequest& r, const QuantisedModel& m) {
  const auto& s = r.scheme;
  auto range = std::string(name_of(m.calibration));
  if (m.calibration == Calibration::percentile) range += fmt::format(" {}", s.ranges.percentile);
  return fmt::format("{} activations by {}, {}-bit weights {}{}, {} sample{}",
                     s.ranges.symmetric ? "symmetric" : "asymmetric", range, s.weights.bits,
                     s.weights.per_channel ? "per channel" : "per tensor",
                     m.equalised ? ", channels equalised" : "", r.samples.count,
                     r.samples.count == 1 ? "" : "s");
}

std::string measured_with(const QuantizeReport& r) {
  return fmt::format("{} sample{}{}", r.request.held_out.count, r.request.held_out.count == 1 ? "" : "s",
                     r.measures_others ? " that were not used for calibration" : " of the calibration");
}

std::string layer_row(const LayerReport& l) {
  auto out = "<tr><th>" + escape_xml(l.layer.name) + "</th>" + html_cell(l.layer.type) + snr_bar(l.sqnr) +
             html_cell(decibel_text(l.sqnr));
  if (!l.layer.reason.empty())
    return out + "<td colspan=\"3\">f32: " + escape_xml(l.layer.reason) + "</td></tr>\n";
  return out + html_cell(decibel_text(l.weights_sqnr)) +
         html_cell(fmt::format("{} {:.6g} to {:.6g}", name_of(l.input.type), l.input.low(), l.input.high())) +
         html_cell(fmt::format("{:.6g}, {}", l.input.scale, l.input.zero_point)) + "</tr>\n";
}

std::string outputs_table(const QuantisedModel& m) {
  std::string out =
      "<h2>Outputs</h2>\n<table>\n<tr><th>output</th><td></td><td>signal to noise</td><td>relative error</td>"
      "<td>largest difference</td><td>mean difference</td></tr>\n";
  for (const auto& [name, drift] : m.outputs)
    out += "<tr><th>" + escape_xml(name) + "</th>" + snr_bar(drift.sqnr()) +
           html_cell(decibel_text(drift.sqnr())) + html_cell(fmt::format("{:.4g}", drift.relative())) +
           html_cell(fmt::format("{:.4g}", drift.max())) + html_cell(fmt::format("{:.4g}", drift.mean())) +
           "</tr>\n";
  return out + "</table>\n";
}

std::string layers_table(const QuantisedModel& m) {
  std::string out =
      "<h2>Layers</h2>\n<p class=\"note\">Noise of each layer's result in the quantised model, including "
      "that of the layers before "
      "it.</p>\n<table>\n<tr><th>layer</th><td>operator</td><td></td><td>result</td><td>weights</td>"
      "<td>input</td><td>scale, zero point</td></tr>\n";
  for (std::size_t i = 0; i < std::min(m.layers.size(), kMostRows); ++i) out += layer_row(m.layers[i]);
  out += "</table>\n";
  if (m.layers.size() > kMostRows)
    out += fmt::format("<p class=\"note\">and {} more</p>\n", m.layers.size() - kMostRows);
  return out;
}

std::string f32_list(const QuantisedModel& m) {
  const auto all = reasons(m);
  if (all.empty() && m.others_in_f32.empty()) return "<h2>Left in f32</h2>\n<p>No layer.</p>\n";
  std::string out = "<h2>Left in f32</h2>\n<ul>\n";
  for (const auto& [reason, names] : all)
    out += fmt::format("<li>{} layer{}: {}</li>\n", names.size(), names.size() == 1 ? "" : "s",
                       escape_xml(reason));
  for (const auto& other : m.others_in_f32) out += "<li>" + escape_xml(other) + "</li>\n";
  return out + "</ul>\n";
}

}  // namespace

std::vector<std::string> lines_of(const QuantizeReport& r) {
  const auto& m = r.result;
  std::vector<std::string> out;
  out.push_back(fmt::format("quantised   {} of {} layers, {} values; {}", quantised_layers(m),
                            m.layers.size(), m.values, settings(r.request, r.result)));
  for (const auto& [reason, names] : reasons(m))
    out.push_back(fmt::format("f32         {}{}: {}", names[0],
                              names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "", reason));
  for (const auto& other : m.others_in_f32) out.push_back("f32         " + other);
  for (const auto& [name, drift] : m.outputs)
    out.push_back(fmt::format("drift       {}: {}, relative {:.3g}, max {:.3g}, mean {:.3g}", name,
                              decibel_text(drift.sqnr()), drift.relative(), drift.max(), drift.mean()));
  out.push_back("measured    with " + measured_with(r));
  out.push_back(fmt::format("{}: {}, the model was {}", r.output,
                            human_bytes(static_cast<double>(r.bytes_after)),
                            human_bytes(static_cast<double>(r.bytes_before))));
  return out;
}

nlohmann::json json_of(const QuantizeReport& r) {
  const auto& m = r.result;
  auto outputs = nlohmann::json::array(), layers = nlohmann::json::array();
  for (const auto& [name, drift] : m.outputs)
    outputs.push_back({{"name", name},
                       {"sqnr_db", finite_number(drift.sqnr())},
                       {"relative", finite_number(drift.relative())},
                       {"max", drift.max()},
                       {"mean", drift.mean()},
                       {"not_comparable", drift.not_comparable()}});
  for (const auto& l : m.layers) {
    nlohmann::json row{{"name", l.layer.name},
                       {"type", l.layer.type},
                       {"sqnr_db", finite_number(l.sqnr)},
                       {"precision", l.layer.reason.empty() ? "int8" : "f32"}};
    if (l.layer.reason.empty())
      row.update({{"weights_sqnr_db", finite_number(l.weights_sqnr)},
                  {"input_type", name_of(l.input.type)},
                  {"input_scale", l.input.scale},
                  {"input_zero_point", l.input.zero_point}});
    else
      row["reason"] = l.layer.reason;
    layers.push_back(std::move(row));
  }
  return {{"model", r.model},
          {"output", r.output},
          {"bytes_before", r.bytes_before},
          {"bytes", r.bytes_after},
          {"settings", settings(r.request, r.result)},
          {"samples", r.request.samples.count},
          {"measured_with", r.request.held_out.count},
          {"held_out", r.measures_others},
          {"quantised_layers", quantised_layers(m)},
          {"quantised_values", m.values},
          {"normalisations_folded", m.normalised},
          {"pairs_equalised", m.equalised},
          {"evaluations", m.evaluations},
          {"others_in_f32", m.others_in_f32},
          {"notes", r.notes},
          {"outputs", std::move(outputs)},
          {"layers", std::move(layers)}};
}

std::string html_of(const QuantizeReport& r) {
  const auto& m = r.result;
  const auto name = std::filesystem::path(r.model).filename().string();
  const auto title = fmt::format("{}: quantised to 8 bits", printable(name));
  std::string body = "<h1>" + escape_xml(title) + "</h1>\n";
  body += fmt::format("<p class=\"sub\">{}</p>\n", escape_xml(settings(r.request, r.result)));
  body += fmt::format(
      "<p class=\"lead\">{} of {} layers are quantised. The model took {}, the quantised one takes {}.</p>\n",
      quantised_layers(m), m.layers.size(), human_bytes(static_cast<double>(r.bytes_before)),
      human_bytes(static_cast<double>(r.bytes_after)));
  body += fmt::format("<p class=\"note\">Measured against the f32 model with {}.</p>\n", measured_with(r));
  if (m.normalised || m.equalised)
    body += fmt::format(
        "<p class=\"note\">{} batch normalisations became part of layers, {} pairs of layers were "
        "equalised.</p>\n",
        m.normalised, m.equalised);
  for (const auto& note : r.notes) body += "<p class=\"note\">" + escape_xml(note) + "</p>\n";
  return report_page(title, body + outputs_table(m) + f32_list(m) + layers_table(m));
}

}  // namespace lamina::tool
