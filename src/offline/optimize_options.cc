#include "offline/optimize_options.h"

#include <algorithm>
#include <cmath>

#include "api/input_shapes.h"
#include "base/guard.h"
#include "base/nearest.h"
#include "base/no_destructor.h"
#include "base/words.h"
#include "offline/faq.h"
#include "offline/mean_file.h"
#include "offline/option_names.h"
#include "offline/preprocessing_options.h"
#include "rewrite/exemptions.h"

namespace lamina {
namespace {

const OptionFields& optimize_fields() {
  static const ProcessLifetime fields([] {
    return OptionFields{
        {"--input", "input"},
        {"--output", "output"},
        {"--freeze_placeholder_with_value", "freeze_placeholder_with_value"},
        {"--input_shape", "input_shape"},
        {"--shape", "shape"},
        {"--batch", "batch"},
        {"--layout", "layout"},
        {"--source_layout", "source_layout"},
        {"--target_layout", "target_layout"},
        {"--mean_values", "mean_values"},
        {"--scale_values", "scale_values"},
        {"--scale", "scale"},
        {"--reverse_input_channels", "reverse_input_channels"},
        {"--mean_file", "mean_file"},
        {"--mean_file_offsets", "mean_file_offsets"},
        {"--finegrain_fusing", "finegrain_fusing"},
    };
  });
  return *fields;
}

PartialShape public_shape(const Shape& shape) {
  PartialShape out;
  for (std::size_t i = 0; i < shape.rank(); ++i) out.emplace_back(shape[i].low(), shape[i].high());
  return out;
}

Shape asked_shape(const std::string& option, const PartialShape& sizes) {
  if (const auto wrong = wrong_sizes(sizes); !wrong.empty())
    fail_faq(ErrorCode::bad_option, 57, "{}: {}", option, wrong);
  return shape_of(sizes);
}

std::vector<InputCut> public_cuts(const std::vector<InputRequest>& requests) {
  std::vector<InputCut> out;
  for (const auto& r : requests) {
    out.push_back({.name = r.place, .type = r.type, .value = r.value});
    if (r.shape) out.back().shape = public_shape(*r.shape);
  }
  return out;
}

std::vector<InputRequest> requests_of(const std::string& option, const std::vector<InputCut>& cuts) {
  std::vector<InputRequest> out;
  for (const auto& c : cuts) {
    if (c.name.empty()) fail_faq(ErrorCode::bad_option, 57, "{}: a name is missing", option);
    out.push_back({.place = c.name, .shape = {}, .type = c.type, .value = c.value});
    if (c.shape) out.back().shape = asked_shape(option + " " + c.name, *c.shape);
  }
  return out;
}

std::vector<ChannelValues> public_values(const std::vector<NamedNumbers>& all) {
  std::vector<ChannelValues> out;
  for (const auto& one : all) out.push_back({one.name, one.numbers});
  return out;
}

LayoutChange& layout_named(std::vector<LayoutChange>& all, const std::string& name) {
  const auto known = std::find_if(all.begin(), all.end(), [&](const auto& l) { return l.name == name; });
  return known != all.end() ? *known
                            : all.emplace_back(LayoutChange{.name = name, .source = {}, .target = {}});
}

/// One side of --layout, as an option of its own.
std::vector<LayoutChange> with_side(std::vector<LayoutChange> all, const std::string& option,
                                    const std::string& text, std::string LayoutChange::*side) {
  for (auto& l : parse_layouts(option, text)) {
    if (!l.target.empty()) fail(ErrorCode::bad_option, "{} {}: wanted no ->", option, text);
    layout_named(all, l.name).*side = std::move(l.source);
  }
  return all;
}

/// Names as the Model Optimizer looks for them: somewhere in the name of the node.
std::vector<std::string> searched(const std::vector<std::string>& list) {
  for (const auto& piece : list) try {
      Exemptions({piece});
    } catch (const Error& e) {
      fail(ErrorCode::bad_option, "--finegrain_fusing: {}", e.what());
    }
  return list;
}

RuleOptions rules_of(const OptimizeOptions& o) {
  RuleOptions out;
  out.disable = o.disable;
  if (std::erase(out.disable, "all") != 0)
    for (const auto& rule : all_rules()) out.disable.push_back(rule.name);
  if (o.disable_fusing) out.disable.insert(out.disable.end(), {"merge-linear", "fuse-linear"});
  if (o.disable_gfusing) out.disable.emplace_back("fuse-group-conv");
  if (o.disable_resnet_optimization) out.disable.emplace_back("move-strides");
  if (o.disable_weights_compression) out.disable.emplace_back("compress-weights");
  out.exempt = o.exempt;
  return out;
}

/// Two options that say the same thing otherwise.
void exclude(int question, const char* a, bool has_a, const char* b, bool has_b) {
  if (has_a && has_b) fail_faq(ErrorCode::bad_option, question, "both {} and {}, wanted one of them", a, b);
}

void check(const OptimizeOptions& o) {
  exclude(56, "--input_shape", !o.input_shape.empty(), "--batch", o.batch != 0);
  exclude(19, "--scale", o.scale.has_value(), "--scale_values", !o.scale_values.empty());
  exclude(17, "--mean_file", !o.mean_file.empty(), "--mean_values", !o.mean_values.empty());
  if (o.batch < 0) fail(ErrorCode::bad_option, "--batch {}: wanted a number from 1 on", o.batch);
  if (o.scale && (*o.scale == 0 || !std::isfinite(*o.scale)))
    fail(ErrorCode::bad_option, "--scale {}: wanted a number to divide by", *o.scale);
  if (o.mean_file_offsets && o.mean_file.empty())
    fail(ErrorCode::bad_option, "--mean_file_offsets: wanted with --mean_file");
  if (o.ir_version != 10 && o.ir_version != 11)
    fail(ErrorCode::bad_option, "ir_version {}: wanted 10 or 11", o.ir_version);
}

std::vector<std::string> non_empty_pieces(const std::string& text) {
  std::vector<std::string> out;
  for (const auto piece : pieces_of(text))
    if (!piece.empty()) out.emplace_back(piece);
  return out;
}

using Setter = void (*)(OptimizeOptions&, const std::string& option, const std::string& text);

const std::vector<std::pair<std::string, Setter>>& setters() {
  using O = OptimizeOptions;
  using S = const std::string;
  static const ProcessLifetime all([] {
    return std::vector<std::pair<std::string, Setter>>{
        {"input", [](O& o, S& option, S& text) { o.input = public_cuts(parse_inputs(option, text)); }},
        {"output", [](O& o, S&, S& text) { o.output = parse_names(text); }},
        {"freeze_placeholder_with_value",
         [](O& o, S& option, S& text) {
           o.freeze_placeholder_with_value = public_cuts(parse_inputs(option, text));
         }},
        {"input_shape",
         [](O& o, S& option, S& text) {
           std::vector<PartialShape> shapes;
           for (const auto& shape : parse_shapes(option, text)) shapes.push_back(public_shape(shape));
           o.input_shape = std::move(shapes);
         }},
        {"layout",
         [](O& o, S& option, S& text) {
           std::vector<LayoutChange> layouts;
           for (auto& l : parse_layouts(option, text)) layouts.push_back({l.name, l.source, l.target});
           o.layout = std::move(layouts);
         }},
        {"source_layout",
         [](O& o, S& option, S& text) {
           o.layout = with_side(o.layout, option, text, &LayoutChange::source);
         }},
        {"target_layout",
         [](O& o, S& option, S& text) {
           o.layout = with_side(o.layout, option, text, &LayoutChange::target);
         }},
        {"mean_values",
         [](O& o, S& option, S& text) { o.mean_values = public_values(parse_numbers(option, text)); }},
        {"scale_values",
         [](O& o, S& option, S& text) { o.scale_values = public_values(parse_numbers(option, text)); }},
        {"mean_file_offsets", [](O& o, S&, S& text) { o.mean_file_offsets = parse_offsets(text); }},
        {"finegrain_fusing",
         [](O& o, S&, S& text) { o.finegrain_fusing = searched(non_empty_pieces(text)); }},
    };
  });
  return *all;
}

}  // namespace

std::string in_callers_words(std::string_view text, bool dashes) {
  return dashes ? std::string(text) : with_fields(text, optimize_fields());
}

void rethrow_with_question(const Error& e, bool dashes) {
  const auto text = in_callers_words(e.what(), dashes);
  if (const auto question = question_of(e)) throw FaqError(e.code(), question, text);
  if (text == e.what()) throw;
  throw Error(e.code(), text);
}

ConversionRequest request_of(const OptimizeOptions& o) {
  check(o);
  ConversionRequest r;
  r.cut.inputs = requests_of("--input", o.input);
  r.cut.frozen = requests_of("--freeze_placeholder_with_value", o.freeze_placeholder_with_value);
  r.cut.outputs = o.output;
  for (const auto& shape : o.input_shape) r.shapes.push_back(asked_shape("--input_shape", shape));
  for (const auto& [name, shape] : o.shape) r.own_shapes.emplace(name, asked_shape("--shape " + name, shape));
  if (o.batch != 0) r.batch = o.batch;
  r.preprocessing.layouts = layout_requests("--layout", o.layout);
  r.preprocessing.means = numbers_of("--mean_values", o.mean_values);
  r.preprocessing.scales = numbers_of("--scale_values", o.scale_values);
  r.preprocessing.scale = o.scale;
  r.preprocessing.reverse_channels = o.reverse_input_channels;
  r.mean_file = o.mean_file;
  r.mean_file_offsets = o.mean_file_offsets;
  r.rewriting = rules_of(o);
  r.finegrain = searched(o.finegrain_fusing);
  return r;
}

void OptimizeOptions::set(std::string_view name, std::string_view text) {
  guarded("OptimizeOptions::set", [&] {
    std::vector<std::string> names;
    for (const auto& [known, setter] : setters()) {
      if (known == name)
        return with_questions(dashes, [&] { setter(*this, "--" + known, std::string(text)); });
      names.push_back(known);
    }
    fail(ErrorCode::bad_option, "\"{}\" is no option with a text{}", name, did_you_mean(name, names));
  });
}

}  // namespace lamina
