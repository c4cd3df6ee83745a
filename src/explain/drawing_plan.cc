#include "explain/drawing_plan.h"

#include <algorithm>

#include "base/text.h"
#include "explain/plan_walk.h"

namespace lamina {
namespace {

std::string time_text(double microseconds) {
  return microseconds >= 1000 ? fmt::format("{:.3g} ms", microseconds / 1000)
                              : fmt::format("{:.3g} \xC2\xB5s", microseconds);
}

class PlanDrawing : private PlanWalk {
 public:
  explicit PlanDrawing(const Profile* profile) : profile_(profile) {}

  Drawing make(const std::vector<std::shared_ptr<const Plan>>& plans) {
    for (const auto& plan : plans) {
      for (const auto& c : plan->choices) choices_[{plan.get(), c.node}] = &c;
      for (const auto& step : plan->steps)
        if (profile_) hottest_ = std::max(hottest_, profile_->of(step));
    }
    // A drawing shows the first run only.
    const auto last = std::find_if(plans.begin(), plans.end(), [](const auto& plan) { return !plan->rest; });
    walk({plans.begin(), last == plans.end() ? last : last + 1});
    if (profile_ && profile_->whole() > 0) drawing_.hottest = hottest_ / profile_->whole();
    return std::move(drawing_);
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

  std::size_t add_input(const Graph& graph, ValueId v) override {
    auto n = pill(graph.value(v).name, graph.type(v));
    n.ports = {short_type(graph.type(v))};
    return add(std::move(n), {});
  }

  std::size_t add_constant(const Plan& plan, ValueId v) override {
    auto n = pill("constant", plan.graph.type(v));
    n.form = DrawingNode::Form::small;
    n.ports = {short_type(plan.graph.type(v))};
    return add(std::move(n), {});
  }

  std::size_t add_step(const Plan& plan, const PlanStep& step, const Reads& reads) override {
    return add(step_node(plan, step), reads);
  }

  std::size_t add_idle(const Plan& plan, NodeId id, const Reads& reads) override {
    const auto& node = plan.graph.node(id);
    auto n = drawing_of(plan.graph, id);
    n.form = DrawingNode::Form::small;
    n.tooltip += fmt::format("\n{}", why_nothing_runs(node));
    n.ports.clear();
    for (const auto v : node.outputs) n.ports.push_back(short_type(plan.graph.type(v)));
    return add(std::move(n), reads);
  }

  void add_result(const std::string& name, const PlanTensor& tensor, const Origin& from) override {
    add(pill(name, tensor.type), {{from, tensor.type}});
  }

  std::size_t add(DrawingNode node, const Reads& reads) {
    const auto at = drawing_.nodes.size();
    drawing_.nodes.push_back(std::move(node));
    for (const auto& [from, type] : reads) {
      const auto& ports = drawing_.nodes[from.part].ports;
      drawing_.edges.push_back(
          {from.part, from.port, at, from.port < ports.size() ? ports[from.port] : "", false});
    }
    return at;
  }

  DrawingNode step_node(const Plan& plan, const PlanStep& step) {
    const auto row = row_of(plan, step);
    DrawingNode n;
    if (step.runs_a_node()) {
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
    for (const auto t : step.out)
      if (t != kNoTensor) n.ports.push_back(short_type(plan.tensors[t].type));
    n.tooltip +=
        fmt::format("\nkernel: {}\nlayout: {}\nprecision: {}", step.label, row.layout, row.precision);
    add_time(n, step, row);
    add_choice(n, plan, step);
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

  void add_choice(DrawingNode& n, const Plan& plan, const PlanStep& step) const {
    const auto it = choices_.find({&plan, step.node});
    if (step.kind != PlanStep::Kind::kernel || it == choices_.end()) return;
    n.tooltip += fmt::format("\nestimated: {:.3g} \xC2\xB5s", it->second->cost.us());
    for (const auto& lost : it->second->lost)
      n.tooltip += fmt::format("\ninstead of {} at {:.3g} \xC2\xB5s", to_string(lost), lost.cost.us());
    for (const auto& r : it->second->refusals)
      n.tooltip += fmt::format("\n{} refused: {}", r.kernel, r.reason);
  }

  const Profile* profile_;
  double hottest_ = 0;
  Drawing drawing_;
  std::map<std::pair<const Plan*, NodeId>, const Choice*> choices_;
};

}  // namespace

Drawing drawing_of(const std::vector<std::shared_ptr<const Plan>>& plans, const Profile* profile) {
  return PlanDrawing(profile).make(plans);
}

}  // namespace lamina
