#include "offline/cut.h"

#include <algorithm>
#include <set>

#include "base/numbers.h"
#include "formats/frozen.h"
#include "graph/subgraph.h"
#include "offline/faq.h"
#include "offline/places.h"
#include "ops/control.h"

namespace lamina {
namespace {

class Cutter {
 public:
  Cutter(Graph graph, const CutRequest& request) : graph_(std::move(graph)), request_(request) {}

  CutGraph made() && {
    find();
    for (auto& place : found_) apply(place);
    if (!outputs_.empty()) set_outputs();
    copy();
    return std::move(out_);
  }

 private:
  struct Found {
    const InputRequest* request;
    CutPlace cut;
    bool frozen;  ///< by its own option: the others need not be named
  };

  /// All places are looked up before any of them changes the graph.
  void find() {
    const Places places(graph_);
    for (const auto* list : {&request_.inputs, &request_.frozen})
      for (const auto& r : *list) {
        const auto cuts = places.inputs(r.place);
        if (cuts.size() > 1 && (r.shape || r.value))
          fail_faq(ErrorCode::bad_input, 30,
                   "{}: that node has {} inputs, and one shape or value was given; wanted PORT:{}", r.place,
                   cuts.size(), r.place);
        for (const auto& cut : cuts) add({&r, cut, list == &request_.frozen});
      }
    for (const auto& text : request_.outputs) {
      const auto v = places.output(text);
      for (const auto& [name, other] : outputs_)
        if (other == v)
          fail(ErrorCode::bad_input, "--output: {}",
               name == text ? fmt::format("\"{}\" is named twice", name)
                            : fmt::format("\"{}\" and \"{}\" are the same place", name, text));
      outputs_.emplace_back(text, v);
    }
  }

  /// Two inputs in one place would have one name.
  void add(const Found& place) {
    const auto [other, fresh] = names_.emplace(place.cut.name, place.request->place);
    if (!fresh)
      fail(ErrorCode::bad_input, "\"{}\" and \"{}\" are the same place, wanted one input or value there",
           other->second, place.request->place);
    found_.push_back(place);
  }

  TensorType type_at(const Found& place) const {
    auto type = graph_.type(place.cut.value);
    if (place.request->shape) type.shape = *place.request->shape;
    // Behind an operator that is not known.
    if (type.element == ElementType::undefined)
      type.element = place.request->type == ElementType::undefined ? ElementType::f32 : place.request->type;
    return type;
  }

  bool is_model_input(ValueId v) const { return graph_.value(v).kind == ValueKind::input; }

  void apply(const Found& place) {
    const auto& r = *place.request;
    const auto type = type_at(place);
    if (r.value && place.cut.readers.empty()) frozen_.insert(place.cut.value);
    if (r.value)
      return put(place, graph_.add_constant(frozen_value(r.place, *r.value, type), place.cut.name));
    if (place.cut.readers.empty() && is_model_input(place.cut.value)) {
      graph_.set_type(place.cut.value, type);
      return note_input(place.cut.value, r.type);
    }
    // A tensor that was named gives its name to the input.
    const auto& own = graph_.value(place.cut.value).name;
    if (own == place.cut.name) graph_.set_value_name(place.cut.value, own + "/cut");
    const auto input = graph_.add_input(place.cut.name, type);
    put(place, input);
    out_.places.push_back(graph_.value(input).name);
    note_input(input, r.type);
  }

  void put(const Found& place, ValueId by) {
    for (const auto& reader : place.cut.readers) graph_.set_input(reader.node, reader.input, by);
    if (place.cut.readers.empty()) replace_reads(place.cut.value, by);
  }

  /// Results too, but outputs that were asked for by name.
  void replace_reads(ValueId from, ValueId to) {
    graph_.replace(from, to);
    if (graph_.value(from).kind != ValueKind::input) return;
    for (auto& [name, v] : outputs_)
      if (v == from) v = to;
  }

  void note_input(ValueId v, ElementType type) {
    if (inputs_.insert(v).second) ordered_.push_back(v);
    if (type != ElementType::undefined) out_.types[graph_.value(v).name] = type;
  }

  std::string result_name(const std::string& asked, ValueId v) const {
    for (const auto& r : graph_.results())
      if (r.value == v) return r.name;
    const auto colon = asked.rfind(':');
    if (colon == std::string::npos || graph_.find_value(asked).valid()) return asked;
    const auto head = asked.substr(0, colon);
    const auto maker = graph_.producer(v);
    // "name:0" of a node with one output is "name"; what a port reads is called by its value.
    if (parse_integer<int>(head) && !graph_.find_value(head).valid()) return graph_.value(v).name;
    return maker.valid() && graph_.node(maker).outputs.size() == 1 ? head : asked;
  }

  void set_outputs() {
    std::vector<Result> results;
    for (const auto& [name, v] : outputs_) results.push_back({result_name(name, v), v});
    results_ = std::move(results);
  }

  /// Nodes that results and variables need.
  std::vector<bool> needed(const std::vector<Result>& results) const {
    std::vector<bool> nodes(graph_.node_slots());
    std::vector<ValueId> pending;
    const auto follow = [&] {
      while (!pending.empty()) {
        const auto maker = graph_.producer(pending.back());
        pending.pop_back();
        if (!maker.valid() || nodes[maker.index]) continue;
        nodes[maker.index] = true;
        for (const auto v : graph_.node(maker).inputs)
          if (v.valid()) pending.push_back(v);
      }
    };
    for (const auto& r : results) pending.push_back(r.value);
    follow();
    keep_variables(nodes, pending, follow);
    return nodes;
  }

  /// What is assigned to a variable that is read here; all of it when nothing was cut off by outputs.
  template <class Follow>
  void keep_variables(const std::vector<bool>& nodes, std::vector<ValueId>& pending, Follow follow) const {
    for (bool more = true; more;) {
      more = false;
      std::set<std::string> read;
      for (std::uint32_t n = 0; n < nodes.size(); ++n)
        if (const auto* r = nodes[n] ? graph_.node({n}).op.as<ReadValue>() : nullptr)
          read.insert(r->variable_id);
      for (std::uint32_t n = 0; n < nodes.size(); ++n) {
        const Node& node = graph_.node({n});
        if (node.erased() || nodes[n] || node.outputs.empty()) continue;
        const auto* assign = node.op.as<Assign>();
        if (!(assign && read.contains(assign->variable_id)) &&
            !(results_.empty() && node.op.has(Trait::impure)))
          continue;
        pending.push_back(node.outputs[0]);
        more = true;
      }
      follow();
    }
  }

  void copy() {
    const auto& results = results_.empty() ? graph_.results() : results_;
    const auto nodes = needed(results);
    std::vector<bool> read(graph_.value_slots());
    for (std::uint32_t n = 0; n < nodes.size(); ++n)
      if (nodes[n])
        for (const auto v : graph_.node({n}).inputs)
          if (v.valid()) read[v.index] = true;
    for (const auto& r : results) read[r.value.index] = true;
    Subgraph sub(graph_);
    for (const auto v : inputs_in_order(read)) sub.add_input(v);
    for (const auto id : graph_.order())
      if (nodes[id.index]) add(sub, id);
    for (const auto& r : results) sub.add_result(r.name, r.value);
    out_.graph = std::move(sub.graph);
  }

  void add(Subgraph& sub, NodeId id) const {
    try {
      sub.add_node(id);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::internal) throw;
      throw FaqError(ErrorCode::bad_file, 38, e.what());
    }
  }

  /// The inputs: first those that were asked for, then the model's; an input that the cut left without
  /// readers is removed.
  std::vector<ValueId> inputs_in_order(const std::vector<bool>& read) {
    auto all = ordered_;
    std::vector<std::string> missing;
    const bool named = !request_.inputs.empty() && std::any_of(request_.inputs.begin(), request_.inputs.end(),
                                                               [](auto& r) { return !r.value; });
    for (const auto v : graph_.inputs()) {
      if (inputs_.contains(v) || frozen_.contains(v)) continue;
      if (!read[v.index] && !unread_.contains(v)) {
        out_.dropped.push_back(graph_.value(v).name);
      } else if (named && read[v.index]) {
        missing.push_back(graph_.value(v).name);
      } else {
        all.push_back(v);
      }
    }
    if (!missing.empty())
      fail_faq(
          ErrorCode::bad_input, 27,
          "--input: other inputs are needed to compute the outputs: {}; wanted them too, or another place "
          "to cut",
          fmt::join(missing, ", "));
    return all;
  }

  Graph graph_;
  const CutRequest& request_;
  std::vector<Found> found_;
  std::map<std::string, std::string> names_;  // of inputs: what was asked for
  std::vector<std::pair<std::string, ValueId>> outputs_;
  std::vector<Result> results_;
  std::set<ValueId> inputs_;  // that were asked for
  std::set<ValueId> frozen_;
  std::vector<ValueId> ordered_;
  std::set<ValueId> unread_ = [this] {
    std::set<ValueId> out;
    for (const auto v : graph_.inputs())
      if (graph_.readers(v) == 0) out.insert(v);
    return out;
  }();
  CutGraph out_;
};

/// A name ends with the piece that says more than a name.
template <class T, class Name, class Bare>
void join_names(std::vector<T>& pieces, Name name_of, Bare is_bare, const KnownName& known) {
  constexpr std::size_t kMostCommas = 32;
  std::vector<T> out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto name = name_of(pieces[i]);
    auto last = i;
    for (auto k = i; !known(name) && k - i < kMostCommas && k + 1 < pieces.size() && is_bare(pieces[k]);) {
      name += "," + name_of(pieces[++k]);
      if (known(name)) last = k;
    }
    out.push_back(std::move(pieces[last]));
    if (last != i) name_of(out.back()) = name;
    i = last;
  }
  pieces = std::move(out);
}

}  // namespace

CutRequest with_whole_names(CutRequest request, const KnownName& known) {
  const auto is_bare = [](const InputRequest& r) {
    return !r.shape && !r.value && r.type == ElementType::undefined;
  };
  for (auto* list : {&request.inputs, &request.frozen})
    join_names(
        *list, [](InputRequest & r) -> auto& { return r.place; }, is_bare, known);
  join_names(
      request.outputs, [](std::string & name) -> auto& { return name; }, [](const auto&) { return true; },
      known);
  return request;
}

CutGraph cut(Graph graph, const CutRequest& request) { return Cutter(std::move(graph), request).made(); }

}  // namespace lamina
