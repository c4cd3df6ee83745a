#include "graph/text.h"
#include "graph/text_literal.h"

namespace lamina {
namespace {

using namespace text;

class Printer {
 public:
  explicit Printer(const TextOptions& options)
      : constants_(options.self_contained, options.inline_elements) {}

  void print(const Graph& g, const std::string& indent) {
    check_ids(g);
    out_ += "graph ";
    if (!g.name.empty()) out_ += quoted(g.name) + " ";
    print_signature(g);
    const std::string inner = indent + "  ";
    if (!g.sources.empty()) print_sources(g, inner);
    std::vector<bool> printed(g.value_slots(), false);
    const auto print_constant = [&](ValueId id) {
      if (!id.valid() || printed[id.index] || g.value(id).kind != ValueKind::constant) return;
      printed[id.index] = true;
      out_ +=
          inner + quoted_if_needed(g.value(id).name) + " = const " + constants_(g.value(id).constant) + "\n";
    };
    for (const auto id : g.order()) {
      for (const auto v : g.node(id).inputs) print_constant(v);
      print_node(g, g.node(id), inner);
    }
    for (std::uint32_t v = 0; v < g.value_slots(); ++v) print_constant({v});
    out_ += indent + "}";
  }

  GraphText take() { return {std::move(out_) + "\n", constants_.take_data()}; }

 private:
  static void check_ids(const Graph& g) {
    const auto good = [&](ValueId id) {
      return id.index < g.value_slots() && g.value(id).kind != ValueKind::none;
    };
    for (const auto& r : g.results()) LAMINA_CHECK(good(r.value), "result \"{}\" has no value", r.name);
    for (std::uint32_t n = 0; n < g.node_slots(); ++n)
      for (const auto v : g.node({n}).inputs)
        LAMINA_CHECK(!v.valid() || good(v), "dangling input of node \"{}\"", g.label({n}));
  }

  void print_signature(const Graph& g) {
    out_ += "(";
    for (const auto id : g.inputs())
      out_ += (id == g.inputs()[0] ? "" : ", ") + quoted_if_needed(g.value(id).name) + ": " +
              type_text(g.type(id));
    out_ += ") -> (";
    for (std::size_t i = 0; i < g.results().size(); ++i) {
      const auto& r = g.results()[i];
      const auto& name = g.value(r.value).name;
      out_ += i ? ", " : "";
      if (r.name != name) out_ += quoted(r.name) + " = ";
      out_ += quoted_if_needed(name);
    }
    out_ += ") {\n";
  }

  void print_sources(const Graph& g, const std::string& indent) {
    out_ += indent + "sources {\n";
    for (std::size_t i = 0; i < g.sources.size(); ++i)
      out_ += fmt::format("{}  {} {} {}\n", indent, i, quoted(g.sources[i].name), quoted(g.sources[i].type));
    out_ += indent + "}\n";
  }

  void print_node(const Graph& g, const Node& n, const std::string& indent) {
    out_ += indent;
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      const auto& v = g.value(n.outputs[i]);
      out_ += (i ? ", " : "") + quoted_if_needed(v.name) + ": " + type_text(v.type);
    }
    out_ += fmt::format("{} = {}(", n.outputs.empty() ? "()" : "", n.op.info().name);
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      out_ += (i ? ", " : "") + (n.inputs[i].valid() ? quoted_if_needed(g.value(n.inputs[i]).name) : "_");
    out_ += ")";
    for (const auto& a : n.op->changed_attributes())
      out_ += fmt::format(" {}={}", is_attribute_word(a.name) ? a.name : quoted(a.name),
                          attribute_text(a.value, constants_));
    if (!n.name.empty()) out_ += " @" + quoted(n.name);
    print_origin(n);
    print_bodies(n, indent);
    out_ += "\n";
  }

  static bool is_attribute_word(std::string name) {
    for (auto& c : name)
      if (c == '-') c = '_';
    return is_plain(name);
  }

  void print_origin(const Node& n) {
    if (n.sources.empty()) return;
    out_ += " from [";
    for (std::size_t i = 0; i < n.sources.size(); ++i)
      out_ += (i ? ", " : "") + std::to_string(n.sources[i].index);
    out_ += "]";
  }

  void print_bodies(const Node& n, const std::string& indent) {
    if (n.bodies.empty()) return;
    out_ += " {\n";
    for (const auto& body : n.bodies) {
      out_ += indent + "  body ";
      print(body, indent + "  ");
      out_ += "\n";
    }
    out_ += indent + "}";
  }

  ConstantWriter constants_;
  std::string out_;
};

}  // namespace

GraphText print_graph(const Graph& graph, const TextOptions& options) {
  Printer printer(options);
  printer.print(graph, "");
  return printer.take();
}

}  // namespace lamina
