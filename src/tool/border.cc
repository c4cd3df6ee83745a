#include "tool/border.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "api/inside.h"
#include "base/error.h"
#include "base/numbers.h"
#include "base/words.h"
#include "ops/elementwise.h"
#include "tool/layouts.h"
#include "tool/named_lists.h"

namespace lamina::tool {
namespace {

/// "FP32", "F32", "U8", "bool", "BOOLEAN": in lamina's words.
ElementType type_of(const std::string& option, const std::string& text) {
  auto word = lower_case(text);
  if (word.starts_with("fp")) word.erase(1, 1);
  if (word == "bool") word = "boolean";
  auto type = element_type_named(word);
  if (!type && word == "boolean") type = element_type_named("bool");
  if (!type || *type == ElementType::undefined)
    throw UsageError(fmt::format("-{} {}: wanted an element type such as f32, f16 or u8", option, text));
  return *type;
}

std::vector<double> numbers_of(const std::string& option, const std::string& list) {
  std::vector<double> out;
  for (const auto piece : pieces_of(list)) {
    std::string word(piece);
    std::erase(word, ' ');
    const auto v = parse_real<double>(word);
    if (!v || !std::isfinite(*v)) throw UsageError(fmt::format("{}: \"{}\" is not a number", option, word));
    out.push_back(*v);
  }
  return out;
}

class Border {
 public:
  Border(const Model& model, const BenchmarkOptions& o)
      : o_(o),
        model_(model),
        layouts_(o.inputs.picture.layout, model.inputs()),
        graph_(Inside::of(model).loaded().graph) {}

  Graph made() && {
    for (const auto& text : o_.types) take_type(text);
    for (const auto& [name, means] : values_of("--mean-values", o_.mean_values)) put(name, means, true);
    for (const auto& [name, scales] : values_of("--scale-values", o_.scale_values)) put(name, scales, false);
    for (const auto& [i, type] : inputs_) convert_input(i, type);
    for (const auto& [i, type] : outputs_) convert_output(i, type);
    graph_.infer_types();
    return std::move(graph_);
  }

 private:
  /// "ip=f32", "op=FP16", "iop=x:f16, y:f32"; names win.
  void take_type(const std::string& text) {
    const auto equals = text.find('=');
    const auto option = text.substr(0, equals), value = text.substr(equals + 1);
    if (option == "iop") return take_named(value);
    const auto type = type_of(option, value);
    auto& types = option == "ip" ? inputs_ : outputs_;
    for (std::size_t i = 0; i < (option == "ip" ? model_.inputs() : model_.outputs()).size(); ++i)
      types.emplace(i, type);
  }

  void take_named(const std::string& text) {
    for (const auto piece : pieces_of(text)) {
      std::string pair(piece);
      std::erase(pair, ' ');
      const auto colon = pair.rfind(':');
      if (colon == std::string::npos)
        throw UsageError(fmt::format("-iop {}: wanted NAME:TYPE,NAME:TYPE", text));
      const auto name = pair.substr(0, colon);
      const auto type = type_of("iop", pair.substr(colon + 1));
      const auto in = model_.find_input(name), out = model_.find_output(name);
      if (!in && !out) fail(ErrorCode::bad_input, "-iop: there is no input or output \"{}\"", name);
      if (in) inputs_[*in] = type;
      if (out) outputs_[*out] = type;
    }
  }

  /// By input; without a name of all inputs that look like pictures.
  std::map<std::size_t, std::vector<double>> values_of(const std::string& option,
                                                       const std::vector<std::string>& texts) const {
    std::map<std::size_t, std::vector<double>> out;
    for (const auto& text : texts)
      for (const auto& [name, list] : named_lists(option, text)) {
        const auto values = numbers_of(fmt::format("{} {}", option, text), list);
        const auto found = out.size();
        for (std::size_t i = 0; i < model_.inputs().size(); ++i)
          if (name.empty() ? channels_of(i, values.size()).has_value() : model_.inputs()[i].name == name)
            out[i] = values;
        if (!name.empty() && !model_.find_input(name))
          fail(ErrorCode::bad_input, "{}: there is no input \"{}\"", option, name);
        if (name.empty() && out.size() == found)
          throw UsageError(fmt::format("{} {}: no input has {} channels", option, text, values.size()));
      }
    return out;
  }

  /// The dimension that has so many channels, or any number for one value; the layout says which it is, else
  /// the shape.
  std::optional<std::size_t> channels_of(std::size_t input, std::size_t count) const {
    const auto& port = model_.inputs()[input];
    const auto n = static_cast<std::int64_t>(count);
    const auto fits = [&](std::size_t at) {
      return at < port.shape.size() && (port.shape[at] == n || (n == 1 && port.shape[at] >= 0));
    };
    if (const auto at = layouts_.find(port.name, 'C'); at != std::string::npos)
      return fits(at) || port.shape.at(at) < 0 ? std::optional(at) : std::nullopt;
    if (port.shape.size() != 4) return {};
    if (fits(1)) return 1;
    return fits(3) ? std::optional<std::size_t>(3) : std::nullopt;
  }

  /// A node behind the input; `made` gets its value and gives the new one.
  template <class Make>
  void insert(std::size_t input, const std::string& what, const char* kind, Make made) {
    const auto v = graph_.inputs()[input];
    const auto first = static_cast<std::uint32_t>(graph_.node_slots());
    const auto result = made(v);
    const auto node = graph_.producer(result);
    // All readers but the new nodes read what these make.
    graph_.replace(v, result);
    for (auto id = first; id < graph_.node_slots(); ++id)
      for (std::size_t k = 0; k < graph_.node(NodeId{id}).inputs.size(); ++k)
        if (graph_.node(NodeId{id}).inputs[k] == result) graph_.set_input(NodeId{id}, k, v);
    name_node(node, model_.inputs()[input].name + what, kind);
  }

  void name_node(NodeId node, const std::string& name, const char* kind) {
    graph_.set_node_name(node, name);
    graph_.set_sources(node, {graph_.add_source(name, kind)});
  }

  void put(std::size_t input, const std::vector<double>& values, bool mean) {
    const auto option = mean ? "--mean-values" : "--scale-values";
    const auto& port = model_.inputs()[input];
    if (port.type != ElementType::f32 && port.type != ElementType::f16)
      throw UsageError(
          fmt::format("{}: input \"{}\" is {}, wanted f32 or f16", option, port.name, name_of(port.type)));
    for (const auto v : values) check_number(option, v, mean);
    if (values.size() > 1 && !channels_of(input, values.size()))
      throw UsageError(
          fmt::format("{}: input \"{}\" has no dimension of {} channels", option, port.name, values.size()));
    (mean ? means_ : scales_)[input] = values;
    inputs_.emplace(input, port.type);
  }

  /// As f32, in which it is used.
  static void check_number(const char* option, double value, bool mean) {
    const auto number = static_cast<float>(value);
    if (!std::isfinite(number)) throw UsageError(fmt::format("{}: {} is more than f32 has", option, value));
    if (!mean && std::abs(number) < std::numeric_limits<float>::min())
      throw UsageError(fmt::format("{}: {} divides nothing", option, value));
  }

  Tensor by_channel(std::size_t input, const std::vector<double>& values) const {
    Dims dims(model_.inputs()[input].shape.size(), 1);
    if (values.size() > 1) dims.at(*channels_of(input, values.size())) = std::ssize(values);
    std::vector<float> floats(values.begin(), values.end());
    return Tensor::of(dims, floats);
  }

  /// Each step is put in front of those that stand already; means and scales compute in f32.
  void convert_input(std::size_t i, ElementType type) {
    const auto& port = model_.inputs()[i];
    const auto mean = means_.find(i), scale = scales_.find(i);
    if (mean != means_.end() || scale != scales_.end()) convert_from(i, ElementType::f32, "/convert_back");
    if (scale != scales_.end()) {
      const auto c = graph_.add_constant(by_channel(i, scale->second), port.name + "/scale_values");
      insert(i, "/scale", "Divide", [&](ValueId v) { return graph_.add(Divide{}, {v, c}); });
    }
    if (mean != means_.end()) {
      const auto c = graph_.add_constant(by_channel(i, mean->second), port.name + "/mean_values");
      insert(i, "/mean", "Subtract", [&](ValueId v) { return graph_.add(Subtract{}, {v, c}); });
    }
    if (type != port.type && port.value.valid())
      throw UsageError(fmt::format("-ip: input \"{}\" has a value in the model: its type stays", port.name));
    convert_from(i, type, "/convert");
  }

  /// The input has that type now, and what stands behind it gets the one of before.
  void convert_from(std::size_t i, ElementType type, const char* what) {
    const auto v = graph_.inputs()[i];
    const auto before = graph_.type(v).element;
    if (before == type) return;
    insert(i, what, "Convert",
           [&](ValueId from) { return graph_.add(Convert{.destination_type = before}, {from}); });
    graph_.set_type(v, {type, graph_.type(v).shape});
  }

  void convert_output(std::size_t i, ElementType type) {
    const auto& result = graph_.results()[i];
    if (graph_.type(result.value).element == type) return;
    const auto made = graph_.add(Convert{.destination_type = type}, {result.value});
    name_node(graph_.producer(made), result.name + "/convert", "Convert");
    graph_.set_result(i, made);
  }

  const BenchmarkOptions& o_;
  const Model& model_;
  const Layouts layouts_;
  Graph graph_;
  std::map<std::size_t, ElementType> inputs_, outputs_;
  std::map<std::size_t, std::vector<double>> means_, scales_;
};

}  // namespace

Model with_border(const Model& model, const BenchmarkOptions& o) {
  if (o.types.empty() && o.mean_values.empty() && o.scale_values.empty()) return model;
  if (!model.unsupported().empty()) return model;  // compiling says so
  return Inside::changed(model, Border(model, o).made());
}

}  // namespace lamina::tool
