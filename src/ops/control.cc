#include "ops/control.h"

#include "base/error.h"
#include "graph/op_model.h"
#include "ops/bodies.h"
#include "ops/operators.h"

namespace lamina {

using namespace control;

void If::infer(InferContext& c) const {
  require_condition(c, 0);
  c.require(c.bodies().size() == 2, "{} bodies, wanted 2", c.bodies().size());
  for (const auto& body : c.bodies())
    c.require(body.results().size() == c.outputs(), "a body has {} results, wanted {}", body.results().size(),
              c.outputs());
  std::vector<TensorType> captured;
  for (std::size_t i = 1; i < c.inputs(); ++i) captured.push_back(c.type(i));
  if (const auto condition = c.ints(0); condition && condition->size() == 1) {
    const auto types = types_of_results(c, c.bodies()[condition->front() != 0 ? 0 : 1], captured);
    for (std::size_t i = 0; i < types.size(); ++i) c.set(i, types[i]);
    return;
  }
  // A branch whose shapes do not fit is one that is never taken; the other one says what comes out.
  std::vector<std::vector<TensorType>> found;
  std::string problem;
  for (const auto& body : c.bodies()) {
    try {
      found.push_back(types_of_results(c, body, captured));
    } catch (const Error& e) {
      if (ends_the_work(e.code())) throw;
      problem = e.what();
    }
  }
  c.require(!found.empty(), "neither branch can be run: {}", problem);
  for (std::size_t i = 0; i < c.outputs(); ++i)
    c.set(i, common_type(c, found.front()[i], found.back()[i], fmt::format("output {}", i)));
}

void If::evaluate(EvalContext& c) const {
  std::vector<Tensor> captured;
  for (std::size_t i = 1; i < c.inputs(); ++i) captured.push_back(c.in(i));
  auto results = c.run(c.bodies()[is_true(c.in(0)) ? 0 : 1], captured);
  for (std::size_t i = 0; i < c.outputs(); ++i) c.set(i, std::move(results.at(i)));
}

void ReadValue::infer(InferContext& c) const {
  if (!c.has(0)) return c.set(0, variable_type, variable_shape);
  const bool declared = variable_type != ElementType::undefined;
  if (!declared && !variable_shape.ranked()) return c.set(0, c.type(0));
  c.require(!declared || c.element(0) == ElementType::undefined || c.element(0) == variable_type,
            "variable \"{}\" has type {}, its initial value {}", variable_id, name_of(variable_type),
            name_of(c.element(0)));
  c.require(variable_shape.fits(c.shape(0)), "variable \"{}\" has shape {}, its initial value {}",
            variable_id, to_string(variable_shape), to_string(c.shape(0)));
  // Later values may have other sizes than the first one.
  c.set(0, declared ? variable_type : c.element(0), variable_shape);
}

void ReadValue::evaluate(EvalContext& c) const {
  if (c.has(0)) return c.set(0, c.in(0));
  if (variable_type == ElementType::undefined || !variable_shape.ranked())
    fail(ErrorCode::unsupported, "variable \"{}\" has neither an initial value nor a type and a rank",
         variable_id);
  Dims dims;
  for (const auto& d : variable_shape.dims()) dims.push_back(d.known() ? d.size() : 0);
  c.set(0, Tensor(variable_type, dims));
}

void Assign::infer(InferContext& c) const { c.set(0, c.type(0)); }
void Assign::evaluate(EvalContext& c) const { c.set(0, c.in(0)); }

void Opaque::infer(InferContext&) const {}

void Opaque::evaluate(EvalContext&) const {
  fail(ErrorCode::unsupported, "operator \"{}\"{} is not known", type,
       domain.empty() ? "" : " of \"" + domain + "\"");
}

void register_control(Registry& r) {
  r.add<If>();
  r.add<Loop>();
  r.add<ReadValue>();
  r.add<Assign>();
  r.add<Opaque>();
}

}  // namespace lamina
