#include <algorithm>
#include <set>
#include <stdexcept>

#include "graph/text.h"
#include "graph/text_literal.h"

namespace lamina {
namespace {

using namespace text;

struct Output {
  std::string name;
  std::optional<TensorType> type;
};

/// What follows an operator's inputs.
struct Tail {
  std::unique_ptr<AnyOp> op;
  std::string name;
  std::vector<SourceId> sources;
  std::vector<Graph> bodies;
};

class Parser {
 public:
  Parser(std::string_view text, const Registry& registry, std::span<const std::byte> data,
         const ParseLimits& limits)
      : s_(text),
        registry_(registry),
        constants_(data, limits.generated_elements),
        depth_left_(limits.depth) {}

  Graph parse() {
    Graph g = parse_graph();
    s_.skip_space();
    if (!s_.at_end()) s_.unexpected("the end of the text");
    if (largest_source_ >= static_cast<std::int64_t>(g.sources.size()))
      s_.fail("a node is from source {}, the table has {}", largest_source_, g.sources.size());
    return g;
  }

 private:
  Graph parse_graph() {
    if (!s_.accept_word("graph")) s_.unexpected("\"graph\"");
    Graph g;
    if (!s_.next_is("(")) g.name = s_.word_or_quoted("a graph's name or \"(\"");
    parse_inputs(g);
    s_.expect("->");
    const auto results = parse_results();
    s_.expect("{");
    while (!s_.accept("}")) {
      if (s_.accept_word("sources"))
        parse_sources(g);
      else
        parse_statement(g);
    }
    for (const auto& [name, value] : results) {
      const auto id = g.find_value(value);
      if (!id.valid()) s_.fail("result \"{}\" is not defined in the graph that ends here", value);
      g.add_result(name, id);
    }
    return g;
  }

  void parse_inputs(Graph& g) {
    s_.expect("(");
    if (s_.accept(")")) return;
    do {
      const auto name = s_.name("an input's name");
      check_new(g, name);
      s_.expect(":");
      g.add_input(name, parse_type(s_));
    } while (s_.accept(","));
    if (!s_.accept(")")) s_.unexpected("\",\" or \")\"");
  }

  /// Names of results and of their values.
  std::vector<std::pair<std::string, std::string>> parse_results() {
    std::vector<std::pair<std::string, std::string>> out;
    s_.expect("(");
    if (s_.accept(")")) return out;
    do {
      auto name = s_.word_or_quoted("a result's name");
      if (s_.accept("=")) {
        auto value = s_.name("a value's name");
        out.emplace_back(std::move(name), std::move(value));
      } else {
        out.emplace_back(name, name);
      }
    } while (s_.accept(","));
    if (!s_.accept(")")) s_.unexpected("\",\", \"=\" or \")\"");
    return out;
  }

  void parse_sources(Graph& g) {
    if (!g.sources.empty()) s_.fail("found a second table of sources");
    s_.expect("{");
    while (!s_.accept("}")) {
      const auto id = s_.integer("a source's number or \"}\"");
      if (id != static_cast<std::int64_t>(g.sources.size()))
        s_.fail("found source {}, wanted {}", id, g.sources.size());
      auto name = s_.quoted("the name of a layer in quotes");
      g.add_source(name, s_.quoted("the type of a layer in quotes"));
    }
  }

  void check_new(const Graph& g, const std::string& name) {
    if (g.find_value(name).valid()) s_.fail("\"{}\" is defined twice", name);
  }

  std::vector<Output> parse_outputs(const Graph& g) {
    std::vector<Output> out;
    std::set<std::string> names;
    if (s_.accept("(")) {
      s_.expect(")");
    } else {
      do {
        Output o{s_.name("a value's name or \"}\""), std::nullopt};
        check_new(g, o.name);
        if (!names.insert(o.name).second) s_.fail("\"{}\" is defined twice", o.name);
        if (s_.accept(":")) o.type = parse_type(s_);
        out.push_back(std::move(o));
      } while (s_.accept(","));
    }
    if (!s_.accept("=")) s_.unexpected("\":\", \",\" or \"=\"");
    return out;
  }

  void parse_statement(Graph& g) {
    const auto outputs = parse_outputs(g);
    if (s_.accept_word("const")) {
      if (outputs.size() != 1) s_.fail("a constant has {} names, wanted one", outputs.size());
      refine(g, g.add_constant(constants_.parse(s_), outputs[0].name), outputs[0]);
    } else {
      parse_node(g, outputs);
    }
    if (!s_.at_statement_end()) s_.unexpected("the end of the line");
  }

  const AnyOp& parse_operator() {
    const auto name = s_.word("an operator or \"const\"");
    if (const auto* op = registry_.find(name)) return *op;
    const auto near = registry_.nearest(name);
    s_.fail("operator \"{}\" is not known{}", name.substr(0, 60),
            near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near));
  }

  std::vector<ValueId> parse_arguments(const Graph& g) {
    std::vector<ValueId> out;
    s_.expect("(");
    if (s_.accept(")")) return out;
    do {
      if (s_.accept_word("_")) {
        out.emplace_back();
        continue;
      }
      const auto name = s_.name("a value's name, \"_\" or \")\"");
      const auto id = g.find_value(name);
      if (!id.valid()) s_.fail("\"{}\" is not defined above", name);
      out.push_back(id);
    } while (s_.accept(","));
    if (!s_.accept(")")) s_.unexpected("\",\" or \")\"");
    return out;
  }

  Tail parse_tail(const AnyOp& prototype) {
    Tail tail;
    tail.op = prototype.copy();
    std::vector<std::string> seen;
    bool sourced = false;
    while (!s_.at_statement_end()) {
      if (s_.next_is("{") && tail.bodies.empty()) {
        parse_bodies(tail.bodies);
      } else if (tail.name.empty() && s_.accept("@")) {
        tail.name = s_.quoted("the node's name in quotes");
      } else if (s_.next_is_word() || s_.next_is_quoted()) {
        const auto name = s_.word_or_quoted("an attribute", "-");
        if (name == "from" && !sourced && s_.next_is("[")) {
          sourced = true;
          parse_origin(tail.sources);
          continue;
        }
        if (std::find(seen.begin(), seen.end(), name) != seen.end())
          s_.fail("attribute \"{}\" is set twice", name);
        seen.push_back(name);
        parse_one_attribute(*tail.op, name);
      } else {
        s_.unexpected("an attribute, @\"name\", from [...], { bodies } or the end of the line");
      }
    }
    return tail;
  }

  void parse_one_attribute(AnyOp& op, const std::string& name) {
    s_.expect("=");
    const auto all = op.attributes();
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.name == name; });
    if (it == all.end()) relay([&] { unknown_attribute(op, name); });
    const auto value = parse_attribute(s_, name, it->value, constants_);
    relay([&] { op.set(name, value); });
  }

  /// Errors of f get the line's number.
  template <class F>
  void relay(F&& f) {
    try {
      f();
    } catch (const Error& e) {
      s_.fail("{}", e.what());
    }
  }

  void parse_origin(std::vector<SourceId>& sources) {
    s_.expect("[");
    if (s_.accept("]")) return;
    do {
      const auto id = s_.integer("a source's number");
      if (id < 0 || id >= UINT32_MAX) s_.fail("found source {}, wanted one of the table", id);
      largest_source_ = std::max(largest_source_, id);
      sources.push_back({static_cast<std::uint32_t>(id)});
    } while (s_.accept(","));
    if (!s_.accept("]")) s_.unexpected("\",\" or \"]\"");
  }

  void parse_bodies(std::vector<Graph>& bodies) {
    s_.expect("{");
    if (depth_left_-- <= 0) s_.fail("bodies are nested too deeply");
    do {
      if (!s_.accept_word("body")) s_.unexpected("\"body\" or \"}\"");
      bodies.push_back(parse_graph());
    } while (!s_.accept("}"));
    ++depth_left_;
  }

  void parse_node(Graph& g, const std::vector<Output>& outputs) {
    const auto& prototype = parse_operator();
    auto inputs = parse_arguments(g);
    auto tail = parse_tail(prototype);
    check_node(prototype.info(), inputs, outputs.size(), tail.bodies);
    std::vector<std::string> names;
    for (const auto& o : outputs) names.push_back(o.name);
    NodeId id;
    try {
      id = g.add_node(Op(std::shared_ptr<const AnyOp>(std::move(tail.op))), std::move(inputs), tail.name,
                      static_cast<int>(outputs.size()), std::move(tail.bodies), names);
    } catch (const Error& e) {
      s_.fail("{}", e.what());
    } catch (const std::out_of_range&) {  // an output that inference wants to set is not there
      s_.fail("{} has {} outputs, wanted more", prototype.info().name, outputs.size());
    }
    const auto& info = prototype.info();  // optional further outputs are those that inference knows
    for (auto i = static_cast<std::size_t>(info.outputs); info.outputs != kMany && i < outputs.size(); ++i)
      if (g.type(g.node(id).outputs[i]).element == ElementType::undefined)
        s_.fail("{} has {} outputs, wanted {}", info.name, outputs.size(), info.outputs);
    g.set_sources(id, std::move(tail.sources));
    for (std::size_t i = 0; i < outputs.size(); ++i) refine(g, g.node(id).outputs[i], outputs[i]);
  }

  /// What inference relies on.
  void check_node(const OpInfo& info, const std::vector<ValueId>& inputs, std::size_t outputs,
                  const std::vector<Graph>& bodies) {
    if (info.outputs != kMany && outputs == 0)
      s_.fail("{} has no outputs, wanted {}", info.name, info.outputs);
    if (!has(info.traits, Trait::epilogue) || bodies.empty()) return;
    if (bodies.size() != 1 && !has(info.traits, Trait::control_flow))
      s_.fail("{} has {} bodies, wanted one: its epilogue", info.name, bodies.size());
    if (outputs == 0) s_.fail("{} has an epilogue and no output", info.name);
    const auto base = std::min(inputs.size(), static_cast<std::size_t>(info.max_inputs));
    const auto& body = bodies[0];
    if (body.inputs().size() != 1 + inputs.size() - base || body.results().size() != 1)
      s_.fail("the epilogue has {} parameters and {} results, wanted {} and 1", body.inputs().size(),
              body.results().size(), 1 + inputs.size() - base);
    for (std::size_t i = base; i < inputs.size(); ++i)
      if (!inputs[i].valid()) s_.fail("input {}, which the epilogue reads, is \"_\"", i);
  }

  /// The declared type and the inferred one say the same, or one says more.
  void refine(Graph& g, ValueId id, const Output& declared) {
    if (!declared.type) return;
    const auto& inferred = g.type(id);
    const auto shape = merge(declared.type->shape, inferred.shape);
    const bool free =
        declared.type->element == ElementType::undefined || inferred.element == ElementType::undefined;
    if (!shape || !(free || declared.type->element == inferred.element))
      s_.fail("\"{}\" is declared {}, inference says {}", declared.name, type_text(*declared.type),
              type_text(inferred));
    const auto element =
        inferred.element == ElementType::undefined ? declared.type->element : inferred.element;
    g.set_type(id, {element, *shape});
  }

  Scanner s_;
  const Registry& registry_;
  ConstantParser constants_;
  int depth_left_;
  std::int64_t largest_source_ = -1;
};

}  // namespace

Graph parse_graph(std::string_view text, const Registry& registry, std::span<const std::byte> data,
                  const ParseLimits& limits) {
  return Parser(text, registry, data, limits).parse();
}

}  // namespace lamina
