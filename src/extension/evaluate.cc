/// A library's operation on plain tensors: as the interpreter runs it, and where a shape depends on values.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "extension/arrange.h"
#include "extension/kernel.h"
#include "ops/eval.h"

namespace lamina {
namespace {

const DeclaredOperation& declared(const KernelNode& node) { return custom_op(node.op)->declared(); }

/// The first form that takes the node, a plain one where there is one.
std::optional<KernelForm> usable_form(const KernelNode& node) {
  std::optional<KernelForm> found;
  for (std::size_t c = 0; c < declared(node).configurations.size(); ++c) {
    auto forms = forms_of(node, c).forms;
    if (forms.empty() || !accepted(node, c)) continue;
    for (auto& form : forms) {
      if (std::all_of(form.in.begin(), form.in.end(), [](auto layout) { return layout == LAMINA_PLAIN; }))
        return form;
      if (!found) found = std::move(form);
    }
  }
  return found;
}

Tensor memory_of(const KnownTensor& known, std::int32_t layout) {
  if (layout == LAMINA_PLAIN) return Tensor(known.type.element, known.type.shape.sizes());
  return Tensor(ElementType::u8,
                {static_cast<std::int64_t>(bytes_in(known.type.element, known.type.shape.sizes(), layout))});
}

Tensor arranged(const Tensor& plain, std::int32_t layout) {
  if (layout == LAMINA_PLAIN || !plain.valid()) return plain;
  Tensor out(ElementType::u8,
             {static_cast<std::int64_t>(bytes_in(plain.element_type(), plain.shape(), layout))});
  arrange(plain.element_type(), plain.shape(), layout, plain.raw(), out.raw());
  return out;
}

Tensor by_elements(const KernelNode& node, const Tensor& in) {
  const ElementwiseKernel kernel(node.op, node.label, Shape::of(in.shape()));
  const Tensor source = convert(in.to_aligned(), ElementType::f32);
  Tensor out(ElementType::f32, in.shape());
  if (in.size() != 0) kernel(source.data<float>().data(), out.data<float>().data(), in.size());
  return convert(out, in.element_type());
}

}  // namespace

bool computes_in_f32(const KernelNode& node) {
  const auto type = node.in.empty() ? ElementType::undefined : node.in[0].type.element;
  return declared(node).calls.elementwise &&
         (type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16);
}

Dims known_sizes(const CustomKernel& kernel, std::size_t output) {
  const auto& type = kernel.node().out[output].type;
  if (!type.shape.known())
    fail(ErrorCode::extension, "{}: infer: output {} is {} though all inputs are known", kernel.where(),
         output, to_string(type));
  return type.shape.sizes();
}

void check_allocation(const CustomKernel& kernel, std::size_t output, const Dims& dims, bool again) {
  const auto& out = kernel.node().out;
  if (output >= out.size()) fail(ErrorCode::extension, "allocate_output: there is no output {}", output);
  if (again) fail(ErrorCode::extension, "allocate_output: output {} has its memory already", output);
  const auto& inferred = out[output].type.shape;
  if (!inferred.fits(Shape::of(dims)))
    fail(ErrorCode::extension, "allocate_output: output {} is {}, infer says {}", output, to_string(dims),
         to_string(inferred));
}

std::vector<Tensor> run_form(const CustomKernel& kernel, const Tensor& prepared,
                             const std::vector<Tensor>& in) {
  const auto& node = kernel.node();
  const auto& form = kernel.form();
  const bool allocates = kernel.op().declared().has(LAMINA_SHAPE_AFTER_RUN);
  const auto consumed = prepared.valid() ? kernel.prepared_inputs() : std::vector<std::size_t>{};
  std::vector<Tensor> memory, results(node.out.size());
  std::vector<const void*> in_pointers;
  std::vector<void*> out_pointers(node.out.size(), nullptr);
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    const bool read = std::find(consumed.begin(), consumed.end(), i) == consumed.end();
    memory.push_back(read ? arranged(in[i].valid() ? in[i].to_aligned() : in[i], form.in[i]) : Tensor());
    in_pointers.push_back(memory.back().raw());
  }
  CustomCall call(kernel, prepared);
  for (std::size_t i = 0; i < results.size() && !allocates; ++i) {
    known_sizes(kernel, i);
    results[i] = memory_of(node.out[i], form.out[i]);
    out_pointers[i] = results[i].raw();
  }
  if (allocates)
    call.context().allocate = [&](std::size_t i, const Dims& dims) -> void* {
      check_allocation(kernel, i, dims, i < results.size() && results[i].valid());
      results[i] = Tensor(node.out[i].type.element, dims);
      call.out(i).resize(dims);
      call.out(i).point(results[i].raw());
      return results[i].raw();
    };
  const auto bytes = kernel.scratch();
  Tensor scratch(ElementType::u8, {static_cast<std::int64_t>(bytes)});
  call.bind(in_pointers.data(), out_pointers.data(), scratch.raw(), bytes);
  call.run();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].valid())
      fail(ErrorCode::extension, "{}: run: output {} was not allocated", kernel.where(), i);
    if (form.out[i] == LAMINA_PLAIN) continue;
    Tensor plain(node.out[i].type.element, node.out[i].type.shape.sizes());
    make_plain(plain.element_type(), plain.shape(), form.out[i], results[i].raw(), plain.raw());
    results[i] = std::move(plain);
  }
  return results;
}

std::vector<Tensor> run_custom(KernelNode node, const std::vector<Tensor>& in,
                               const std::vector<TensorType>& out, bool kernel) {
  const auto& op = declared(node);
  for (const auto& t : in)
    node.in.push_back(t.valid() ? KnownTensor{true, {t.element_type(), Shape::of(t.shape())}, t.to_aligned()}
                                : KnownTensor{false, {}, {}});
  for (const auto& type : out) node.out.push_back({true, type, {}});
  std::optional<KernelForm> form;
  if (!kernel && op.calls.reference) form = reference_form(node);
  if (!form) form = usable_form(node);
  if (!form && op.calls.reference) form = reference_form(node);
  if (!form && computes_in_f32(node)) return {by_elements(node, in.at(0))};
  if (!form)
    fail(ErrorCode::unsupported, "{}: no configuration takes the node: {}", op.origin.name,
         mismatches_of(node));
  const CustomKernel made(std::move(node), std::move(*form));
  const auto prepared = made.prepared_inputs().empty() ? Tensor() : made.prepare();
  return run_form(made, prepared, in);
}

}  // namespace lamina
