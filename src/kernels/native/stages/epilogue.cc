#include "kernels/native/stages/epilogue.h"

#include "kernels/epilogue.h"
#include "kernels/native/stages/finish.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"

namespace lamina {
namespace {

/// [sum with a second tensor] [relu, clamp or leaky relu], or nothing.
std::optional<Epilogue> in_registers(const NodeView& v, Epilogue e) {
  const auto stages = chain_of(v.node());
  if (!stages || stages->size() > 2) return std::nullopt;
  const Graph* body = epilogue(v.node());
  for (const auto& s : *stages)
    if (body->type(s.node->outputs[0]).element != ElementType::f32) return std::nullopt;
  auto stage = stages->begin();
  if (stage != stages->end() && stage->node->op.is<Add>() && stage->extra &&
      v.dims(*stage->extra) == v.out_dims() && v.element(*stage->extra) == ElementType::f32)
    e.add = (stage++)->extra;
  if (stage != stages->end()) {
    const auto finish = finish_of(*stage++);
    if (!finish) return std::nullopt;
    e.finish = *finish;
  }
  if (stage != stages->end()) return std::nullopt;
  return e;
}

/// The axis of channels; the rank where there is none: with a vector on the right the last axis is that of
/// rows.
std::size_t channel_axis(const NodeView& v, Layout layout) {
  const auto rank = v.out_dims().size();
  if (layout != Layout::plain) return 1;
  const bool vector = v.op<MatMul>() && v.rank(1) == 1;
  return rank == 0 || vector ? rank : rank - 1;
}

/// The part of an epilogue of integer sums that runs in registers.
std::optional<Epilogue> integers_in_registers(const NodeView& v, Epilogue e) {
  e.integers = IntegerEpilogue::of(v, channel_axis(v, e.out.layout));
  if (!e.integers) return std::nullopt;
  e.add = e.integers->added();
  e.added.element = e.integers->added_element();
  return e;
}

/// What the node's sums are before its epilogue.
ElementType sums_of(const NodeView& v) {
  const auto* body = epilogue(v.node());
  return body ? body->type(body->inputs()[0]).element : v.out_element();
}

}  // namespace

std::optional<Epilogue> Epilogue::of(const NodeView& v, Layout layout, std::string& why) {
  const auto dims = v.out_dims();
  Epilogue e(Rows::of(v.out_element(), dims, layout));
  e.added.element = ElementType::f32;
  auto all = sums_of(v) == ElementType::i32 ? integers_in_registers(v, e) : in_registers(v, e);
  if (all) return all;
  e.stages = StageProgram::of_epilogue(v, layout, why);
  if (!e.stages) return std::nullopt;
  return e;
}

void Epilogue::add_to(Offer& offer, const NodeView& v) const {
  offer.inputs.resize(v.inputs(), Layout::plain);
  offer.outputs = {out.layout};
  if (out.layout == Layout::channels_last) offer.wide_outputs = {0};
  if (stages) return stages->add_to(offer, v.machine());
  if (integers) offer.cost += integers->cost(v.machine(), element_count(v.out_dims()));
  for (std::size_t i = base_inputs(v.node()); i < v.inputs(); ++i) {
    if (add != i) {
      offer.consumed.push_back(i);
      continue;
    }
    offer.inputs[i] = added.layout;
    if (added.layout == Layout::channels_last) offer.wide_inputs.push_back(i);
  }
}

void Epilogue::lay(const MakeContext& context) {
  if (stages) stages = stages->made(context);
  out = context.output(out);
  if (add) added = context.input(*add, added);
  if (!integers) return;
  integers->pack(context.weights, out.layout);
  if (adds_rows()) added = Rows(ElementType::u8, Layout::plain, 1);
}

void Sums::apply(StageRun& stages, std::int64_t first) const {
  const auto& p = patch_;
  // Points that follow each other in memory are done at once, sets too.
  const bool dense = p.channels == rows_.channels && rows_.dense() && p.step == 1;
  const bool whole = dense && (p.sets == 1 || p.move == p.count);
  const auto points = whole ? p.count * p.sets : dense ? p.count : 1;
  for (std::int64_t set = 0; set < (whole ? 1 : p.sets); ++set)
    for (std::int64_t i = 0; i < p.count; i += dense ? p.count : 1) {
      const auto point = p.point + set * p.move + i * p.step;
      stages(memory() + set * set_bytes() + i * row_bytes(), rows_.at<void>(out_, point, p.channel),
             first + point * rows_.channels + p.channel, points * p.channels);
    }
}

}  // namespace lamina
