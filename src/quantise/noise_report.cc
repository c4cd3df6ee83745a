/// What there is to say about the noise of a quantised model: lines, a document, a page.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/guard.h"
#include "base/json_text.h"
#include "base/table_text.h"
#include "draw/report_page.h"
#include "draw/text.h"
#include "lamina/check.h"
#include "quantise/layer_noise.h"
#include "quantise/noise_cells.h"

namespace lamina {
namespace {

constexpr double kGoodSnr = 30;      // dB: users seldom see a difference
constexpr double kRestMatters = 20;  // dB that the rest must be better than the whole

/// The layers that cause most of the outputs' noise first; without shares those with the worst output.
std::vector<const LayerNoise*> rows_by_share(const NoiseReport& r) {
  std::vector<const LayerNoise*> out;
  for (const auto& layer : r.layers) out.push_back(&layer);
  if (r.has_shares)
    std::stable_sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->share > b->share; });
  return out;
}

/// Noise by rounding of what the layer reads; "-" if nothing is rounded there.
std::string input_text(const LayerNoise& l) {
  return std::isinf(l.input_sqnr_db) && l.input_sqnr_db > 0 ? "-" : decibel_text(l.input_sqnr_db);
}

std::string operators_of(const LayerNoise& l) {
  if (l.with.empty()) return l.operators;
  return l.operators + fmt::format(" (with {})", fmt::join(l.with, ", "));
}

/// "['a', 'b']": a list in Python.
std::string python_list(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) {
    out += out.empty() ? "'" : ", '";
    for (const char c : name) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    out += "'";
  }
  return "[" + out + "]";
}

/// A regular expression that fits the name alone, as lamina's options take it.
std::string as_pattern(const std::string& name) {
  const bool plain = name.find_first_of("\\^$|?*+()[]{}") == std::string::npos;
  return plain ? name : "\\Q" + name + "\\E";
}

std::string exclude_options(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names)
    out += (out.empty() ? "--exclude " : " --exclude ") + shell_word(as_pattern(name));
  return out;
}

std::string matched_text(const NoiseReport& r) {
  return fmt::format("{} of {} layers with weights have a counterpart of their own; {} of them are in f32",
                     r.matched, r.weighted, r.exact);
}

std::string not_finite_text(const OutputNoise& o) {
  if (o.not_finite == 0) return "";
  return fmt::format("; left out: {} NaN or infinite in both models", o.not_finite);
}

std::vector<std::string> inputs_not_finite(const NoiseReport& r) {
  std::vector<std::string> out;
  for (const auto& [name, samples] : r.not_finite)
    out.push_back(
        fmt::format("{} has NaN or infinities in {} of {} sample{}: the figures hold what the models "
                    "make of them, and may mean little.",
                    name, samples, r.samples, r.samples == 1 ? "" : "s"));
  return out;
}

/// "the worst output has 24.7 dB". `subject`: who has it.
std::string noise_sentence(std::string_view subject, double snr) {
  if (std::isfinite(snr)) return fmt::format("{} has {}", subject, decibel_text(snr));
  if (snr > 0) return fmt::format("{} has no noise", subject);
  return fmt::format(
      "{} cannot be compared with that of the f32 model: it has another shape, or NaN or infinities that the "
      "other does not have",
      subject);
}

/// What follows from the report, a sentence each.
std::vector<std::string> advice(const NoiseReport& r) {
  if (!r.has_shares) {
    const bool same = std::all_of(r.outputs.begin(), r.outputs.end(),
                                  [](const auto& output) { return output.relative == 0; });
    return {same ? "The outputs of both models are the same."
                 : "The outputs cannot be compared: they are integers, have another shape in one model, or "
                   "NaN or infinities in one model only. No layer can be proposed."};
  }
  std::vector<std::string> out;
  if (r.left_out.nodes.empty())
    out.push_back(r.sqnr_db >= kGoodSnr
                      ? "No layer stands out, and little noise reaches the outputs."
                      : "The noise is spread over many layers: leaving out a few does not help. Try other "
                        "calibration data or another method, and weights per channel.");
  else
    out.push_back(fmt::format(
        "{} now. With {} in f32 {} (estimated: a quantiser finds other ranges then).",
        noise_sentence("The worst output", r.sqnr_db),
        r.left_out.nodes.size() == 1 ? "this node" : fmt::format("these {} nodes", r.left_out.nodes.size()),
        noise_sentence("it", r.left_out.sqnr_db)));
  constexpr std::size_t kFew = 32;
  if (r.compared < kFew)
    out.push_back(
        fmt::format("The outputs of all samples have {} number{} together, so much of this is chance: give "
                    "more samples by --data.",
                    r.compared, r.compared == 1 ? "" : "s"));
  if (r.left_out.has_unnamed)
    out.push_back(
        "A node without a name in the file is called after its first output. onnxruntime excludes by names "
        "only: set node.name = node.name or node.output[0] for all nodes before it quantises.");
  if (r.rest_sqnr_db < std::min(kExactSnr, r.sqnr_db + kRestMatters))
    out.push_back(fmt::format(
        "With everything that was measured in f32 {}. Some of the noise belongs to no layer of the "
        "table.",
        noise_sentence("the worst output", r.rest_sqnr_db)));
  return out;
}

const char* const kExplanation[] = {
    "share: the part of the noise of the outputs that this layer causes if it alone is quantised. All shares "
    "together are 100%.",
    "output: noise of the layer's output, with that of all layers before it.",
    "own: noise that the layer itself adds, compared with the f32 layer on the same inputs: by its weights "
    "and "
    "arithmetic, and by rounding its result if the file has only the rounded result.",
    "input: noise of rounding the layer's input.",
};

std::string outputs_table(const NoiseReport& r) {
  std::string out =
      "<h2>Outputs</h2>\n<table>\n<tr><th>output</th><td></td><td>signal to noise</td><td>largest "
      "difference</td><td>mean difference</td></tr>\n";
  for (const auto& o : r.outputs)
    out += "<tr><th>" + escape_xml(o.name) + "</th>" + snr_bar(o.sqnr_db) +
           html_cell(decibel_text(o.sqnr_db) + not_finite_text(o)) + html_cell(fmt::format("{:.4g}", o.max)) +
           html_cell(fmt::format("{:.4g}", o.mean)) + "</tr>\n";
  return out + "</table>\n";
}

/// A cell that sorts by its number.
std::string number_cell(double x, const std::string& text) {
  const double key = std::isfinite(x) ? x : x > 0 ? 1e9 : -1e9;
  return fmt::format("<td data-v=\"{:.6g}\">{}</td>", key, escape_xml(text));
}

std::string layer_row(const LayerNoise& l) {
  return "<tr><th>" + escape_xml(l.name) + "</th>" + html_cell(operators_of(l)) +
         number_cell(l.share, share_text(l.share)) + share_bar(l.share) +
         number_cell(l.sqnr_db, decibel_text(l.sqnr_db)) + snr_bar(l.sqnr_db) +
         number_cell(l.own_sqnr_db, decibel_text(l.own_sqnr_db)) +
         number_cell(l.input_sqnr_db, input_text(l)) + "</tr>\n";
}

constexpr std::string_view kSorting = R"(<style>
.sort tr:first-child>*{cursor:pointer}
.sort td:nth-child(2){text-align:left;overflow-wrap:anywhere}
.sort th{overflow-wrap:anywhere}
</style>
<script>
'use strict';
for (const table of document.querySelectorAll('table.sort')) {
  const head = table.rows[0];
  const key = (row, i) => row.cells[i].dataset.v === undefined ? row.cells[i].textContent : +row.cells[i].dataset.v;
  let last = -1, up = false;
  head.addEventListener('click', event => {
    let i = event.target.closest('td,th').cellIndex;
    if (head.cells[i].textContent === '') --i;  // the bars belong to the numbers before them
    up = i === last ? !up : i !== 2;
    last = i;
    const rows = [...table.rows].slice(1);
    rows.sort((a, b) => { const x = key(a, i), y = key(b, i); return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); });
    for (const row of rows) row.parentNode.append(row);
  });
}
</script>
)";

std::vector<std::string> lines_of(const NoiseReport& r) {
  const auto rows = rows_by_share(r);
  std::vector<std::string> out;
  const auto row = [&](const std::string& name, const std::string& operators, const std::string& share,
                       const std::string& snr, const std::string& own, const std::string& input) {
    out.push_back(fmt::format("{} {:>7} {:>14} {:>14} {:>14}  {}", padded(name, 36), share, snr, own, input,
                              operators));
  };
  if (!rows.empty()) row("layer", "operators", "share", "output", "own", "input");
  for (const auto* l : rows)
    row(l->name, operators_of(*l), r.has_shares ? share_text(l->share) : "-", decibel_text(l->sqnr_db),
        decibel_text(l->own_sqnr_db), input_text(*l));
  if (!rows.empty()) out.emplace_back();
  for (const auto& sentence : inputs_not_finite(r)) out.push_back("input       " + sentence);
  for (const auto& o : r.outputs)
    out.push_back(fmt::format("output      {}: {}, relative {:.3g}, max {:.3g}, mean {:.3g}{}", o.name,
                              decibel_text(o.sqnr_db), o.relative, o.max, o.mean, not_finite_text(o)));
  out.push_back("layers      " + matched_text(r));
  for (const auto& sentence : advice(r)) out.push_back("leave out   " + sentence);
  if (r.left_out.nodes.empty()) return out;
  out.push_back("lamina      quantize " + exclude_options(r.left_out.nodes));
  out.push_back("onnxruntime nodes_to_exclude=" + python_list(r.left_out.nodes));
  return out;
}

nlohmann::json document_of(const NoiseReport& r) {
  auto outputs = nlohmann::json::array(), layers = nlohmann::json::array(),
       not_finite = nlohmann::json::array();
  for (const auto& [name, samples] : r.not_finite)
    not_finite.push_back({{"name", name}, {"samples", samples}});
  for (const auto& o : r.outputs)
    outputs.push_back({{"name", o.name},
                       {"sqnr_db", finite_number(o.sqnr_db)},
                       {"relative", finite_number(o.relative)},
                       {"max", o.max},
                       {"mean", o.mean},
                       {"not_comparable", o.not_comparable},
                       {"not_finite", o.not_finite}});
  for (const auto* l : rows_by_share(r))
    layers.push_back({{"name", l->name},
                      {"operators", l->operators},
                      {"with", l->with},
                      {"has_weights", l->has_weights},
                      {"share", r.has_shares ? nlohmann::json(l->share) : nlohmann::json()},
                      {"sqnr_db", finite_number(l->sqnr_db)},
                      {"own_sqnr_db", finite_number(l->own_sqnr_db)},
                      {"input_sqnr_db", finite_number(l->input_sqnr_db)}});
  return {{"model", r.model},
          {"against", r.against},
          {"random_inputs", r.random_inputs},
          {"notes", r.notes},
          {"samples", r.samples},
          {"inputs_not_finite", std::move(not_finite)},
          {"outputs", std::move(outputs)},
          {"layers", std::move(layers)},
          {"layers_with_weights", r.weighted},
          {"layers_matched", r.matched},
          {"layers_in_f32", r.exact},
          {"leave_out", r.left_out.nodes},
          {"leave_out_layers", r.left_out.layers},
          {"leave_out_unnamed", r.left_out.has_unnamed},
          {"sqnr_db", finite_number(r.sqnr_db)},
          {"sqnr_without_db", finite_number(r.left_out.sqnr_db)},
          {"sqnr_of_rest_db", finite_number(r.rest_sqnr_db)}};
}

std::string page_of(const NoiseReport& r) {
  const auto file = [](const std::string& path) {
    return printable(std::filesystem::path(path).filename().string());
  };
  const auto title = fmt::format("{}: noise against {}", file(r.model), file(r.against));
  std::string body = "<h1>" + escape_xml(title) + "</h1>\n<p class=\"sub\">" + matched_text(r) + "</p>\n";
  for (const auto& sentence : advice(r)) body += "<p class=\"lead\">" + escape_xml(sentence) + "</p>\n";
  if (!r.left_out.nodes.empty())
    body += "<figure><figcaption>lamina quantize " + escape_xml(exclude_options(r.left_out.nodes)) +
            "</figcaption></figure>\n<figure><figcaption>nodes_to_exclude=" +
            escape_xml(python_list(r.left_out.nodes)) + "</figcaption></figure>\n";
  if (r.random_inputs)
    body += "<p class=\"lead\">Measured with random inputs. Real ones give other figures.</p>\n";
  for (const auto& sentence : inputs_not_finite(r))
    body += "<p class=\"lead\">Input " + escape_xml(sentence) + "</p>\n";
  for (const auto& note : r.notes) body += "<p class=\"note\">" + escape_xml(note) + "</p>\n";
  body += outputs_table(r) + "<h2>Layers</h2>\n";
  for (const auto* sentence : kExplanation) body += fmt::format("<p class=\"note\">{}</p>\n", sentence);
  body +=
      "<table "
      "class=\"sort\">\n<tr><th>layer</th><td>operators</td><td>share</td><td></td><td>output</td><td></td>"
      "<td>own</td><td>input</td></tr>\n";
  for (const auto* l : rows_by_share(r)) body += layer_row(*l);
  body += "</table>\n";
  return report_page(title, body + std::string(kSorting));
}

}  // namespace

std::vector<std::string> NoiseReport::lines() const {
  return guarded("NoiseReport::lines", [&] { return lines_of(*this); });
}

std::string NoiseReport::json() const {
  return guarded("NoiseReport::json", [&] { return json_text(document_of(*this)); });
}

std::string NoiseReport::html() const {
  return guarded("NoiseReport::html", [&] { return page_of(*this); });
}

}  // namespace lamina
