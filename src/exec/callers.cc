#include "exec/callers.h"

#include <algorithm>

namespace lamina {

bool overlap(const Tensor& a, const Tensor& b) {
  return a.valid() && b.valid() && a.raw() < b.raw() + b.bytes() && b.raw() < a.raw() + a.bytes();
}

CallersTensors::CallersTensors(std::shared_ptr<const Program> program) : program_(std::move(program)) {
  inputs_.resize(program_->graph().inputs().size());
  results_.resize(program_->graph().results().size());
}

void CallersTensors::set_input(std::size_t index, Tensor tensor) {
  if (tensor.valid()) check_input(program_->graph(), program_->graph().inputs().at(index), tensor);
  inputs_.at(index) = std::move(tensor);
  apart_ = false;
}

void CallersTensors::set_result(std::size_t index, Tensor tensor) {
  if (tensor.valid()) check_memory(index, tensor);
  results_.at(index) = std::move(tensor);
  apart_ = false;
}

/// What is known of memory for a result before a run.
void CallersTensors::check_memory(std::size_t r, const Tensor& memory) const {
  const auto& result = program_->graph().results().at(r);
  const auto& type = program_->graph().type(result.value);
  require_fit("output", result.name, memory, type);
  if (memory.read_only() || !memory.aligned())
    fail(ErrorCode::bad_input, "output \"{}\": {}{} {}, wanted {}", result.name,
         name_of(memory.element_type()), to_string(memory.shape()),
         memory.read_only() ? "in memory that is only to be read"
                            : "at an address that does not suit its type",
         to_string(type));
}

void CallersTensors::check() {
  const auto& machine = program_->machine();
  if (!machine.here)
    fail(ErrorCode::unsupported, "planned for another machine (\"{}\"): it runs there", machine.name);
  for (std::size_t i = 0; i < program_->model_inputs(); ++i)
    if (!inputs_[i].valid()) check_input(program_->graph(), program_->graph().inputs()[i], inputs_[i]);
  if (apart_) return;
  check_overlaps();
  apart_ = true;
}

void CallersTensors::check_overlaps() const {
  const auto& graph = program_->graph();
  for (std::size_t r = 0; r < results_.size(); ++r) {
    const auto refuse = [&](const char* what, const std::string& name) {
      fail(ErrorCode::bad_input, "output \"{}\" overlaps {} \"{}\", wanted memory of its own",
           graph.results()[r].name, what, name);
    };
    for (std::size_t i = 0; i < program_->model_inputs(); ++i)
      if (lamina::overlap(results_[r], inputs_[i])) refuse("input", graph.value(graph.inputs()[i]).name);
    for (std::size_t other = 0; other < r; ++other)
      if (lamina::overlap(results_[r], results_[other])) refuse("output", graph.results()[other].name);
  }
}

bool CallersTensors::overlap(const Tensor& memory) const {
  const auto with = [&](const Tensor& t) { return lamina::overlap(memory, t); };
  return std::any_of(inputs_.begin(), inputs_.end(), with) ||
         std::any_of(results_.begin(), results_.end(), with);
}

void check_result_memory(const Program& program, std::size_t r, const Tensor& memory,
                         const TensorType& wanted) {
  if (memory.valid() && !fits(wanted, memory))
    fail(ErrorCode::bad_input, "output \"{}\": {}{} given, wanted {}", program.graph().results()[r].name,
         name_of(memory.element_type()), to_string(memory.shape()), to_string(wanted));
}

bool KnownInputs::same(const Program& program, const std::vector<Tensor>& inputs) {
  bool same = true;
  known_.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto& known = known_[i];
    const auto& t = inputs[i];
    if (t.element_type() != known.type || t.shape() != known.shape) {
      same = false;
      known.type = t.element_type();
      known.shape = t.shape();
    }
    if (program.depends_on_values(i) && !(known.values.valid() && known.values.same_as(t))) {
      same = false;
      known.values = t.clone();
    }
  }
  return same;
}

}  // namespace lamina
