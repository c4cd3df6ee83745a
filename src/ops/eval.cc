#include "ops/eval.h"

#include <algorithm>

namespace lamina {

EvalContext::EvalContext(const Node& node, const std::vector<Tensor>& inputs, RunBody run_body)
    : node_(node), inputs_(inputs), run_body_(std::move(run_body)) {
  InferContext infer(node, inputs);
  node.op->infer(infer);
  out_types_ = std::move(infer.result());
  out_.resize(out_types_.size());
  for (std::size_t i = 0; i < out_.size(); ++i)
    if (out_types_[i].element != ElementType::undefined && out_types_[i].shape.known())
      out_[i] = Tensor(out_types_[i].element, out_types_[i].shape.sizes());
}

bool EvalContext::nothing_to_compute() const {
  if (out_.empty() || node_.op.has(Trait::impure)) return false;
  return std::all_of(out_.begin(), out_.end(), [](const Tensor& t) { return t.valid() && t.size() == 0; });
}

const Tensor& EvalContext::in(std::size_t i) const {
  if (!has(i)) fail(ErrorCode::bad_input, "input {} is missing", i);
  return inputs_[i];
}

template <class T>
std::vector<T> EvalContext::numbers(std::size_t i) const {
  return to_numbers<T>(in(i));
}
template std::vector<double> EvalContext::numbers(std::size_t) const;
template std::vector<float> EvalContext::numbers(std::size_t) const;
template std::vector<std::int64_t> EvalContext::numbers(std::size_t) const;
template std::vector<std::uint64_t> EvalContext::numbers(std::size_t) const;

std::vector<double> EvalContext::doubles(std::size_t i) const { return to_doubles(in(i)); }
std::vector<float> EvalContext::floats(std::size_t i) const { return to_floats(in(i)); }
Ints EvalContext::ints(std::size_t i) const {
  return is_float(in(i).element_type()) ? numbers<std::int64_t>(i) : to_ints(in(i));
}

Tensor& EvalContext::out(std::size_t i) {
  LAMINA_CHECK(out_.at(i).valid(), "output {} of {} has no shape yet", i, node_.op.name());
  return out_[i];
}

Tensor& EvalContext::allocate(std::size_t i, const Dims& shape) {
  return out_.at(i) = Tensor(out_types_.at(i).element, shape);
}

void EvalContext::store(std::size_t i, const std::vector<double>& values) { write_numbers(out(i), values); }
void EvalContext::store(std::size_t i, const std::vector<float>& values) { write_numbers(out(i), values); }
void EvalContext::store(std::size_t i, const Ints& values) { write_numbers(out(i), values); }
void EvalContext::store(std::size_t i, const std::vector<std::uint64_t>& values) {
  write_numbers(out(i), values);
}

std::vector<Tensor> evaluate_node(const Node& node, const std::vector<Tensor>& inputs,
                                  const RunBody& run_body) {
  std::vector<Tensor> aligned(inputs);
  for (auto& t : aligned)
    if (t.valid()) t = t.to_aligned();
  const auto base = base_inputs(node);
  EvalContext context(node, aligned, run_body);
  if (!context.nothing_to_compute()) node.op->evaluate(context);
  auto results = std::move(context.results());
  if (const Graph* body = epilogue(node)) {
    std::vector<Tensor> parameters{results.at(0)};
    parameters.insert(parameters.end(), aligned.begin() + static_cast<std::ptrdiff_t>(base), aligned.end());
    results[0] = run_body(*body, parameters).at(0);
  }
  return results;
}

}  // namespace lamina
