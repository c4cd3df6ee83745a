#include "tests/property/shrink.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "graph/subgraph.h"
#include "graph/verify.h"
#include "ops/eval.h"
#include "ops/operators.h"

namespace lamina::testing {
namespace {

/// What changes when a graph is built anew.
struct Edit {
  std::function<Dims(const Dims&)> dims = [](const Dims& d) { return d; };  ///< of inputs and float constants
  std::function<Tensor(ValueId, Tensor)> constant = [](ValueId, Tensor t) { return t; };
  std::function<Op(NodeId, Op)> op = [](NodeId, Op o) { return o; };
  std::function<std::vector<ValueId>(NodeId, std::vector<ValueId>)> inputs =
      [](NodeId, std::vector<ValueId> v) { return v; };
  std::function<std::optional<ValueId>(ValueId)> instead = [](ValueId) {
    return std::nullopt;
  };                                 ///< read this one
  ValueId cut;                       ///< becomes an input
  std::vector<std::size_t> results;  ///< those that stay; empty: all
  ValueId only_result;               ///< this value instead of all results
};

/// The first elements along each axis.
Tensor cropped(const Tensor& t, const Dims& to) {
  if (t.shape() == to || t.rank() != to.size()) return t;
  const auto values = to_doubles(t);
  std::vector<double> out(element_count(to));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t left = i, from = 0, step = 1;
    for (std::size_t a = to.size(); a-- > 0;) {
      const auto size = static_cast<std::size_t>(to[a]), old = static_cast<std::size_t>(t.shape()[a]);
      from += std::min(left % size, old - 1) * step;
      left /= size;
      step *= old;
    }
    out[i] = values[from];
  }
  return from_doubles(t.element_type(), to, out);
}

class Builder {
 public:
  Builder(const Graph& from, const Edit& edit) : from_(from), edit_(edit), new_(from.value_slots()) {}

  Graph build() {
    for (auto v : from_.inputs()) {
      auto type = from_.type(v);
      type.shape = Shape::of(edit_.dims(type.shape.sizes()));
      new_[v.index] = to_.add_input(from_.value(v).name, type);
    }
    for (auto id : from_.order()) {
      const auto& node = from_.node(id);
      std::vector<ValueId> inputs;
      for (auto v : edit_.inputs(id, node.inputs)) inputs.push_back(read(v));
      const auto made = to_.add_node(edit_.op(id, node.op), inputs, node.name,
                                     static_cast<int>(node.outputs.size()), node.bodies);
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const auto v = node.outputs[i];
        new_[v.index] = v == edit_.cut ? to_.add_input("cut", to_.type(to_.node(made).outputs[i]))
                                       : to_.node(made).outputs[i];
      }
    }
    add_results();
    to_.erase_unused();
    return without_unread_inputs();
  }

 private:
  ValueId read(ValueId v) {
    if (!v.valid()) return v;
    if (const auto other = edit_.instead(v)) v = *other;
    if (const auto* t = from_.constant(v); t && !new_[v.index].valid()) {
      auto data = is_float(t->element_type()) ? cropped(*t, edit_.dims(t->shape())) : *t;
      new_[v.index] = to_.add_constant(edit_.constant(v, data), from_.value(v).name);
    }
    return new_[v.index];
  }

  void add_results() {
    if (edit_.only_result.valid()) return to_.add_result("r", read(edit_.only_result));
    for (std::size_t r = 0; r < from_.results().size(); ++r)
      if (edit_.results.empty() || std::count(edit_.results.begin(), edit_.results.end(), r))
        to_.add_result(from_.results()[r].name, read(from_.results()[r].value));
  }

  Graph without_unread_inputs() {
    Subgraph out(to_);
    for (auto v : to_.inputs())
      if (to_.readers(v)) out.add_input(v);
    for (auto id : to_.order()) out.add_node(id);
    for (const auto& r : to_.results()) out.add_result(r.name, r.value);
    return std::move(out.graph);
  }

  const Graph& from_;
  const Edit& edit_;
  std::vector<ValueId> new_;
  Graph to_;
};

class Shrinker {
 public:
  Shrinker(Graph graph, const std::function<bool(const Graph&)>& fails, double seconds)
      : graph_(std::move(graph)),
        fails_(fails),
        end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(seconds))) {}

  Graph run() {
    bool smaller = true;
    while (smaller && !late()) {
      smaller = false;
      smaller |= fewer_results();
      smaller |= earlier_result();
      smaller |= fewer_nodes();
      smaller |= fewer_inputs();
      smaller |= default_attributes();
      smaller |= smaller_sizes();
      smaller |= plain_constants();
    }
    return std::move(graph_);
  }

 private:
  bool late() const { return std::chrono::steady_clock::now() > end_; }

  bool accept(const Edit& edit) {
    if (late()) return false;
    try {
      auto candidate = Builder(graph_, edit).build();
      if (!verify(candidate).empty() || !fails_(candidate)) return false;
      graph_ = std::move(candidate);
      return true;
    } catch (const std::exception&) {  // no sound graph
      return false;
    }
  }

  bool fewer_results() {
    for (std::size_t r = 0; graph_.results().size() > 1 && r < graph_.results().size(); ++r) {
      Edit edit;
      edit.results = {r};
      if (accept(edit)) return true;
    }
    bool any = false;
    for (std::size_t r = 0; graph_.results().size() > 1 && r < graph_.results().size();) {
      Edit edit;
      for (std::size_t k = 0; k < graph_.results().size(); ++k)
        if (k != r) edit.results.push_back(k);
      if (accept(edit))
        any = true;
      else
        ++r;
    }
    return any;
  }

  bool earlier_result() {
    for (auto id : graph_.order())
      for (auto v : graph_.node(id).outputs) {
        if (graph_.results().size() == 1 && graph_.results()[0].value == v) continue;
        Edit edit;
        edit.only_result = v;
        if (accept(edit)) return true;
      }
    return false;
  }

  bool fewer_nodes() {
    auto order = graph_.order();
    std::reverse(order.begin(), order.end());
    for (auto id : order) {
      const auto& node = graph_.node(id);
      for (auto out : node.outputs) {
        for (auto in : node.inputs) {
          if (!in.valid() || !(graph_.type(in) == graph_.type(out))) continue;
          Edit edit;
          edit.instead = [=](ValueId v) { return v == out ? std::optional(in) : std::nullopt; };
          if (accept(edit)) return true;
        }
        if (!graph_.value(out).uses.empty() && graph_.type(out).shape.known()) {
          Edit edit;
          edit.cut = out;
          if (accept(edit)) return true;
        }
      }
    }
    return false;
  }

  bool fewer_inputs() {
    for (auto id : graph_.order())
      for (std::size_t i = graph_.node(id).inputs.size(); i-- > 1;) {
        if (!graph_.node(id).inputs[i].valid()) continue;
        Edit edit;
        edit.inputs = [=](NodeId n, std::vector<ValueId> v) {
          if (n == id) v[i] = ValueId();
          while (n == id && !v.back().valid()) v.pop_back();
          return v;
        };
        if (accept(edit)) return true;
      }
    return false;
  }

  bool default_attributes() {
    bool any = false;
    for (auto id : graph_.order()) {
      const auto changed = graph_.node(id).op->changed_attributes();
      const auto* usual = operators().find(graph_.node(id).op.info().name);
      for (const auto& a : changed)
        for (const auto& d : usual->attributes()) {
          if (d.name != a.name) continue;
          Edit edit;
          edit.op = [=](NodeId n, Op op) {
            if (n != id) return op;
            std::shared_ptr<AnyOp> copy = op->copy();
            copy->set(d.name, d.value);
            return Op(std::shared_ptr<const AnyOp>(std::move(copy)));
          };
          any |= accept(edit);
        }
    }
    return any;
  }

  std::set<std::int64_t> sizes() const {
    std::set<std::int64_t> all;
    for (auto v : graph_.inputs())
      for (auto d : graph_.type(v).shape.sizes()) all.insert(d);
    for (std::uint32_t v = 0; v < graph_.value_slots(); ++v)
      if (const auto* t = graph_.constant({v}); t && is_float(t->element_type()))
        all.insert(t->shape().begin(), t->shape().end());
    all.erase(1);
    return all;
  }

  /// All dims of one size get another; perhaps also integers of constants and attributes of that value.
  bool change_size(std::int64_t from, std::int64_t to, bool constants, bool attributes) {
    Edit edit;
    edit.dims = [=](Dims d) {
      std::replace(d.begin(), d.end(), from, to);
      return d;
    };
    if (constants)
      edit.constant = [=](ValueId, Tensor t) {
        if (!is_integer(t.element_type()) || t.rank() > 1) return t;
        auto values = to_ints(t);
        std::replace(values.begin(), values.end(), from, to);
        return from_ints(t.element_type(), t.shape(), values);
      };
    if (attributes)
      edit.op = [=](NodeId, Op op) {
        std::shared_ptr<AnyOp> copy = op->copy();
        for (const auto& a : op->attributes())
          if (const auto* i = std::get_if<std::int64_t>(&a.value); i && *i == from) copy->set(a.name, to);
        return Op(std::shared_ptr<const AnyOp>(std::move(copy)));
      };
    return accept(edit);
  }

  bool smaller_sizes() {
    bool any = false;
    const auto all = sizes();
    for (auto s = all.rbegin(); s != all.rend(); ++s) {
      std::set<std::int64_t> targets{1, 2, *s / 2, *s - 1};
      bool done = false;
      for (auto to : targets)
        for (const int extra : {0, 1, 2, 3})
          if (!done && to > 0 && to < *s) done = change_size(*s, to, extra & 1, extra & 2);
      any |= done;
    }
    return any;
  }

  bool plain_constants() {
    bool any = false;
    for (std::uint32_t v = 0; v < graph_.value_slots(); ++v) {
      const auto* t = graph_.constant({v});
      if (!t || !is_float(t->element_type()) || t->size() < 2) continue;
      const auto old = to_doubles(*t);
      if (std::all_of(old.begin(), old.end(), [&](double x) { return x == old[0]; })) continue;
      const ValueId id{v};
      Edit edit;
      edit.constant = [=](ValueId c, const Tensor& data) {
        return c == id ? from_doubles(data.element_type(), data.shape(), std::vector<double>(data.size(), 1))
                       : data;
      };
      if (accept(edit)) return true;  // ids have changed
    }
    return any;
  }

  Graph graph_;
  const std::function<bool(const Graph&)>& fails_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace

Graph shrunk(Graph graph, const std::function<bool(const Graph&)>& fails, double seconds) {
  return Shrinker(std::move(graph), fails, seconds).run();
}

}  // namespace lamina::testing
