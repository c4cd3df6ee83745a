#include "plan/tensors.h"

namespace lamina {

std::uint32_t add_tensor(Plan& plan, ValueId value, Layout layout) {
  const auto index = static_cast<std::uint32_t>(plan.tensors.size());
  auto& t = plan.tensors.emplace_back();
  t.value = value;
  t.type = plan.graph.type(value);
  t.layout = layout;
  t.root = index;
  if (t.type.shape.known()) t.bytes = memory_bytes(t.type.element, t.type.shape.sizes(), layout);
  return index;
}

void add_move(Plan& plan, PlanStep::Kind kind, const std::string& name, std::uint32_t from, std::uint32_t to,
              double cost) {
  const auto &in = plan.tensors[from], &out = plan.tensors[to];
  PlanStep step;
  step.kind = kind;
  step.name = name;
  step.label = in.layout == out.layout
                   ? "copy"
                   : fmt::format("reorder_{}_to_{}", name_of(in.layout), name_of(out.layout));
  step.in = {from};
  step.out = {to};
  step.cost = cost;
  step.code = make_reorder(out.type.element, out.type.shape.sizes(), in.layout, out.layout);
  plan.steps.push_back(std::move(step));
}

Tensors::Tensors(Plan& plan, WeightStore& weights, const Machine& machine)
    : plan_(plan), weights_(weights), machine_(machine) {}

std::uint32_t Tensors::add(ValueId value, Layout layout) {
  return made_[{value, layout}] = add_tensor(plan_, value, layout);
}

void Tensors::alias(std::uint32_t tensor, std::uint32_t other) {
  auto& t = plan_.tensors[tensor];
  const auto& memory = plan_.tensors[other];
  t.root = memory.root;
  t.shift = memory.shift;
  t.row = memory.row;
}

void Tensors::add_inputs() {
  const auto& inputs = plan_.graph.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool read = plan_.graph.readers(inputs[i]) != 0;
    plan_.inputs.push_back(read ? add(inputs[i], Layout::plain) : kNoTensor);
    if (!read) continue;
    plan_.tensors.back().place = Place::input;
    plan_.tensors.back().index = i;
  }
}

void Tensors::add_outputs(const std::vector<Picked>& picked, const Subviews& subviews) {
  for (const auto& p : picked) {
    const auto& outputs = plan_.graph.node(p.node).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) add(outputs[i], p.offer.outputs[i]);
  }
  const auto tensor = [&](ValueId v) -> PlanTensor& {
    return plan_.tensors[made_.lower_bound({v, Layout{}})->second];
  };
  for (const auto v : subviews.order) {
    const auto& part = subviews.of.at(v);
    const auto& whole = tensor(part.whole);
    auto& t = tensor(v);
    t.root = whole.root;
    t.shift = whole.shift + static_cast<std::size_t>(part.first * bits_of(t.type.element) / 8);
    t.row = part.row;
  }
}

std::uint32_t Tensors::add_dynamic(ValueId value) {
  const auto t = add(value, Layout::plain);
  plan_.tensors[t].place = Place::dynamic;
  plan_.tensors[t].bytes = 0;
  return t;
}

std::uint32_t Tensors::add_constant(ValueId value, Layout layout) {
  const Tensor source = *plan_.graph.constant(value);
  const auto t = add(value, layout);
  auto& tensor = plan_.tensors[t];
  tensor.place = Place::constant;
  if (!same_bytes(source.shape(), Layout::plain, layout))
    tensor.constant = weights_.moved(source, std::string(name_of(layout)), size_laid_out(source, layout),
                                     [&](const Tensor& from) { return laid_out(from.to_aligned(), layout); });
  else if (source.aligned())
    tensor.constant = source;
  else
    tensor.constant = weights_.moved(source, "aligned", PackedSize::like(source),
                                     [](const Tensor& from) { return from.clone(); });
  return t;
}

std::uint32_t Tensors::of(ValueId value, Layout layout) {
  if (const auto it = made_.find({value, layout}); it != made_.end()) return it->second;
  if (plan_.graph.constant(value)) return add_constant(value, layout);
  const auto from = made_.lower_bound({value, Layout{}});
  LAMINA_CHECK(from != made_.end() && from->first.first == value, "value '{}' is read before it is made",
               plan_.graph.value(value).name);
  const auto& type = plan_.graph.type(value);
  const auto dims = type.shape.sizes();
  auto there = from->second;
  const auto made = from->first.second;  // plain, where it is there
  if (made != Layout::plain && layout != Layout::plain && (packing_of(made) || packing_of(layout)))
    there = of(value, Layout::plain);
  const auto t = add(value, layout);
  if (same_bytes(dims, plan_.tensors[there].layout, layout))
    alias(t, there);
  else
    add_move(plan_, PlanStep::Kind::reorder, plan_.graph.value(value).name, there, t,
             reorder_cost(machine_, type.element, dims).us());
  return t;
}

}  // namespace lamina
