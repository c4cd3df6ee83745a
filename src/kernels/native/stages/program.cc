#include "kernels/native/stages/program.h"

#include <algorithm>

#include "kernels/cost.h"
#include "kernels/epilogue.h"
#include "kernels/family.h"
#include "kernels/native/stages/code.h"
#include "ops/decompose.h"
#include "ops/elementwise.h"

namespace lamina {

using stages::Parameter;
using stages::Routine;
using stages::Target;

namespace {

constexpr double kLightCycles = 0.1;  // of one element of Family::vector_light

/// The body of a single element-wise node: its inputs are the parameters.
Graph body_of(const NodeView& v, std::vector<Parameter>& parameters) {
  Graph body;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < v.inputs(); ++i) {
    if (!v.has(i)) {
      inputs.emplace_back();
    } else if (const auto* constant = v.constant(i)) {
      inputs.push_back(body.add_constant(*constant));
    } else {
      inputs.push_back(body.add_input("", v.graph().type(v.node().inputs[i])));
      parameters.push_back({i, nullptr, false});
    }
  }
  const auto id = body.add_node(v.node().op, inputs, v.graph().label(v.id()));  // errors name it
  body.add_result("y", body.node(id).outputs.at(0));
  return body;
}

/// The parameters of an epilogue: the base, then the extra inputs.
std::vector<Parameter> parameters_of(const NodeView& v, const Parameter& base) {
  std::vector<Parameter> out{base};
  for (auto i = base_inputs(v.node()); i < v.inputs(); ++i) out.push_back({i, v.constant(i), false});
  return out;
}

void count_bytes(Routine& code) {
  for (const auto& v : code.body.views) {
    if (v.is_tile) continue;
    double elements = 1;
    for (std::size_t i = 0; i < code.dims.size(); ++i)
      if (v.strides[i] != 0) elements *= static_cast<double>(code.dims[i]);
    code.bytes_read += elements * static_cast<double>(v.bytes);
  }
}

/// Inputs from `first` on, as the program wants them, and which of them it may overwrite.
void describe_inputs(Routine& code, const NodeView& v, std::size_t first) {
  const Target& target = code.target;
  const auto out_bytes = code.body.result_bytes;
  for (auto i = first; i < v.inputs(); ++i) {
    if (!v.has(i)) continue;
    std::size_t views = 0;
    bool dense = true;
    for (const auto& view : code.body.views) {
      if (view.input != i || view.is_tile) continue;
      ++views;
      dense = dense && view.bytes == out_bytes && view.access == stages::View::Access::direct;
    }
    const bool same_rank = v.rank(i) == target.dims.size();
    code.inputs.push_back({i, views == 0, same_rank ? target.layout : Layout::plain});
    if (views == 0 || v.dims(i) != target.dims) continue;
    code.whole.push_back(i);
    if (views == 1 && dense) code.overwritable.push_back(i);
  }
}

std::shared_ptr<const StageProgram> build(const NodeView& v, const Graph& body,
                                          const std::vector<Parameter>& parameters, const Target& target,
                                          std::size_t first_input, std::string& why) {
  auto code = std::make_unique<Routine>();
  code->target = target;
  if (element_count(target.dims) == 0) {
    code->total = 0;
  } else if (!stages::lower(body, parameters, target, code->body, why) || !stages::emit(*code, why)) {
    return nullptr;
  }
  if (!parameters.empty() && parameters[0].is_tile)
    code->tile_bytes = static_cast<std::size_t>(bits_of(body.type(body.inputs()[0]).element)) / 8;
  describe_inputs(*code, v, first_input);
  count_bytes(*code);
  return std::make_shared<StageProgram>(std::move(code));
}

}  // namespace

StageProgram::StageProgram(std::unique_ptr<const Routine> code) : code_(std::move(code)) {}
StageProgram::~StageProgram() = default;

namespace {

std::shared_ptr<const StageProgram> of_body(const NodeView& v, const Graph& body, Layout layout,
                                            std::string& why) {
  const auto& base = body.type(body.inputs()[0]);
  const Target target{v.out_dims(), layout};
  if (base.shape.sizes() != target.dims) {
    why = fmt::format("the epilogue makes {} of {}", to_string(target.dims), to_string(base.shape));
    return nullptr;
  }
  return build(v, body, parameters_of(v, {0, nullptr, true}), target, base_inputs(v.node()), why);
}

}  // namespace

std::shared_ptr<const StageProgram> StageProgram::of_epilogue(const NodeView& v, Layout layout,
                                                              std::string& why) {
  const Graph* body = epilogue(v.node());
  if (!body || body->node_count() == 0) return std::make_shared<StageProgram>(std::make_unique<Routine>());
  return of_body(v, *body, layout, why);
}

std::shared_ptr<const StageProgram> StageProgram::of_later_stages(const NodeView& v, std::size_t kept,
                                                                  Layout layout, std::string& why) {
  const auto body = remaining_stages(v.node(), kept);
  if (body) return of_body(v, *body, layout, why);
  why = fmt::format("after {} stages more than one value is read later", kept);
  return nullptr;
}

std::shared_ptr<const StageProgram> StageProgram::of_elementwise(const NodeView& v, Layout layout,
                                                                 std::string& why) {
  const Target target{v.out_dims(), layout};
  if (const Graph* body = epilogue(v.node()))
    return build(v, *body, parameters_of(v, {0, v.constant(0), false}), target, 0, why);
  std::vector<Parameter> parameters;
  const Graph body = body_of(v, parameters);
  return build(v, body, parameters, target, 0, why);
}

std::shared_ptr<const StageProgram> StageProgram::made(const MakeContext& context) const {
  auto code = std::make_unique<Routine>(*code_);
  stages::arrange_constants(*code, context.weights);
  bool wide = false;
  for (auto& view : code->body.views)
    if (const auto row = view.input == stages::kNoInput ? 0 : context.input_row(view.input); row != 0) {
      view.axis_strides = stages::strides_to(code->target.dims, code->target, row);
      wide = true;
    }
  std::string why;
  if (wide) LAMINA_CHECK(stages::emit(*code, why), "a program does not fit with other strides: {}", why);
  return std::make_shared<StageProgram>(std::move(code));
}

bool StageProgram::empty() const { return code_->each.empty(); }
std::size_t StageProgram::loops() const { return code_->each.size(); }
const std::vector<std::size_t>& StageProgram::may_overwrite() const { return code_->overwritable; }
const std::vector<std::size_t>& StageProgram::whole_inputs() const { return code_->whole; }

Cost StageProgram::cost(const Machine& machine) const {
  if (empty()) return {};
  const auto& cycles = code_->cycles;
  const double elements = static_cast<double>(code_->total) / kLightCycles;
  return cost_of(machine, Family::vector_light, (cycles.all - cycles.math) * elements, code_->bytes_read) +
         cost_of(machine, Family::stage_math, cycles.math * elements, 0, 0);
}

void StageProgram::add_to(Offer& offer, const Machine& machine) const {
  for (const auto& input : code_->inputs) {
    if (offer.inputs.size() <= input.index) offer.inputs.resize(input.index + 1, Layout::plain);
    offer.inputs[input.index] = input.layout;
    if (input.consumed) offer.consumed.push_back(input.index);
  }
  offer.cost += cost(machine);
}

}  // namespace lamina
