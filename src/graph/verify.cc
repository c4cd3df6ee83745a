#include "graph/verify.h"

#include <algorithm>
#include <set>

#include "graph/infer.h"

namespace lamina {
namespace {

/// Whether `type` contradicts nothing of `inferred` and is (unless it may lag) at least as precise.
bool fits(const TensorType& type, const TensorType& inferred, Types types) {
  const bool lags = types == Types::may_lag && type.element == ElementType::undefined;
  if (inferred.element != ElementType::undefined && type.element != inferred.element && !lags) return false;
  const auto both = merge(type.shape, inferred.shape);
  return both && (types == Types::may_lag || *both == type.shape);
}

class Verifier {
 public:
  Verifier(const Graph& graph, std::size_t sources, Types types, std::string path,
           std::vector<std::string>& found)
      : g_(graph), sources_(sources), types_(types), path_(std::move(path)), found_(found) {}

  void run() {
    check_values();
    check_inputs();
    for (std::uint32_t n = 0; n < g_.node_slots(); ++n)
      if (!g_.node({n}).erased()) check_links({n});
    check_uses();
    check_results();
    check_bodies();
    if (!sound_) return;  // the rest follows ids
    check_cycles();
    if (!sound_) return;
    for (std::uint32_t n = 0; n < g_.node_slots(); ++n)
      if (!g_.node({n}).erased()) check_types({n});
  }

 private:
  template <class... A>
  void report(fmt::format_string<A...> text, A&&... args) {
    found_.push_back(path_ + fmt::format(text, std::forward<A>(args)...));
  }
  /// Reports a wrong id; checks that would read out of bounds are skipped then.
  template <class... A>
  void report_unsound(fmt::format_string<A...> text, A&&... args) {
    sound_ = false;
    report(text, std::forward<A>(args)...);
  }

  bool exists(ValueId id) const {
    return id.index < g_.value_slots() && g_.value(id).kind != ValueKind::none;
  }
  std::string name(NodeId id) const {
    const auto& n = g_.node(id);
    std::string own = n.name;
    if (own.empty() && !n.outputs.empty() && exists(n.outputs[0])) own = "-> " + g_.value(n.outputs[0]).name;
    return fmt::format("node {} \"{}\" ({})", id.index, own, n.op.name());
  }

  void check_values() {
    std::set<std::string_view> names;
    for (std::uint32_t i = 0; i < g_.value_slots(); ++i) {
      const auto& v = g_.value({i});
      if (v.kind == ValueKind::none) continue;
      if (v.name.empty()) report("value {} has no name", i);
      if (!names.insert(v.name).second) report("the name \"{}\" is used twice", v.name);
      if (g_.find_value(v.name) != ValueId{i}) report("value {} is not found by its name \"{}\"", i, v.name);
      if (v.kind == ValueKind::constant) check_constant(v);
      if (v.kind == ValueKind::output_of_node) check_producer({i}, v);
    }
  }

  void check_constant(const Value& v) {
    if (!v.constant.valid()) return report("constant \"{}\" has no data", v.name);
    const TensorType actual{v.constant.element_type(), Shape::of(v.constant.shape())};
    if (!(v.type == actual))
      report("constant \"{}\" is declared {}, its data is {}", v.name, to_string(v.type), to_string(actual));
  }

  void check_producer(ValueId id, const Value& v) {
    if (v.producer.index >= g_.node_slots() || g_.node(v.producer).erased())
      return report_unsound("value \"{}\" comes from node {}, which does not exist", v.name,
                            v.producer.index);
    const auto& outputs = g_.node(v.producer).outputs;
    if (v.output >= outputs.size() || outputs[v.output] != id)
      report("value \"{}\" is not output {} of {}", v.name, v.output, name(v.producer));
  }

  void check_inputs() {
    std::set<ValueId> seen;
    for (const auto id : g_.inputs()) {
      if (!exists(id))
        report_unsound("input {} does not exist", id.index);
      else if (g_.value(id).kind != ValueKind::input)
        report("\"{}\" is in the list of inputs, but is none", g_.value(id).name);
      else if (!seen.insert(id).second)
        report("input \"{}\" is listed twice", g_.value(id).name);
    }
    for (std::uint32_t i = 0; i < g_.value_slots(); ++i)
      if (g_.value({i}).kind == ValueKind::input && !seen.contains({i}))
        report("input \"{}\" is not in the list of inputs", g_.value({i}).name);
  }

  void check_links(NodeId id) {
    const auto& n = g_.node(id);
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i].valid() && !exists(n.inputs[i]))
        report_unsound("{}: input {} is value {}, which does not exist", name(id), i, n.inputs[i].index);
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      const auto v = n.outputs[i];
      if (!exists(v))
        report_unsound("{}: output {} is value {}, which does not exist", name(id), i, v.index);
      else if (const auto& value = g_.value(v);
               value.kind != ValueKind::output_of_node || value.producer != id || value.output != i)
        report("{}: output {}, \"{}\", says that it comes from elsewhere", name(id), i, value.name);
    }
    if (!std::is_sorted(n.sources.begin(), n.sources.end()) ||
        std::adjacent_find(n.sources.begin(), n.sources.end()) != n.sources.end())
      report("{}: sources are not sorted or not unique", name(id));
    for (const auto s : n.sources)
      if (s.index >= sources_) report("{}: source {}, the table has {}", name(id), s.index, sources_);
    check_arity(id);
  }

  void check_arity(NodeId id) {
    const auto& n = g_.node(id);
    const auto& info = n.op.info();
    const auto inputs = static_cast<int>(n.inputs.size());
    if (inputs < info.min_inputs)
      report("{}: {} inputs, wanted at least {}", name(id), inputs, info.min_inputs);
    if (inputs > info.max_inputs && !epilogue(n))
      report("{}: {} inputs, wanted at most {}", name(id), inputs, info.max_inputs);
    for (int i = 0; i < std::min(inputs, info.min_inputs); ++i)
      if (!n.inputs[static_cast<std::size_t>(i)].valid() && !n.op.has(Trait::control_flow))
        report("{}: input {} is missing", name(id), i);
    const auto outputs = static_cast<int>(n.outputs.size());
    // Optional further outputs (indices of a pooling) are those that inference knows.
    const auto known = [&](ValueId v) { return exists(v) && g_.type(v).element != ElementType::undefined; };
    const bool optional =
        outputs > info.outputs && std::all_of(n.outputs.begin() + info.outputs, n.outputs.end(), known);
    if (info.outputs != kMany && (outputs < 1 || (outputs > info.outputs && !optional)))
      report("{}: {} outputs, wanted {}", name(id), outputs, info.outputs);
  }

  /// Uses are exactly the inputs of nodes.
  void check_uses() {
    std::vector<std::vector<Use>> wanted(g_.value_slots());
    for (std::uint32_t n = 0; n < g_.node_slots(); ++n) {
      const auto& inputs = g_.node({n}).inputs;
      for (std::uint32_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].index < wanted.size()) wanted[inputs[i].index].push_back({{n}, i});
    }
    const auto before = [](const Use& a, const Use& b) {
      return std::pair(a.node.index, a.input) < std::pair(b.node.index, b.input);
    };
    for (std::uint32_t i = 0; i < g_.value_slots(); ++i) {
      const auto& v = g_.value({i});
      auto uses = v.uses;
      std::sort(uses.begin(), uses.end(), before);
      if (uses != wanted[i])
        report_unsound("value \"{}\" lists {} uses, nodes read it {} times or in other places", v.name,
                       uses.size(), wanted[i].size());
    }
  }

  /// Values know which results they are.
  void check_results() {
    std::vector<std::vector<std::uint32_t>> wanted(g_.value_slots());
    for (std::uint32_t r = 0; r < g_.results().size(); ++r)
      if (const auto at = g_.results()[r].value.index; at < wanted.size()) wanted[at].push_back(r);
    for (std::uint32_t i = 0; i < g_.value_slots(); ++i) {
      auto results = g_.value({i}).results;
      std::sort(results.begin(), results.end());
      if (results != wanted[i])
        report_unsound("value \"{}\" lists {} results, it is {} of them or others", g_.value({i}).name,
                       results.size(), wanted[i].size());
    }
    for (std::size_t i = 0; i < g_.results().size(); ++i)
      if (const auto& r = g_.results()[i]; !exists(r.value))
        report_unsound("result {} \"{}\" is value {}, which does not exist", i, r.name, r.value.index);
  }

  void check_bodies() {
    for (std::uint32_t n = 0; n < g_.node_slots(); ++n) {
      const auto& node = g_.node({n});
      if (node.erased()) continue;
      if (!node.bodies.empty() && !node.op.has(Trait::epilogue) && !node.op.has(Trait::control_flow) &&
          node.op.info().outputs != kMany)
        report("{}: has {} bodies, its operator takes none", name({n}), node.bodies.size());
      for (std::size_t b = 0; b < node.bodies.size(); ++b) {
        Verifier inner(node.bodies[b], sources_, types_, fmt::format("{}{}: body {}: ", path_, name({n}), b),
                       found_);
        inner.run();
        sound_ = sound_ && inner.sound_;
      }
      if (epilogue(node)) check_epilogue({n});
    }
  }

  void check_epilogue(NodeId id) {
    const auto& n = g_.node(id);
    const auto& body = n.bodies[0];
    if (n.bodies.size() != 1 && !n.op.has(Trait::control_flow))  // which owns further ones, that it runs
      report("{}: {} epilogues, wanted one", name(id), n.bodies.size());
    if (n.outputs.empty()) report_unsound("{}: an epilogue and no output", name(id));
    if (body.results().size() != 1)
      report_unsound("{}: the epilogue has {} results, wanted one", name(id), body.results().size());
    const auto first_extra = base_inputs(n);
    const auto wanted = 1 + n.inputs.size() - first_extra;
    if (body.inputs().size() != wanted)
      return report_unsound("{}: the epilogue has {} parameters, wanted {}", name(id), body.inputs().size(),
                            wanted);
    for (std::size_t i = first_extra; i < n.inputs.size(); ++i)
      if (!n.inputs[i].valid()) report_unsound("{}: input {}, read by the epilogue, is missing", name(id), i);
    for (std::uint32_t i = 0; i < body.node_slots(); ++i)
      if (const auto& stage = body.node({i}); !stage.erased() && !stage.op.has(Trait::elementwise))
        report("{}: the epilogue has a {}, wanted element-wise operators", name(id), stage.op.name());
  }

  void check_cycles() {
    try {
      g_.order();
    } catch (const Error& e) {
      report_unsound("{}", e.what());
    }
  }

  /// Types against fresh inference.
  void check_types(NodeId id) {
    const auto& n = g_.node(id);
    std::vector<TensorType> types;
    try {
      InferContext context(g_, n);
      n.op->infer(context);
      types = std::move(context.result());
      if (epilogue(n)) types[0] = infer_epilogue(id, types[0]);
    } catch (const std::exception& e) {
      return report("{}: inference fails: {}", name(id), e.what());
    }
    for (std::size_t i = 0; i < n.outputs.size(); ++i)
      if (const auto& v = g_.value(n.outputs[i]); !fits(v.type, types[i], types_))
        report("{}: \"{}\" is {}, inference says {}", name(id), v.name, to_string(v.type),
               to_string(types[i]));
  }

  TensorType infer_epilogue(NodeId id, const TensorType& base) {
    const auto& n = g_.node(id);
    const auto& body = n.bodies[0];
    const auto first_extra = base_inputs(n);
    for (std::size_t i = 0; i < body.inputs().size(); ++i) {
      const auto& declared = body.type(body.inputs()[i]);
      const auto& actual = i == 0 ? base : g_.type(n.inputs[first_extra + i - 1]);
      if (!fits(declared, actual, types_))
        report("{}: parameter {} of the epilogue is {}, wanted {}", name(id), i, to_string(declared),
               to_string(actual));
    }
    return body.type(body.results()[0].value);  // right, because the body is
  }

  const Graph& g_;
  std::size_t sources_;
  Types types_;
  std::string path_;
  std::vector<std::string>& found_;
  bool sound_ = true;
};

}  // namespace

std::vector<std::string> verify(const Graph& graph, Types types) {
  std::vector<std::string> found;
  Verifier(graph, graph.sources.size(), types, "", found).run();
  return found;
}

void require_sound(const Graph& graph, std::string_view what, Types types) {
  const auto found = verify(graph, types);
  if (!found.empty())
    fail(ErrorCode::internal, "internal error: broken graph {}: {}", what, fmt::join(found, "; "));
}

}  // namespace lamina
