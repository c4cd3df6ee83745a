#include "exec/variable_memory.h"

#include <algorithm>
#include <cstring>

#include "base/shape_only.h"
#include "exec/runner.h"

namespace lamina {
namespace {

/// Initial values of inputs that stand for their shapes only.
std::vector<Tensor> computed_shapes(const Program& program, const std::vector<Tensor>& inputs) {
  const Graph known = specialise(program.initial_values()->graph(), inputs, {});
  std::vector<Tensor> out;
  for (const auto& r : known.results()) {
    const auto& type = known.type(r.value);
    if (!type.shape.known())
      fail(ErrorCode::bad_input, "variable \"{}\": the shape of its initial value is known at run time only",
           r.name);
    out.push_back(shape_only(type.element, type.shape.sizes()));
  }
  return out;
}

/// Initial values of variables that are no constants.
std::vector<Tensor> computed_values(const std::shared_ptr<const Program>& program,
                                    const std::vector<Tensor>& inputs) {
  if (std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return !t.raw() && t.bytes() != 0; }))
    return computed_shapes(*program, inputs);
  Runner runner(program->initial_values());
  for (std::size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
  runner.run();
  std::vector<Tensor> out;
  for (const auto& v : program->variables()) {
    if (v.initial.valid()) continue;
    out.push_back(runner.output(v.computed).clone());
    require_fit("variable", v.name, out.back(), v.type);
  }
  return out;
}

void put_values(const std::shared_ptr<const Program>& program, const std::vector<Tensor>& kept,
                std::vector<Tensor>& inputs) {
  const auto& variables = program->variables();
  const auto first = program->model_inputs();
  std::vector<Tensor> computed;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto& known = kept[i].valid() ? kept[i] : variables[i].initial;
    if (!known.valid() && computed.empty())
      computed = computed_values(program, {inputs.begin(), inputs.begin() + std::ptrdiff_t(first)});
    inputs[first + i] = known.valid() ? known : computed[variables[i].computed];
  }
}

}  // namespace

std::vector<Tensor> with_variables(const std::shared_ptr<const Program>& program, std::vector<Tensor> inputs,
                                   const VariableValues& kept) {
  std::vector<Tensor> values;
  for (const auto& v : program->variables()) {
    const auto it = kept.find(v.name);
    values.push_back(it == kept.end() ? Tensor() : it->second);
  }
  inputs.resize(program->model_inputs() + values.size());
  put_values(program, values, inputs);
  return inputs;
}

VariableMemory::VariableMemory(std::shared_ptr<const Program> program)
    : program_(std::move(program)), kept_(program_->variables().size()), fresh_(kept_.size()) {}

Tensor VariableMemory::get(std::size_t index) const {
  const auto& kept = kept_.at(index);
  return (kept.valid() ? kept : program_->variables()[index].initial).clone();
}

void VariableMemory::set(std::size_t index, const Tensor& value) {
  const auto& variable = program_->variables().at(index);
  require_fit("variable", variable.name, value, variable.type);
  kept_.at(index) = value.clone();
}

void VariableMemory::reset() {
  for (auto& kept : kept_) kept = Tensor();
}

void VariableMemory::begin(std::vector<Tensor>& inputs) const { put_values(program_, kept_, inputs); }

void VariableMemory::keep(const std::vector<Tensor>& results) {
  const auto& variables = program_->variables();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    fresh_[i] = Tensor();  // of a call that threw
    if (!variables[i].result) continue;
    const auto& value = results[*variables[i].result];
    const auto& kept = kept_[i];
    if (kept.valid() && kept.element_type() == value.element_type() && kept.shape() == value.shape())
      continue;
    require_fit("variable", variables[i].name, value, variables[i].type);
    fresh_[i] = value.clone();
  }
  // From here on nothing can fail.
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].result) continue;
    const auto& value = results[*variables[i].result];
    if (fresh_[i].valid())
      kept_[i] = std::exchange(fresh_[i], Tensor());
    else if (value.bytes() != 0)
      std::memcpy(kept_[i].raw(), value.raw(), value.bytes());
  }
}

}  // namespace lamina
