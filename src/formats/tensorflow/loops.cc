/// A frame of the file as a Loop.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "formats/known.h"
#include "formats/tensorflow/complex.h"
#include "formats/tensorflow/counting.h"
#include "formats/tensorflow/importer.h"
#include "formats/tensorflow/lists.h"
#include "formats/tensorflow/tensors.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::tensorflow {

/// Reads one loop. Its condition is asked once before it and at the end of each iteration. What the types of
/// carried values are shows only when the body has been read: it is read again until they stay.
class LoopImport {
 public:
  LoopImport(Importer& importer, std::uint32_t frame)
      : in_(importer),
        frame_number_(frame),
        frame_(importer.links_.frames()[frame]),
        shape_(importer.def_, importer.links_, frame_),
        around_(*importer.scope_) {}

  void run() {
    if (!frame_.has_condition) throw NotSupported{"a loop without a condition"};
    find_variables();
    condition_nodes_ = part({frame_.condition});
    std::vector<std::uint32_t> nexts;
    for (const auto& v : variables_)
      if (!v.stays) nexts.push_back(v.appends ? v.appends->item.node : v.of.next);
    if (nexts.empty()) throw NotSupported{"a loop that changes nothing"};
    body_nodes_ = part(std::move(nexts));
    const auto first = first_condition();
    const auto known = known_value(around_.graph, first, in_.folding_budget);
    if (known && known->size() == 1 && to_ints(*known)[0] == 0) {
      for (auto& v : variables_) v.last = v.initial;
    } else {
      trips_ = find_trips();
      for (auto& v : variables_)
        v.joins = v.appends && is_full(v) && shape_.is_only_joined(v.of, in_.needed_);
      read_body(trips_.valid() || known ? ValueId{} : first);
    }
    bind_exits();
  }

 private:
  struct Variable {
    LoopVariable of;
    bool stays = false;  // the same in all iterations
    std::optional<Appending> appends{};
    bool joins = false;  // what is appended is only asked for joined along its first axis
    ValueId initial{}, last{};
    TensorType type{};
  };

  /// Reads nodes of the loop into that scope while it lives. What they were in another graph is forgotten.
  struct InScope {
    InScope(LoopImport& loop, Scope& scope) : in(loop.in_), before(loop.in_.scope_) {
      in.scope_ = &scope;
      for (auto n : loop.frame_.nodes) in.values_[n].clear();
    }
    ~InScope() { in.scope_ = before; }
    InScope(const InScope&) = delete;
    InScope& operator=(const InScope&) = delete;
    Importer& in;
    Scope* before;
  };

  bool is_carried(const Variable& v) const { return !v.stays && !v.appends; }
  const LinkedNode& links(std::uint32_t n) const { return in_.links_[n]; }
  std::string_view op(std::uint32_t n) const { return in_.def_.nodes[n].op; }

  void find_variables() {
    for (const auto& v : frame_.variables) {
      if (!in_.needed_[v.merge]) continue;
      const auto& enter = links(v.enter).inputs;
      const auto& next = links(v.next).inputs;
      if (enter.empty() || next.empty())
        throw NotSupported{"a loop whose Enter or NextIteration reads nothing"};
      Variable variable{v, shape_.stays(v)};
      variable.initial = in_.lookup(around_, enter[0]);
      variable.type = around_.graph.type(variable.initial);
      by_merge_.emplace(v.merge, variables_.size());
      variables_.push_back(std::move(variable));
    }
    for (auto& v : variables_)
      if (auto appends = shape_.appends(v.of);
          appends && shape_.begins_unwritten(v.of) && counts_up(appends->place))
        if (!appends->grows || known_int(list_length(around_.graph, v.initial)) == 0) v.appends = appends;
  }

  std::optional<std::int64_t> known_int(ValueId v) const {
    const auto known = known_value(around_.graph, v, in_.folding_budget);
    if (!known || known->size() != 1 || is_float(known->element_type())) return std::nullopt;
    return to_ints(*known)[0];
  }

  const Variable* variable_of(std::uint32_t merge) const {
    const auto it = by_merge_.find(merge);
    return it == by_merge_.end() ? nullptr : &variables_[it->second];
  }

  /// What is added to a variable in each iteration, 1 or more.
  std::optional<std::int64_t> step(const Variable& v) const {
    const auto constant = shape_.step(v.of);
    if (!constant) return std::nullopt;
    const auto t = Call(in_, in_.def_.nodes[*constant], {}).tensor("value");
    if (!t || is_float(element_type_of(t->type)) || element_type_of(t->type) == ElementType::undefined)
      return std::nullopt;
    const auto value = read_tensor(*t, in_.owner_, in_.constants_budget).data;
    if (value.size() != 1) return std::nullopt;
    const auto step = to_ints(value.to_aligned())[0];
    return step >= 1 && step <= INT32_MAX ? std::optional(step) : std::nullopt;
  }

  /// 0, 1, 2, ...
  bool counts_up(std::uint32_t merge) const {
    const auto* v = variable_of(merge);
    return v && step(*v) == 1 && known_int(v->initial) == 0;
  }

  /// The number of iterations where nothing but counters ends the loop, in the graph around; else invalid.
  /// Asked when the condition has been read there.
  ValueId find_trips() {
    auto& graph = around_.graph;
    const auto number = [&](std::int64_t n) { return graph.add_constant(Tensor::scalar(n)); };
    std::optional<std::int64_t> most;
    std::set<ValueId> computed;
    for (const auto& bound : shape_.bounds()) {
      const auto* v = variable_of(bound.merge);
      if (v == nullptr) return {};
      const auto start = known_int(v->initial), by = step(*v);
      const auto& limits = in_.values_[bound.limit.node];
      if (in_.links_.frames().of(bound.limit.node) != frame_number_ &&
          !in_.reaches(around_, bound.limit.node))
        return {};
      if (!start || !by || bound.limit.port >= limits.size() || varies(bound.limit)) return {};
      const auto limit = limits[bound.limit.port];
      if (!is_integer(graph.type(limit).element) || std::abs(*start) > INT32_MAX) return {};
      if (const auto known = known_int(limit)) {
        if (std::abs(*known) > INT64_MAX / 4) return {};
        const auto trips = std::max<std::int64_t>(0, (*known - *start + *by - 1) / *by);
        most = std::min(most.value_or(trips), trips);
      } else if (*by == 1 && *start == 0) {
        computed.insert(limit);
      } else {
        return {};
      }
    }
    if (most && computed.empty()) return number(*most);
    ValueId trips = most ? number(*most) : ValueId{};
    for (auto limit : computed) {
      limit_ = computed.size() == 1 && !most ? limit : ValueId{};
      const auto wide = graph.add(Convert{ElementType::i64}, {limit});
      trips = trips.valid() ? graph.add(Minimum{}, {trips, wide}) : wide;
    }
    return trips.valid() ? graph.add(Maximum{}, {trips, number(0)}) : trips;
  }

  /// A limit that is made of what goes around.
  bool varies(Ref limit) const {
    for (auto n : part({limit.node}))
      for (auto ref : links(n).inputs)
        if (const auto* v = variable_of(ref.node); v && !v->stays) return true;
    const auto* v = variable_of(limit.node);
    return v && !v->stays;
  }

  /// Whether the condition only says where a Switch of the loop sends its data; it may be that data, too.
  bool only_decides(std::uint32_t n) const {
    const auto& inputs = links(n).inputs;
    return is_switch(op(n)) && inputs.size() == 2 && inputs[0].node != frame_.condition;
  }

  /// Nodes of the frame that make these, in order; loop variables are where that ends.
  std::vector<std::uint32_t> part(std::vector<std::uint32_t> open) const {
    std::set<std::uint32_t> seen(open.begin(), open.end());
    std::set<std::uint32_t> merges;
    for (const auto& v : variables_) merges.insert(v.of.merge);
    const auto& frames = in_.links_.frames();
    while (!open.empty()) {
      const auto n = open.back();
      open.pop_back();
      for (auto ref : links(n).inputs) {
        const auto f = frames.of(ref.node);
        if (frames.depth(f) < frames.depth(frame_number_) || in_.branches_->dead(ref) ||
            merges.contains(ref.node))
          continue;
        if (ref.node == frame_.condition && only_decides(n)) continue;
        if (seen.insert(ref.node).second) open.push_back(ref.node);
      }
      if (const auto choice = in_.branches_->choice(n);
          choice && frames.depth(frames.of(choice->condition.node)) >= frames.depth(frame_number_) &&
          !merges.contains(choice->condition.node) && seen.insert(choice->condition.node).second)
        open.push_back(choice->condition.node);
    }
    std::vector<std::uint32_t> nodes;
    for (auto n : frame_.nodes)
      if (seen.contains(n) && !merges.contains(n)) nodes.push_back(n);
    return nodes;
  }

  void read(const std::vector<std::uint32_t>& nodes) {
    if ((in_.loop_budget_ -= std::ssize(nodes)) < 0)
      fail(ErrorCode::bad_file, "loops in each other have too many nodes");
    for (auto n : nodes) in_.values_[n].clear();
    for (auto n : nodes)
      if (in_.values_[n].empty()) in_.import_node(n);
  }

  void bind(Scope& scope, const Variable& v, ValueId value) {
    in_.values_[v.of.merge] = {v.stays ? in_.carried_in(scope, v.initial) : value};
  }

  ValueId first_condition() {
    Scope scope(around_.graph, &around_, frame_number_);
    const InScope reading(*this, scope);
    for (const auto& v : variables_) bind(scope, v, v.initial);
    read(condition_nodes_);
    return in_.lookup(Ref{frame_.condition, 0});
  }

  /// The body with parameters of the types that carried values have for now: its last iteration's values
  /// and condition are its results.
  void read_once(Scope& scope) {
    const InScope reading(*this, scope);
    auto& body = scope.graph;
    add_counters(body);
    for (const auto& v : variables_)
      if (is_carried(v))
        in_.values_[v.of.merge] = {body.add_input(std::string(in_.def_.nodes[v.of.merge].name), v.type)};
    for (const auto& v : variables_)
      if (v.stays) bind(scope, v, {});
    read(body_nodes_);
    Values nexts, items;
    for (const auto& v : variables_) {
      nexts.push_back(is_carried(v) ? in_.lookup(Ref{v.of.next, 0}) : ValueId{});
      if (v.appends) items.push_back(in_.lookup(v.appends->item));
    }
    body.add_result("condition", next_condition(scope, nexts));
    for (auto v : nexts)
      if (v.valid()) body.add_result(body.value(v).name, v);
    const auto front = body.add_constant(Tensor::of<std::int64_t>({1}, Ints{0}));
    std::size_t next = 0;
    for (const auto& v : variables_) {
      if (!v.appends) continue;
      const auto item = items[next++];
      body.add_result(body.value(item).name, v.joins ? item : body.add(Unsqueeze{}, {item, front}));
      if (v.joins) body.add_result("", first_size(body, item));
    }
  }

  ValueId next_condition(Scope& scope, const Values& nexts) {
    if (trips_.valid()) return scope.graph.add_constant(Tensor::scalar<bool>(true));
    for (std::size_t i = 0; i < variables_.size(); ++i)
      if (!variables_[i].appends) bind(scope, variables_[i], nexts[i]);
    read(condition_nodes_);
    return in_.lookup(Ref{frame_.condition, 0});
  }

  void read_body(ValueId first) {
    constexpr int kMostPasses = 8;
    for (int pass = 0; pass < kMostPasses; ++pass) {
      const auto unsupported = in_.loaded_.unsupported;
      const auto listed = in_.unsupported_;
      const auto sources = in_.loaded_.graph.sources.size();
      Graph body;
      Scope scope(body, &around_, frame_number_);
      read_once(scope);
      if (!types_change(body, pass)) return add_loop(first, std::move(body), scope);
      in_.loaded_.unsupported = unsupported;
      in_.unsupported_ = listed;
      in_.loaded_.graph.sources.resize(sources);
    }
    throw NotSupported{"a loop whose carried values never keep their types"};
  }

  /// Widens the types of carried values to what an iteration makes of them.
  bool types_change(const Graph& body, int pass) {
    bool changes = false;
    std::size_t result = 0;
    for (auto& v : variables_) {
      if (!is_carried(v)) continue;
      const auto& made = body.type(body.results()[++result].value);
      if (v.type.element == ElementType::undefined && made.element != ElementType::undefined) {
        v.initial = unwritten_list(around_.graph, v.initial, made);
        v.type = around_.graph.type(v.initial);
        changes = true;
      } else if (made.element != ElementType::undefined && made.element != v.type.element) {
        throw NotSupported{fmt::format("a loop whose \"{}\" is {} and becomes {}",
                                       in_.def_.nodes[v.of.merge].name, name_of(v.type.element),
                                       name_of(made.element))};
      } else if (auto wider = widened(v.type.shape, made.shape, pass); !(wider == v.type.shape)) {
        v.type.shape = std::move(wider);
        changes = true;
      }
    }
    return changes;
  }

  static Shape widened(const Shape& before, const Shape& after, int pass) {
    constexpr int kPassesByAxis = 3;
    if (!before.ranked() || !after.ranked() || before.rank() != after.rank()) return {};
    if (before.same(after) || before == after) return before;
    if (pass >= kPassesByAxis) return Shape::of_rank(before.rank());
    std::vector<Dim> dims;
    for (std::size_t i = 0; i < before.rank(); ++i)
      dims.push_back(before[i].same(after[i]) || before[i] == after[i] ? before[i] : Dim());
    return dims;
  }

  void add_loop(ValueId first, Graph body, const Scope& scope) {
    erase_unread_complex(body);
    erase_unread_lists(body);
    body.erase_unused();
    Loop op;
    Values inputs{trips_, first};
    for (const auto& v : variables_)
      if (is_carried(v)) inputs.push_back(v.initial);
    op.carried = std::ssize(inputs) - 2;
    for (const auto& v : variables_)
      if (v.appends) op.concat_axes.insert(op.concat_axes.end(), v.joins ? 2 : 1, 0);
    inputs.insert(inputs.end(), scope.captured.begin(), scope.captured.end());
    std::vector<Graph> bodies;
    bodies.push_back(std::move(body));
    const auto outputs = static_cast<int>(op.carried + std::ssize(op.concat_axes));
    const auto node =
        around_.graph.add_node(std::move(op), std::move(inputs), {}, outputs, std::move(bodies));
    const auto made = around_.graph.node(node).outputs;
    std::size_t next = 0;
    for (auto& v : variables_)
      if (!v.appends) v.last = v.stays ? v.initial : made[next++];
    for (auto& v : variables_) {
      if (!v.appends) continue;
      const auto items = made[next++];
      if (v.joins)
        v.last = joined_list(around_.graph, items, made[next++]);
      else
        v.last =
            is_full(v) ? items : filled_list(around_.graph, items, list_length(around_.graph, v.initial));
    }
  }

  /// Each element of the list is written.
  bool is_full(const Variable& v) {
    if (v.appends->grows) return true;
    const auto length = list_length(around_.graph, v.initial);
    const auto size = known_int(length), count = trips_.valid() ? known_int(trips_) : std::nullopt;
    return (size && count && *size <= *count) ||
           (limit_.valid() && same_number(around_.graph, length, limit_));
  }

  void bind_exits() {
    for (auto exit : frame_.exits) {
      if (!in_.needed_[exit]) continue;
      const auto& from = links(exit).inputs;
      const auto& inputs = links(from.at(0).node).inputs;
      const auto* v = inputs.empty() ? nullptr : variable_of(inputs[0].node);
      if (!v || !is_switch(op(from[0].node)))
        throw NotSupported{"an Exit of what is no value that a loop carries"};
      in_.values_[exit] = {v->last};
      const auto& name = in_.def_.nodes[exit].name;
      const bool is_made = !v->stays && v->last != v->initial;  // not where nothing goes round
      if (is_made && !around_.graph.find_value(name).valid())
        around_.graph.set_value_name(v->last, std::string(name));
    }
  }

  Importer& in_;
  std::uint32_t frame_number_;
  const LoopFrame& frame_;
  LoopShape shape_;
  Scope& around_;
  ValueId trips_{}, limit_{};  // the number of iterations; what it was made of when that is one value
  std::vector<Variable> variables_;
  std::unordered_map<std::uint32_t, std::size_t> by_merge_;
  std::vector<std::uint32_t> condition_nodes_, body_nodes_;
};

/// All of its Exits have their values then.
Values Importer::leave_loop(std::uint32_t exit) {
  const auto frame = links_.frames().left_by(exit);
  try {
    LoopImport(*this, frame).run();
  } catch (const NotSupported& e) {
    list_unsupported(def_.nodes[exit], e.reason);
    for (auto n : links_.frames()[frame].exits)
      if (needed_[n]) values_[n] = make_opaque(def_.nodes[n], {});
  }
  return values_[exit];
}

}  // namespace lamina::tensorflow
