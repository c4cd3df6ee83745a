#include "explain/layers.h"

#include <algorithm>
#include <chrono>

#include "api/inside.h"
#include "api/request_state.h"
#include "base/guard.h"
#include "lamina/explain.h"
#include "ops/decompose.h"
#include "ops/elementwise.h"

namespace lamina {

void Profile::add(const Request& request, double microseconds) {
  ++runs_;
  whole_ += microseconds;
  for (const auto& t : Inside::runner_of(request).times()) sums_[t.step] += t.microseconds;
  for (auto& plan : Inside::runner_of(request).plans())
    if (std::find(plans_.begin(), plans_.end(), plan) == plans_.end()) plans_.push_back(std::move(plan));
}

void Profile::add(const Profile& other) {
  runs_ += other.runs_;
  whole_ += other.whole_;
  for (const auto& [step, sum] : other.sums_) sums_[step] += sum;
  for (const auto& plan : other.plans_)
    if (std::find(plans_.begin(), plans_.end(), plan) == plans_.end()) plans_.push_back(plan);
}

double Profile::of(const PlanStep& step) const {
  const auto it = sums_.find(&step);
  return it == sums_.end() || runs_ == 0 ? 0 : it->second / static_cast<double>(runs_);
}

Profile profile_runs(Request& request, double seconds, const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  // A stop between two runs would cancel nothing: it is asked for before each.
  const std::stop_callback cancel(stop, [&request] { request.cancel(); });
  const auto run = [&] {
    if (stop.stop_requested()) fail(ErrorCode::canceled, "the measurement was canceled");
    request.run();
  };
  run();
  Profile profile;
  const auto begin = Clock::now();
  do {
    const auto before = Clock::now();
    run();
    profile.add(request, std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  } while (profile.runs() < 3 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds);
  return profile;
}

namespace {

/// "a", or "a -> b" when the first input is another than the first output.
std::string from_to(std::string_view from, std::string_view to) {
  if (from.empty() || from == to) return std::string(to);
  return to.empty() ? std::string(from) : fmt::format("{} -> {}", from, to);
}

/// Work of a copy between layouts: nothing is computed, all bytes are moved.
NodeWork moved(const Plan& plan, const PlanStep& step) {
  NodeWork w;
  for (const auto* list : {&step.in, &step.out})
    for (const auto t : *list)
      if (t != kNoTensor) w.bytes += static_cast<double>(plan.tensors[t].bytes);
  return w;
}

/// How many numbers of that type an instruction multiplies and adds where it takes one of f32. Tiles of AMX
/// do more.
double pace_of(ElementType type) {
  const auto& features = this_machine().features;
  if (type == ElementType::bf16) return 2;
  if (bits_of(type) != 8 || type == ElementType::boolean) return 1;
  return features.has(Feature::avx512_vnni) || features.has(Feature::avx_vnni) ? 4 : 2;
}

}  // namespace

std::string_view why_nothing_runs(const Node& node) {
  if (node.op.has(Trait::moves)) return "nothing runs: the same memory with another shape";
  if (node.outputs.size() > 1) return "nothing runs: readers use parts of its input in place";
  return node.inputs.size() > 1 ? "nothing runs: its inputs are written directly into its result"
                                : "nothing runs: the same memory with another shape";
}

LayerRow row_of(const Plan& plan, const PlanStep& step) {
  LayerRow row;
  row.plan = &plan;
  row.step = &step;
  row.name = step.name;
  row.kernel = step.label;
  const PlanTensor* in = nullptr;
  for (const auto t : step.in)
    if (!in && t != kNoTensor) in = &plan.tensors[t];
  const auto* out = step.out.empty() || step.out[0] == kNoTensor ? nullptr : &plan.tensors[step.out[0]];
  const bool ranked = in && in->type.shape.ranked() && in->type.shape.rank() > 2;
  row.layout = from_to(ranked ? name_of(in->layout) : "", out ? name_of(out->layout) : "");
  row.precision = from_to(in ? name_of(in->type.element) : "", out ? name_of(out->type.element) : "");
  if (step.runs_a_node()) {
    const auto& node = plan.graph.node(step.node);
    row.op = operators_of(node);
    row.work = work_of(plan.graph, node);
    if (node.op.has(Trait::products) && in) row.pace = pace_of(in->type.element);
    for (const auto* tensors : {&step.in, &step.out})
      for (const auto t : *tensors)  // packings, of which the graph does not know
        if (t != kNoTensor && packing_of(plan.tensors[t].layout)) {
          const auto& type = plan.tensors[t].type;
          const auto dense = memory_bytes(type.element, type.shape.sizes(), Layout::plain);
          row.work.bytes -= static_cast<double>(dense) - static_cast<double>(plan.tensors[t].bytes);
        }
  } else {
    row.op = step.kind == PlanStep::Kind::reorder ? "(reorder)" : "(copy)";
    row.work = moved(plan, step);
  }
  return row;
}

std::vector<LayerRow> rows_of(const std::vector<std::shared_ptr<const Plan>>& plans) {
  std::vector<LayerRow> out;
  for (const auto& plan : plans)
    for (const auto& step : plan->steps) out.push_back(row_of(*plan, step));
  return out;
}

namespace {

/// True if the node multiplies or pools integers of 8 bits.
bool computes_in_8_bits(const Graph& g, const Node& n) {
  const bool kind = n.op.has(Trait::products) || n.op.has(Trait::host);
  return kind && n.inputs[0].valid() && is_integer(g.type(n.inputs[0]).element) &&
         bits_of(g.type(n.inputs[0]).element) == 8;
}

/// The type that the node computes in, by its inputs; undefined if these are neither floats nor 8-bit
/// integers.
ElementType computes_in(const Graph& g, const Node& n) {
  for (const auto& body : n.bodies)
    for (const auto id : n.op.has(Trait::control_flow) ? body.order() : std::vector<NodeId>())
      if (const auto type = computes_in(body, body.node(id)); is_float(type)) return type;
  const auto read = std::find_if(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
    return v.valid() && g.type(v).element != ElementType::boolean;  // that chooses
  });
  if (n.op.is<Convert>() || read == n.inputs.end()) return ElementType::undefined;
  if (computes_in_8_bits(g, n)) return g.type(n.inputs[0]).element;
  const auto type = g.type(*read).element;
  // A group that converts integers first, as preprocessing does, computes in the type of its result.
  const auto computed = n.op.is<Elementwise>() && !is_float(type) ? g.type(n.outputs[0]).element : type;
  return is_float(computed) ? computed : ElementType::undefined;
}

}  // namespace

Precisions precisions_of(const Compiled& compiled, const Request& request) {
  Precisions out;
  out.reason = compiled.precision_reason();
  for (const auto& plan : Inside::runner_of(request).plans())
    for (const auto& step : plan->steps) {
      if (!step.runs_a_node()) continue;
      const auto type = computes_in(plan->graph, plan->graph.node(step.node));
      if (is_float(type) || (bits_of(type) == 8 && type != ElementType::boolean))
        ++out.layers[std::string(name_of(type))];
    }
  return out;
}

std::string to_string(const Precisions& p) {
  std::size_t all = 0;
  for (const auto& [type, count] : p.layers) all += count;
  std::string text;
  for (const auto& [type, count] : p.layers) {
    if (text.empty())
      text = p.layers.size() == 1 ? fmt::format("{}: {} layers", type, all)
                                  : fmt::format("{}: {} of {} layers", type, count, all);
    else
      text += fmt::format("; {}: {}", type, count);
  }
  if (text.empty()) text = "no layer computes with floats or 8-bit integers";
  return p.reason.empty() ? text : fmt::format("{}; {}", text, p.reason);
}

std::string precision_used(const Request& request) {
  return guarded("precision_used", [&] {
    const auto& state = Inside::of(request);
    state.require_settable();
    return to_string(precisions_of(*state.compiled, request));
  });
}

std::vector<LayerRow> rows_of(const Profile& profile) {
  auto out = rows_of(profile.plans());
  for (auto& row : out) row.microseconds = profile.of(*row.step);
  return out;
}

}  // namespace lamina
