#include "offline/convert.h"

#include <algorithm>
#include <set>

#include "offline/faq.h"
#include "offline/mean_file.h"
#include "offline/places.h"
#include "ops/control.h"
#include "ops/unused_inputs.h"
#include "rules/extension_rules.h"
#include "rules/widen_half.h"

namespace lamina {
namespace {

struct FloatBytes {
  std::size_t halves = 0, wide = 0;
};

/// Counts the floats of constants, those in bodies included.
void count_floats(const Graph& g, FloatBytes& out) {
  for (std::uint32_t v = 0; v < g.value_slots(); ++v)
    if (const auto* t = g.constant({v})) {
      out.halves += t->element_type() == ElementType::f16 ? t->bytes() : 0;
      out.wide +=
          t->element_type() == ElementType::f32 || t->element_type() == ElementType::f64 ? t->bytes() : 0;
    }
  for (const auto id : g.order())
    for (const auto& body : g.node(id).bodies) count_floats(body, out);
}

bool mostly_halves(const Graph& g) {
  FloatBytes bytes;
  count_floats(g, bytes);
  return bytes.halves > bytes.wide;
}

class Converter {
 public:
  Converter(const std::string& path, const Reader& read, const ConversionRequest& request)
      : path_(path), read_(read), request_(request) {}

  Conversion made() && {
    read();
    cut_out();
    require_supported();
    prepare();
    rewrite();
    describe();
    return std::move(out_);
  }

 private:
  void say(std::string_view stage, double done) const {
    if (request_.progress) request_.progress(stage, done);
  }

  static bool says_something(const ReadSettings& s) {
    return !s.settable.empty() || !s.shapes.empty() || !s.frozen.empty();
  }

  /// Shapes and values belong to the reader, which makes constants of some and decides conditions by others:
  /// the file is read again with them.
  void read() {
    say("reading", 0);
    check_shapes();
    out_.loaded = first_read();
    cut_ = whole_names();
    for (auto* list : {&cut_.inputs, &cut_.frozen})
      for (auto& r : *list) r.place = without_port(r.place);
    give_shapes(cut_);
    check_names();
    ReadSettings known;
    known.settable = asked_inputs();
    known.shapes = asked_shapes();
    known.frozen = asked_values();
    if (!says_something(known)) return;
    try {
      out_.loaded = read_(known);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::internal || question_of(e) != 0) throw;
      throw FaqError(e.code(), 38, e.what());
    }
    // The reader may have frozen them.
    const auto done = [&](const InputRequest& r) {
      return known.frozen.contains(r.place) && !is_input(r.place);
    };
    std::erase_if(cut_.inputs, done);
    std::erase_if(cut_.frozen, done);
  }

  CutRequest whole_names() const {
    const Places places(out_.loaded.graph);
    return with_whole_names(request_.cut,
                            [&](const std::string& name) { return is_optional(name) || places.knows(name); });
  }

  void check_names() const {
    for (const auto& [name, shape] : request_.own_shapes)
      if (!is_input(name)) fail_faq(ErrorCode::bad_input, 83, "--shape: there is no input \"{}\"", name);
    for (const auto& r : cut_.frozen)
      if (!r.value)
        fail_faq(ErrorCode::bad_option, 59, "--freeze_placeholder_with_value {}: wanted NAME->VALUE",
                 r.place);
    std::set<std::string_view> seen;
    for (const auto* list : {&cut_.inputs, &cut_.frozen})
      for (const auto& r : *list)
        if (!seen.insert(r.place).second)
          fail_faq(ErrorCode::bad_option, 57, "\"{}\" is named twice as an input or a value", r.place);
  }

  /// A model may say too little to be read without the shapes and values that have names.
  Loaded first_read() const {
    ReadSettings named;
    named.shapes = request_.own_shapes;
    for (const auto* list : {&request_.cut.inputs, &request_.cut.frozen})
      for (const auto& r : *list) {
        if (r.shape) named.shapes.emplace(r.place, *r.shape);
        if (r.value) named.frozen.emplace(r.place, *r.value);
      }
    try {
      return read_({});
    } catch (const Error&) {
      if (!says_something(named)) throw;
      return read_(named);
    }
  }

  void check_shapes() const {
    const auto& inputs = request_.cut.inputs;
    const bool given = std::any_of(inputs.begin(), inputs.end(), [](auto& r) { return r.shape.has_value(); });
    if (given && !request_.shapes.empty())
      fail_faq(ErrorCode::bad_option, 56, "shapes in --input and in --input_shape, wanted one of them");
    if (request_.batch && (given || !request_.shapes.empty()))
      fail_faq(ErrorCode::bad_option, 56, "both --batch and shapes of inputs, wanted one of them");
  }

  /// --input_shape says shapes of what --input names, in its order, or of the model's inputs that stay.
  void give_shapes(CutRequest& cut) const {
    const auto& shapes = request_.shapes;
    if (shapes.empty()) return;
    const auto& g = out_.loaded.graph;
    if (cut.inputs.empty()) {
      const bool of_all = shapes.size() == g.inputs().size();
      std::size_t next = 0;
      for (const auto v : g.inputs()) {
        const auto& name = g.value(v).name;
        const bool frozen = is_frozen(name);
        if (!frozen && next < shapes.size()) cut.inputs.push_back({.place = name, .shape = shapes[next]});
        next += of_all || !frozen;
      }
      if (shapes.size() == next) return;
      fail_faq(ErrorCode::bad_option, shapes.size() == 1 ? 32 : 58,
               "--input_shape: {} shapes for {} inputs; wanted --input with the names of the inputs",
               shapes.size(), next);
    }
    std::vector<InputRequest*> wanted;  // what is frozen has its shape by its value
    for (auto& r : cut.inputs)
      if (!r.value || shapes.size() == cut.inputs.size()) wanted.push_back(&r);
    if (shapes.size() != wanted.size())
      fail_faq(ErrorCode::bad_option, 58, "--input_shape: {} shapes for the {} inputs of --input",
               shapes.size(), wanted.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) wanted[i]->shape = shapes[i];
  }

  /// Shapes of the model's own inputs that differ from the file's.
  decltype(ReadSettings::shapes) asked_shapes() const {
    const auto& g = out_.loaded.graph;
    decltype(ReadSettings::shapes) out;
    for (const auto v : g.inputs()) {
      const auto& name = g.value(v).name;
      auto shape = g.type(v).shape;
      if (const auto own = request_.own_shapes.find(name); own != request_.own_shapes.end())
        shape = own->second;
      for (const auto& r : cut_.inputs)
        if (r.place == name && r.shape) shape = *r.shape;
      if (request_.batch && !is_frozen(name)) shape = with_batch(name, shape);
      if (!(shape == g.type(v).shape)) out.emplace(name, shape);
    }
    for (const auto& r : cut_.inputs)
      if (r.shape && is_optional(r.place)) out.emplace(r.place, *r.shape);
    return out;
  }

  bool is_input(std::string_view name) const {
    const auto& g = out_.loaded.graph;
    return std::any_of(g.inputs().begin(), g.inputs().end(),
                       [&](ValueId v) { return g.value(v).name == name; });
  }
  /// Whether it has a value in the file that another may take the place of.
  bool is_optional(std::string_view name) const {
    const auto& names = out_.loaded.optional_inputs;
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  /// An input's only output port says nothing: "x:0" is "x".
  std::string without_port(const std::string& place) const {
    if (!place.ends_with(":0") || is_input(place) || is_optional(place)) return place;
    auto name = place.substr(0, place.size() - 2);
    return is_input(name) || is_optional(name) ? name : place;
  }

  decltype(ReadSettings::frozen) asked_values() const {
    decltype(ReadSettings::frozen) out;
    const auto format = out_.loaded.format;
    if (format != ModelFormat::tensorflow && format != ModelFormat::onnx) return out;
    for (const auto* list : {&cut_.inputs, &cut_.frozen})
      for (const auto& r : *list)
        if (r.value && (is_input(r.place) || is_optional(r.place))) out.emplace(r.place, *r.value);
    return out;
  }

  Strings asked_inputs() const {
    Strings out;
    for (const auto& r : cut_.inputs)
      if (!r.value && is_optional(r.place)) out.push_back(r.place);
    return out;
  }

  bool is_frozen(const std::string& name) const {
    const auto named = [&](const InputRequest& r) { return r.value && r.place == name; };
    return std::any_of(cut_.inputs.begin(), cut_.inputs.end(), named) ||
           std::any_of(cut_.frozen.begin(), cut_.frozen.end(), named);
  }

  Shape with_batch(const std::string& name, Shape shape) const {
    if (!shape.ranked() || shape.rank() == 0)
      fail_faq(ErrorCode::bad_option, 39,
               "--batch: the input \"{}\" with the shape {} has no batch dimension", name, to_string(shape));
    const auto letters = letters_of(request_.preprocessing.layouts, name, shape.rank());
    const auto n = letters.find('N');
    if (n != std::string::npos || letters.find_first_not_of('?') == std::string::npos)
      shape[n == std::string::npos ? 0 : n] = *request_.batch;
    return shape;
  }

  void cut_out() {
    say("cutting", 0.1);
    auto made = cut(std::move(out_.loaded.graph), cut_);
    out_.loaded.graph = std::move(made.graph);
    out_.dropped_inputs = std::move(made.dropped);
    places_ = std::move(made.places);
    types_ = std::move(made.types);
    set_batch_of_places();
    const auto& g = out_.loaded.graph;
    if (g.inputs().empty() && request_.cut.frozen.empty() && request_.cut.inputs.empty() &&
        g.node_count() == 0)
      fail_faq(ErrorCode::bad_file, 79, "{}: the graph has no inputs and computes nothing", path_);
  }

  void set_batch_of_places() {
    if (!request_.batch || places_.empty()) return;
    auto& g = out_.loaded.graph;
    for (const auto v : g.inputs())
      if (std::count(places_.begin(), places_.end(), g.value(v).name))
        g.set_type(v, {g.type(v).element, with_batch(g.value(v).name, g.type(v).shape)});
    g.infer_types();
  }

  /// Layers of an IR that nobody knows are written as they were; those of other formats have no words there.
  void require_supported() {
    std::set<std::string, std::less<>> left;
    const auto& g = out_.loaded.graph;
    for (std::uint32_t n = 0; n < g.node_slots(); ++n) {
      const Node& node = g.node({n});
      if (node.erased() || !node.op.is<Opaque>()) continue;
      left.insert(node.name);
      for (const auto v : node.outputs) left.insert(g.value(v).name);
    }
    auto& all = out_.loaded.unsupported;
    for (auto& u : all) std::erase_if(u.nodes, [&](const auto& name) { return !left.contains(name); });
    std::erase_if(all, [](const Unsupported& u) { return u.nodes.empty(); });
    if (left.empty()) return;
    std::string text;
    for (const auto& u : all)
      text +=
          fmt::format("{}{}{}{} ({}){}{}", text.empty() ? "" : "; ", u.domain, u.domain.empty() ? "" : ".",
                      u.type, fmt::join(u.nodes, ", "), u.reason.empty() ? "" : ": ", u.reason);
    if (out_.loaded.format != ModelFormat::ir)
      fail_faq(ErrorCode::unsupported, 45, "{}: unsupported: {}", path_, text);
    out_.warnings.push_back("not known, written as in the file: " + text);
  }

  void prepare() {
    auto& g = out_.loaded.graph;
    auto preprocessing = request_.preprocessing;
    preprocessing.types = types_;
    preprocessing.channels_last |= out_.loaded.format == ModelFormat::tensorflow;
    if (preprocessing.scale)
      for (const auto& place : places_) preprocessing.unscaled.push_back(place);
    if (!request_.mean_file.empty()) preprocessing.mean_image = mean_image();
    for (auto& note : add_preprocessing(g, preprocessing)) out_.warnings.push_back(std::move(note));
    out_.has_halves = mostly_halves(g);
    out_.notes = widen_half(g);
    out_.before = g;
  }

  Tensor mean_image() const {
    const auto& g = out_.loaded.graph;
    if (g.inputs().size() != 1)
      fail_faq(ErrorCode::bad_option, 9, "--mean_file: a model with {} inputs, wanted one with 1",
               g.inputs().size());
    const auto& type = g.type(g.inputs()[0]);
    if (!type.shape.known() || type.shape.rank() != 4)
      fail_faq(ErrorCode::bad_option, 10, "--mean_file: the input is {}, wanted one of 4 known sizes",
               to_string(type));
    return cropped(read_mean_image(request_.mean_file), type.shape[2].size(), type.shape[3].size(),
                   request_.mean_file_offsets);
  }

  void rewrite() {
    say("rewriting", 0.2);
    auto options = request_.rewriting;
    for (const auto& part : request_.finegrain) options.exempt.push_back(in_any_part(part));
    const Exemptions exempt(options.exempt);
    note_idle(exempt);
    out_.exempt = exempt_names(exempt, out_.before);
    out_.rewriting = options;
    options.last = RuleSet::portable;
    options.for_file = true;
    options.more = extension_rules(out_.loaded.extensions);
    const auto after = std::move(options.after_set);
    options.after_set = [&](const Graph& g, RuleSet set) {
      say("rewriting", 0.2 + 0.6 * static_cast<double>(set) / static_cast<double>(RuleSet::portable));
      if (after) after(g, set);
    };
    optimize(out_.loaded.graph, options, out_.ledger);
    for (const auto& [rule, why] : out_.ledger.stopped())
      out_.warnings.push_back(fmt::format("{}; it is left out", why));
  }

  void note_idle(const Exemptions& exempt) {
    for (const auto& pattern : exempt.idle(out_.before)) {
      const auto said = as_said(pattern);
      out_.warnings.push_back(
          said == pattern ? fmt::format("exempt \"{}\": matches the name of no node", said)
                          : fmt::format("finegrain_fusing \"{}\": matches part of no node name", said));
    }
  }

  void describe() {
    say("writing", 0.85);
    const auto& g = out_.loaded.graph;
    for (const auto& input : lamina::unused_inputs(g))
      if (input.only_shape)
        out_.notes.push_back(to_string(input));
      else
        out_.unused_inputs.push_back(input.name);
  }

  const std::string& path_;
  const Reader& read_;
  const ConversionRequest& request_;
  CutRequest cut_;
  std::vector<std::string> places_;  // inputs that are no inputs of the file
  std::map<std::string, ElementType, std::less<>> types_;
  Conversion out_;
};

}  // namespace

Conversion convert_model(const std::string& path, const Reader& read, const ConversionRequest& request) {
  return Converter(path, read, request).made();
}

}  // namespace lamina
