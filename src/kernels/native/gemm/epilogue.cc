#include "kernels/native/gemm/epilogue.h"

#include "kernels/epilogue.h"
#include "ops/activation.h"
#include "ops/eval.h"

namespace lamina::gemm {
namespace {

std::optional<float> one_value(const Tensor* t) {
  if (!t || t->size() != 1) return std::nullopt;
  return to_floats(*t)[0];
}

/// The activation that the registers apply for a stage, or nothing.
std::optional<Finish> finish_of(const Stage& stage) {
  const auto& op = stage.node->op;
  if (stage.running != 0) return std::nullopt;
  Finish f;
  f.kind = Finish::Kind::clamp;
  f.high = std::numeric_limits<float>::infinity();
  if (op.is<Relu>()) return f;
  if (const auto* c = op.as<Clamp>()) {
    f.low = static_cast<float>(c->min);
    f.high = static_cast<float>(c->max);
    return f;
  }
  if (op.is<PRelu>())
    if (const auto slope = one_value(stage.constant)) {
      f.kind = Finish::Kind::leaky;
      f.slope = *slope;
      return f;
    }
  return std::nullopt;
}

/// [sum with a second tensor] [relu, clamp or leaky relu].
std::optional<Epilogue> in_registers(const NodeView& v) {
  const auto stages = chain_of(v.node());
  if (!stages || stages->size() > 2) return std::nullopt;
  const Graph* body = epilogue(v.node());
  for (const auto& s : *stages)
    if (body->type(s.node->outputs[0]).element != ElementType::f32) return std::nullopt;
  Epilogue e;
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

}  // namespace

std::optional<Epilogue> read_epilogue(const NodeView& v, Layout layout, std::string& why) {
  if (auto e = in_registers(v)) return e;
  Epilogue e;
  e.stages = StageProgram::of_epilogue(v, layout, why);
  if (!e.stages) return std::nullopt;
  return e;
}

void Epilogue::add_to(Offer& offer, const NodeView& v, Layout layout) const {
  offer.inputs.resize(v.inputs(), Layout::plain);
  offer.outputs = {layout};
  if (stages) return stages->add_to(offer, v.machine());
  for (std::size_t i = base_inputs(v.node()); i < v.inputs(); ++i) {
    if (add && *add == i)
      offer.inputs[i] = layout;
    else
      offer.consumed.push_back(i);
  }
}

Tensor padded_bias(const NodeView& v, std::int64_t groups, std::int64_t columns,
                   std::int64_t padded_columns) {
  if (!v.has(2)) return {};
  const auto values = to_floats(*v.constant(2));
  Tensor out(ElementType::f32, {groups * padded_columns});
  auto* to = out.data<float>().data();
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t j = 0; j < columns; ++j)
      to[g * padded_columns + j] = values[static_cast<std::size_t>(g * columns + j) % values.size()];
  return out;
}

}  // namespace lamina::gemm
