#include "tool/drawing_plan.h"

#include <algorithm>

#include "tool/text.h"

namespace lamina::tool {
namespace {

/// The node and output of the drawing that make a value.
struct Origin {
  std::size_t node = 0, port = 0;
};

std::string time_text(double microseconds) {
  return microseconds >= 1000 ? fmt::format("{:.3g} ms", microseconds / 1000)
                              : fmt::format("{:.3g} \xC2\xB5s", microseconds);
}

/// One plan after the other; what waits in one is made in the next.
class PlanDrawing {
 public:
  PlanDrawing(const std::vector<std::shared_ptr<const Plan>>& plans, const Profile* profile)
      : plans_(plans), profile_(profile) {
    if (!profile_) return;
    for (const auto& plan : plans_)
      for (const auto& step : plan->steps) hottest_ = std::max(hottest_, profile_->of(step));
  }

  Drawing make() {
    std::vector<Origin> inputs;
    const auto& first = plans_.at(0)->graph;
    for (const auto v : first.inputs()) {
      inputs.push_back({p_.nodes.size(), 0});
      p_.nodes.push_back(pill(first.value(v).name, first.type(v)));
      p_.nodes.back().ports = {short_type(first.type(v))};
    }
    std::vector<std::string> names;
    for (const auto& r : first.results()) names.push_back(r.name);
    std::vector<std::size_t> results(names.size());
    for (std::size_t r = 0; r < results.size(); ++r) results[r] = r;
    for (const auto& plan : plans_) {
      add(*plan, inputs);
      add_results(*plan, names, results);
      if (!plan->rest) break;
      inputs.clear();
      for (const auto t : plan->rest_inputs) inputs.push_back(source(*plan, t));
      std::vector<std::size_t> later;
      for (const auto r : plan->rest_results) later.push_back(results[r]);
      results = later;
    }
    if (profile_ && profile_->whole() > 0) p_.hottest = hottest_ / profile_->whole();
    return std::move(p_);
  }

 private:
  static DrawingNode pill(const std::string& name, const TensorType& type) {
    DrawingNode n;
    n.form = DrawingNode::Form::pill;
    n.hue = kPort;
    n.title = name;
    n.tooltip = fmt::format("\"{}\" {}", name, to_string(type));
    return n;
  }

  void add(const Plan& plan, const std::vector<Origin>& inputs) {
    made_.clear();
    by_value_.clear();
    choices_.clear();
    for (const auto& c : plan.choices) choices_[c.node] = &c;
    for (std::size_t i = 0; i < plan.graph.inputs().size() && i < inputs.size(); ++i)
      by_value_[plan.graph.inputs()[i]] = inputs[i];
    for (const auto& step : plan.steps) {
      std::vector<Origin> from;
      for (const auto t : step.in)
        if (t != kNoTensor && plan.tensors[t].place != Place::constant) from.push_back(source(plan, t));
      const auto at = p_.nodes.size();
      p_.nodes.push_back(step_node(plan, step));
      for (const auto& f : from) connect(f, at);
      for (std::size_t o = 0; o < step.out.size(); ++o) {
        if (step.out[o] == kNoTensor) continue;
        made_[step.out[o]] = {at, o};
        by_value_[plan.tensors[step.out[o]].value] = {at, o};
      }
    }
  }

  /// What makes a tensor: a step; else the step or input of its value; else a node for which nothing runs.
  Origin source(const Plan& plan, std::uint32_t t) {
    if (const auto it = made_.find(t); it != made_.end()) return it->second;
    return source_of_value(plan, plan.tensors[t].value);
  }
  Origin source_of_value(const Plan& plan, ValueId v) {
    if (const auto it = by_value_.find(v); it != by_value_.end()) return it->second;
    const auto id = plan.graph.producer(v);
    if (!id.valid()) return constant_node(plan, v);
    std::vector<Origin> from;
    const auto& node = plan.graph.node(id);
    for (const auto in : node.inputs)
      if (in.valid() && !plan.graph.constant(in)) from.push_back(source_of_value(plan, in));
    const auto at = p_.nodes.size();
    auto view = drawing_of(plan.graph, id);
    view.form = DrawingNode::Form::small;
    view.tooltip += fmt::format("\n{}", why_nothing_runs(node));
    view.ports.clear();
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      by_value_[node.outputs[o]] = {at, o};
      view.ports.push_back(short_type(plan.graph.type(node.outputs[o])));
    }
    p_.nodes.push_back(std::move(view));
    for (const auto& f : from) connect(f, at);
    return by_value_.at(v);
  }
  Origin constant_node(const Plan& plan, ValueId v) {
    const auto at = p_.nodes.size();
    auto n = pill("constant", plan.graph.type(v));
    n.form = DrawingNode::Form::small;
    n.ports = {short_type(plan.graph.type(v))};
    p_.nodes.push_back(std::move(n));
    return by_value_[v] = {at, 0};
  }

  void connect(const Origin& from, std::size_t to) {
    const auto& ports = p_.nodes[from.node].ports;
    p_.edges.push_back({from.node, from.port, to, from.port < ports.size() ? ports[from.port] : "", false});
  }

  DrawingNode step_node(const Plan& plan, const PlanStep& step) {
    const auto row = row_of(plan, step);
    const bool operation = step.kind == PlanStep::Kind::kernel || step.kind == PlanStep::Kind::dynamic;
    DrawingNode n;
    if (operation) {
      n = drawing_of(plan.graph, step.node);
      n.lines.clear();
      n.bodies.clear();
      n.rows.push_back(step.kind == PlanStep::Kind::dynamic ? "reference (shape depends on data)"
                                                            : step.label);
      n.rows.push_back(fmt::format("{} {}", row.precision, row.layout));
    } else {
      n.form = DrawingNode::Form::small;
      n.hue = kLayout;
      n.title = step.kind == PlanStep::Kind::copy ? "copy" : row.layout;
      n.name = step.name;
      n.tooltip = fmt::format("{} of \"{}\"", step.label, step.name);
    }
    n.ports.clear();
    for (const auto t : step.out) n.ports.push_back(t == kNoTensor ? "" : short_type(plan.tensors[t].type));
    n.tooltip +=
        fmt::format("\nkernel: {}\nlayout: {}\nprecision: {}", step.label, row.layout, row.precision);
    add_time(n, step, row);
    add_choice(n, step);
    return n;
  }

  void add_time(DrawingNode& n, const PlanStep& step, const LayerRow& row) const {
    if (!profile_) return;
    const double time = profile_->of(step), share = profile_->whole() > 0 ? time / profile_->whole() : 0;
    n.heat = hottest_ > 0 ? time / hottest_ : 0;
    n.corner = fmt::format("{} {:.1f}%", time_text(time), 100 * share);
    n.tooltip += fmt::format("\ntime: {} ({:.2f} % of {})", time_text(time), 100 * share,
                             time_text(profile_->whole()));
    if (time > 0)
      n.tooltip += fmt::format("\n{:.3g} GFLOP/s, {:.3g} GB/s", row.work.flops() / time / 1e3,
                               row.work.bytes / time / 1e3);
  }

  void add_choice(DrawingNode& n, const PlanStep& step) const {
    const auto it = choices_.find(step.node);
    if (step.kind != PlanStep::Kind::kernel || it == choices_.end()) return;
    n.tooltip += fmt::format("\nestimated: {:.3g} \xC2\xB5s", it->second->cost.us());
    for (const auto& lost : it->second->lost)
      n.tooltip += fmt::format("\ninstead of {} at {:.3g} \xC2\xB5s", to_string(lost), lost.cost.us());
    for (const auto& r : it->second->refusals)
      n.tooltip += fmt::format("\n{} refused: {}", r.kernel, r.reason);
  }

  void add_results(const Plan& plan, const std::vector<std::string>& names,
                   const std::vector<std::size_t>& which) {
    for (std::size_t r = 0; r < plan.results.size() && r < which.size(); ++r) {
      if (plan.results[r] == kNoTensor) continue;
      const auto from = source(plan, plan.results[r]);
      p_.nodes.push_back(pill(names[which[r]], plan.tensors[plan.results[r]].type));
      connect(from, p_.nodes.size() - 1);
    }
  }

  const std::vector<std::shared_ptr<const Plan>>& plans_;
  const Profile* profile_;
  double hottest_ = 0;
  Drawing p_;
  std::map<std::uint32_t, Origin> made_;  // by tensor, of the plan at hand
  std::map<ValueId, Origin> by_value_;    // likewise
  std::map<NodeId, const Choice*> choices_;
};

}  // namespace

Drawing drawing_of(const std::vector<std::shared_ptr<const Plan>>& plans, const Profile* profile) {
  return PlanDrawing(plans, profile).make();
}

}  // namespace lamina::tool
