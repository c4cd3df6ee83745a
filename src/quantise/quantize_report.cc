/// What there is to say about a quantisation: lines, a document, a page.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/guard.h"
#include "base/json_text.h"
#include "base/table_text.h"
#include "draw/report_page.h"
#include "draw/text.h"
#include "lamina/quantize.h"
#include "quantise/noise_cells.h"

namespace lamina {
namespace {

constexpr std::size_t kMostRows = 4000;  // layers that have a row in the page

std::size_t quantised_layers(const QuantizeReport& r) {
  return static_cast<std::size_t>(
      std::count_if(r.layers.begin(), r.layers.end(), [](const auto& l) { return l.reason.empty(); }));
}

/// Reasons for f32 with the layers that have them.
std::map<std::string, std::vector<std::string>> reasons(const QuantizeReport& r) {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& l : r.layers)
    if (!l.reason.empty()) out[l.reason].push_back(l.name);
  return out;
}

std::string measured_with_text(const QuantizeReport& r) {
  return fmt::format("{} sample{}{}", r.measured_with, r.measured_with == 1 ? "" : "s",
                     r.held_out ? " that were not used for calibration" : " of the calibration");
}

std::string layer_row(const QuantizedLayer& l) {
  auto out = "<tr><th>" + escape_xml(l.name) + "</th>" + html_cell(l.type) + snr_bar(l.sqnr_db) +
             html_cell(decibel_text(l.sqnr_db));
  if (!l.reason.empty()) return out + "<td colspan=\"3\">f32: " + escape_xml(l.reason) + "</td></tr>\n";
  return out + html_cell(decibel_text(l.weights_sqnr_db)) +
         html_cell(fmt::format("{} {:.6g} to {:.6g}", name_of(l.input_type), l.input_low, l.input_high)) +
         html_cell(fmt::format("{:.6g}, {}", l.input_scale, l.input_zero_point)) + "</tr>\n";
}

std::string outputs_table(const QuantizeReport& r) {
  std::string out =
      "<h2>Outputs</h2>\n<table>\n<tr><th>output</th><td></td><td>signal to noise</td><td>relative error</td>"
      "<td>largest difference</td><td>mean difference</td></tr>\n";
  for (const auto& output : r.outputs)
    out += "<tr><th>" + escape_xml(output.name) + "</th>" + snr_bar(output.sqnr_db) +
           html_cell(decibel_text(output.sqnr_db)) + html_cell(fmt::format("{:.4g}", output.relative)) +
           html_cell(fmt::format("{:.4g}", output.max)) + html_cell(fmt::format("{:.4g}", output.mean)) +
           "</tr>\n";
  return out + "</table>\n";
}

std::string layers_table(const QuantizeReport& r) {
  std::string out =
      "<h2>Layers</h2>\n<p class=\"note\">Noise of each layer's result in the quantised model, including "
      "that of the layers before "
      "it.</p>\n<table>\n<tr><th>layer</th><td>operator</td><td></td><td>result</td><td>weights</td>"
      "<td>input</td><td>scale, zero point</td></tr>\n";
  for (std::size_t i = 0; i < std::min(r.layers.size(), kMostRows); ++i) out += layer_row(r.layers[i]);
  out += "</table>\n";
  if (r.layers.size() > kMostRows)
    out += fmt::format("<p class=\"note\">and {} more</p>\n", r.layers.size() - kMostRows);
  return out;
}

std::string f32_list(const QuantizeReport& r) {
  const auto all = reasons(r);
  if (all.empty() && r.others_in_f32.empty()) return "<h2>Left in f32</h2>\n<p>No layer.</p>\n";
  std::string out = "<h2>Left in f32</h2>\n<ul>\n";
  for (const auto& [reason, names] : all)
    out += fmt::format("<li>{} layer{}: {}</li>\n", names.size(), names.size() == 1 ? "" : "s",
                       escape_xml(reason));
  for (const auto& other : r.others_in_f32) out += "<li>" + escape_xml(other) + "</li>\n";
  return out + "</ul>\n";
}

}  // namespace

std::vector<std::string> QuantizeReport::lines() const {
  return guarded("QuantizeReport::lines", [&] {
    std::vector<std::string> out;
    out.push_back(fmt::format("quantised   {} of {} layers, {} values; {}", quantised_layers(*this),
                              layers.size(), quantized_values, settings));
    for (const auto& [reason, names] : reasons(*this))
      out.push_back(fmt::format("f32         {}{}: {}", names[0],
                                names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "",
                                reason));
    for (const auto& other : others_in_f32) out.push_back("f32         " + other);
    for (const auto& o : outputs)
      out.push_back(fmt::format("drift       {}: {}, relative {:.3g}, max {:.3g}, mean {:.3g}", o.name,
                                decibel_text(o.sqnr_db), o.relative, o.max, o.mean));
    out.push_back("measured    with " + measured_with_text(*this));
    out.push_back(fmt::format("{}: {}, the model was {}", output, human_bytes(static_cast<double>(bytes)),
                              human_bytes(static_cast<double>(bytes_before))));
    return out;
  });
}

namespace {

nlohmann::json row_of(const QuantizedOutput& o) {
  return {{"name", o.name},
          {"sqnr_db", finite_number(o.sqnr_db)},
          {"relative", finite_number(o.relative)},
          {"max", o.max},
          {"mean", o.mean},
          {"not_comparable", o.not_comparable}};
}

nlohmann::json row_of(const QuantizedLayer& l) {
  nlohmann::json row{{"name", l.name},
                     {"type", l.type},
                     {"sqnr_db", finite_number(l.sqnr_db)},
                     {"precision", l.reason.empty() ? "int8" : "f32"}};
  if (l.reason.empty())
    row.update({{"weights_sqnr_db", finite_number(l.weights_sqnr_db)},
                {"input_type", name_of(l.input_type)},
                {"input_scale", l.input_scale},
                {"input_zero_point", l.input_zero_point}});
  else
    row["reason"] = l.reason;
  return row;
}

template <class Row>
nlohmann::json rows_of(const std::vector<Row>& all) {
  auto out = nlohmann::json::array();
  for (const auto& one : all) out.push_back(row_of(one));
  return out;
}

}  // namespace

std::string QuantizeReport::json() const {
  return guarded("QuantizeReport::json", [&] {
    const nlohmann::json document{{"model", model},
                                  {"output", output},
                                  {"bytes_before", bytes_before},
                                  {"bytes", bytes},
                                  {"settings", settings},
                                  {"samples", samples},
                                  {"measured_with", measured_with},
                                  {"held_out", held_out},
                                  {"quantised_layers", quantised_layers(*this)},
                                  {"quantised_values", quantized_values},
                                  {"normalisations_folded", normalisations_folded},
                                  {"pairs_equalised", pairs_equalized},
                                  {"evaluations", evaluations},
                                  {"others_in_f32", others_in_f32},
                                  {"notes", notes},
                                  {"outputs", rows_of(outputs)},
                                  {"layers", rows_of(layers)}};
    return json_text(document);
  });
}

std::string QuantizeReport::html() const {
  return guarded("QuantizeReport::html", [&] {
    const auto name = std::filesystem::path(model).filename().string();
    const auto title = fmt::format("{}: quantised to 8 bits", printable(name));
    std::string body = "<h1>" + escape_xml(title) + "</h1>\n";
    body += fmt::format("<p class=\"sub\">{}</p>\n", escape_xml(settings));
    body += fmt::format(
        "<p class=\"lead\">{} of {} layers are quantised. The model took {}, the quantised one takes "
        "{}.</p>\n",
        quantised_layers(*this), layers.size(), human_bytes(static_cast<double>(bytes_before)),
        human_bytes(static_cast<double>(bytes)));
    body += fmt::format("<p class=\"note\">Measured against the f32 model with {}.</p>\n",
                        measured_with_text(*this));
    if (normalisations_folded || pairs_equalized)
      body += fmt::format(
          "<p class=\"note\">{} batch normalisations became part of layers, {} pairs of layers were "
          "equalised.</p>\n",
          normalisations_folded, pairs_equalized);
    for (const auto& note : notes) body += "<p class=\"note\">" + escape_xml(note) + "</p>\n";
    return report_page(title, body + outputs_table(*this) + f32_list(*this) + layers_table(*this));
  });
}

}  // namespace lamina
