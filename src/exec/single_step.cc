#include "exec/single_step.h"

#include <cstring>

#include "base/arena.h"
#include "ops/movement.h"

namespace lamina {
namespace {

/// Number of pixels of a tensor that may have no channels.
std::int64_t pixels_of(Dims dims) {
  dims[1] = 1;
  return static_cast<std::int64_t>(element_count(dims));
}

/// Memory for a tensor of the plan: dense, or in rows apart as the step expects it.
Tensor memory_for(const PlanTensor& t) {
  if (packing_of(t.layout))
    return Tensor(ElementType::u8,
                  {static_cast<std::int64_t>(memory_bytes(t.type.element, t.type.shape.sizes(), t.layout))});
  if (t.row == 0) return Tensor(t.type.element, t.type.shape.sizes());
  return Tensor(t.type.element, {pixels_of(t.type.shape.sizes()), t.row});
}

/// Copies between a dense channels-last tensor and rows of a wider one.
void copy_rows(const PlanTensor& t, std::byte* dense, std::byte* rows, bool to_rows) {
  const auto bytes = static_cast<std::size_t>(bits_of(t.type.element) / 8);
  const auto dims = t.type.shape.sizes();
  const auto line = static_cast<std::size_t>(dims[1]) * bytes, step = static_cast<std::size_t>(t.row) * bytes;
  for (std::size_t p = 0, count = static_cast<std::size_t>(pixels_of(dims)); p < count; ++p)
    std::memcpy(to_rows ? rows + p * step : dense + p * line, to_rows ? dense + p * line : rows + p * step,
                line);
}

Tensor arranged(const PlanTensor& t, const Tensor& plain) {
  Tensor dense = laid_out(plain.to_aligned(), t.layout);
  if (t.row == 0) return dense;
  Tensor rows = memory_for(t);
  copy_rows(t, dense.raw(), rows.raw(), true);
  return rows;
}

Tensor plain(const PlanTensor& t, Tensor memory) {
  if (t.row != 0) {
    Tensor dense(t.type.element, t.type.shape.sizes());
    copy_rows(t, dense.raw(), memory.raw(), false);
    memory = dense;
  }
  return plain_of(memory, t.type.element, t.type.shape.sizes(), t.layout);
}

/// A copy of the values at `shift` elements after an aligned address.
Tensor shifted(const Tensor& t, std::size_t shift) {
  const auto bytes = shift * static_cast<std::size_t>(bits_of(t.element_type()) / 8);
  if (bytes == 0) return t;
  const auto memory =
      std::make_shared<Tensor>(ElementType::u8, Dims{static_cast<std::int64_t>(bytes + t.bytes())});
  std::memcpy(memory->raw() + bytes, t.raw(), t.bytes());
  return Tensor::share(t.element_type(), t.shape(), memory, memory->raw() + bytes);
}

/// True if the tensor is a part of the other one, or all of it.
bool lies_in(const PlanTensor& t, const PlanTensor& whole) {
  if (t.root != whole.root || t.shift < whole.shift) return false;
  const auto at = t.shift - whole.shift;
  if (t.row == 0) return at + t.bytes <= whole.bytes;
  const auto line = [&](const PlanTensor& of) {
    return static_cast<std::size_t>(of.type.shape.sizes()[1] * bits_of(of.type.element) / 8);
  };
  return at + line(t) <= line(whole);
}

/// Parts of a Concat that other steps wrote are there before the step runs. One that it copies may lie in
/// another place of a tensor around both.
void write_parts(const Plan& plan, const PlanStep& step, const std::vector<Tensor>& inputs, Tensor& whole) {
  const auto& out = plan.tensors[step.out[0]];
  for (std::size_t i = 0; i < step.in.size(); ++i) {
    if (step.in[i] == kNoTensor) continue;
    const auto& t = plan.tensors[step.in[i]];
    if (!lies_in(t, out) || !plan.graph.node(step.node).op.is<Concat>()) continue;
    const Tensor part = arranged(t, inputs.at(i));
    auto* const at = whole.raw() + (t.shift - out.shift);
    if (t.row == 0) {
      std::memcpy(at, part.raw(), part.bytes());
      continue;
    }
    const auto bytes = static_cast<std::size_t>(bits_of(t.type.element) / 8);
    const auto line = static_cast<std::size_t>(t.type.shape.sizes()[1]) * bytes;
    const auto row = static_cast<std::size_t>(t.row) * bytes;
    for (std::size_t at_row = 0; at_row < part.bytes(); at_row += row)
      std::memcpy(at + at_row, part.raw() + at_row, line);
  }
}

}  // namespace

std::vector<Tensor> run_single_step(const Plan& plan, const PlanStep& step, const std::vector<Tensor>& inputs,
                                    std::size_t shift) {
  if (!step.code) return {};
  std::vector<Tensor> in, out, results;
  on_threads(plan.threads, [&] {
    std::vector<const void*> in_pointers;
    std::vector<void*> out_pointers;
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      if (step.in[i] == kNoTensor) {
        in.emplace_back();
      } else {
        const auto& t = plan.tensors[step.in[i]];
        in.push_back(t.place == Place::constant ? t.constant : shifted(arranged(t, inputs.at(i)), shift));
      }
      in_pointers.push_back(in.back().raw());
    }
    for (const auto t : step.out) {
      out.push_back(shifted(memory_for(plan.tensors[t]), shift));
      out_pointers.push_back(out.back().raw());
    }
    if (step.kind == PlanStep::Kind::kernel && out.size() == 1) write_parts(plan, step, inputs, out[0]);
    Tensor scratch(ElementType::u8, {static_cast<std::int64_t>(step.scratch)});
    const auto bound = step.code->step();
    bound->bind({in_pointers.data(), out_pointers.data(), scratch.raw()});
    bound->run();
    for (std::size_t i = 0; i < out.size(); ++i) results.push_back(plain(plan.tensors[step.out[i]], out[i]));
  });
  return results;
}

}  // namespace lamina
