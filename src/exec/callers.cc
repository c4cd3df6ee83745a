#include "exec/callers.h"

#include <algorithm>
#include <functional>

namespace lamina {

CallersTensors::CallersTensors(std::shared_ptr<const Program> program) : program_(std::move(program)) {
  inputs_.resize(program_->graph().inputs().size());
  results_.resize(program_->graph().results().size());
}

void CallersTensors::set_input(std::size_t index, Tensor tensor) {
  if (tensor.valid()) check_input(program_->graph(), program_->graph().inputs().at(index), tensor);
  inputs_.at(index) = std::move(tensor);
  apart_ = sorted_ = false;
}

void CallersTensors::set_result(std::size_t index, Tensor tensor) {
  if (tensor.valid()) check_memory(index, tensor);
  results_.at(index) = std::move(tensor);
  apart_ = sorted_ = false;
}

/// Checks what is known before a run about the memory for a result.
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

void CallersTensors::refuse_overlap(const Occupied& a, const Occupied& b) const {
  const auto& graph = program_->graph();
  const bool two_results = a.is_result && b.is_result;
  const auto result = two_results ? std::max(a.index, b.index) : a.is_result ? a.index : b.index;
  const auto other = two_results ? std::min(a.index, b.index) : a.is_result ? b.index : a.index;
  fail(ErrorCode::bad_input, "output \"{}\" overlaps {} \"{}\", wanted memory of its own",
       graph.results()[result].name, two_results ? "output" : "input",
       two_results ? graph.results()[other].name : graph.value(graph.inputs()[other]).name);
}

/// The memory of inputs and results in the order of addresses, so that the check for overlaps does not take
/// quadratic time.
const std::vector<CallersTensors::Occupied>& CallersTensors::occupied() const {
  if (sorted_) return occupied_;
  occupied_.clear();
  const auto add = [&](const Tensor& t, bool is_result, std::size_t index) {
    if (t.valid() && t.bytes() != 0)
      occupied_.push_back({t.raw(), t.raw() + t.bytes(), nullptr, is_result, index});
  };
  for (std::size_t r = 0; r < results_.size(); ++r) add(results_[r], true, r);
  for (std::size_t i = 0; i < inputs_.size(); ++i) add(inputs_[i], false, i);
  const std::less<const std::byte*> before;
  std::sort(occupied_.begin(), occupied_.end(),
            [&](const Occupied& a, const Occupied& b) { return before(a.begin, b.begin); });
  const std::byte* reach = nullptr;
  for (auto& o : occupied_) o.reach = reach = !reach || before(reach, o.end) ? o.end : reach;
  sorted_ = true;
  return occupied_;
}

/// Throws if a result overlaps another result or an input. Inputs may overlap each other.
void CallersTensors::check_overlaps() const {
  const Occupied *input = nullptr, *result = nullptr;  // that ends last so far
  for (const auto& o : occupied()) {
    if (!o.is_result && o.index >= program_->model_inputs()) continue;
    if (result && result->end > o.begin) refuse_overlap(*result, o);
    if (o.is_result && input && input->end > o.begin) refuse_overlap(*input, o);
    const auto*& last = o.is_result ? result : input;
    if (!last || o.end > last->end) last = &o;
  }
}

bool CallersTensors::overlap(const Tensor& memory) const {
  if (!memory.valid() || memory.bytes() == 0) return false;
  const auto& all = occupied();
  const std::less<const std::byte*> before;
  const auto behind = std::partition_point(all.begin(), all.end(), [&](const Occupied& o) {
    return before(o.begin, memory.raw() + memory.bytes());
  });
  return behind != all.begin() && before(memory.raw(), std::prev(behind)->reach);
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
