#include "extension/guarded_run.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "extension/arrange.h"

namespace lamina {

Trial GuardedRun::run(std::byte fill, const Pair* pair) {
  Trial trial;
  prepare();
  place_inputs();
  place_outputs(fill, pair);
  GuardedMemory scratch("the scratch memory", kernel_.scratch());
  CustomCall call(kernel_,
                  prepared_ ? Tensor::wrap(ElementType::u8, {static_cast<std::int64_t>(prepared_->bytes())},
                                           static_cast<const void*>(prepared_->data()))
                            : Tensor());
  if (allocates()) let_allocate(call, fill);
  call.bind(in_pointers_.data(), out_pointers_.data(), scratch.data(), scratch.bytes());
  call.run();
  if (call.context().rounding_changed) trial.problem = "changes the rounding mode of floating-point numbers";
  note_writes(trial, scratch, pair);
  note_padding(trial, fill);
  for (std::size_t i = 0; i < kernel_.node().out.size(); ++i) trial.outputs.push_back(output(i));
  return trial;
}

void GuardedRun::prepare() {
  if (prepared_ || kernel_.prepared_inputs().empty()) return;
  prepared_ = std::make_unique<GuardedMemory>("the prepared block", kernel_.prepared_bytes());
  kernel_.prepare_into(prepared_->data());
}

void GuardedRun::place_inputs() {
  const auto consumed = kernel_.prepared_inputs();
  in_memory_.clear();
  in_pointers_.assign(in_.size(), nullptr);
  for (std::size_t i = 0; i < in_.size(); ++i) {
    const bool read = std::find(consumed.begin(), consumed.end(), i) == consumed.end();
    in_memory_.push_back(nullptr);
    if (!in_[i].valid() || !read) continue;
    const auto layout = kernel_.form().in[i];
    in_memory_[i] = std::make_unique<GuardedMemory>(fmt::format("input {}", i),
                                                    bytes_in(in_[i].element_type(), in_[i].shape(), layout));
    arrange(in_[i].element_type(), in_[i].shape(), layout, in_[i].raw(), in_memory_[i]->data());
    in_pointers_[i] = in_memory_[i]->data();
  }
}

void GuardedRun::place_outputs(std::byte fill, const Pair* pair) {
  const auto& out = kernel_.node().out;
  out_memory_.clear();
  out_memory_.resize(out.size());
  out_pointers_.assign(out.size(), nullptr);
  types_.clear();
  for (std::size_t i = 0; i < out.size(); ++i) {
    types_.push_back(out[i].type);
    if (allocates()) continue;
    if (pair && pair->second == i) {
      out_pointers_[i] = in_memory_[pair->first]->data();
      continue;
    }
    place_output(i, known_sizes(kernel_, i), kernel_.form().out[i], fill);
  }
}

void* GuardedRun::place_output(std::size_t i, const Dims& dims, std::int32_t layout, std::byte fill) {
  types_[i].shape = Shape::of(dims);
  out_memory_[i] =
      std::make_unique<GuardedMemory>(fmt::format("output {}", i), bytes_in(types_[i].element, dims, layout));
  std::fill_n(out_memory_[i]->data(), out_memory_[i]->bytes(), fill);
  return out_pointers_[i] = out_memory_[i]->data();
}

void GuardedRun::let_allocate(CustomCall& call, std::byte fill) {
  call.context().allocate = [this, &call, fill](std::size_t i, const Dims& dims) -> void* {
    check_allocation(kernel_, i, dims, i < out_memory_.size() && out_memory_[i]);
    call.out(i).resize(dims);
    void* const memory = place_output(i, dims, LAMINA_PLAIN, fill);
    call.out(i).point(memory);
    return memory;
  };
}

void GuardedRun::note_writes(Trial& trial, const GuardedMemory& scratch, const Pair* pair) const {
  const auto note = [&](const std::string& fault) {
    if (trial.problem.empty()) trial.problem = fault;
  };
  for (const auto* list : {&in_memory_, &out_memory_})
    for (const auto& memory : *list)
      if (memory) note(memory->fault());
  note(scratch.fault());
  if (prepared_) note(prepared_->fault());
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (!in_memory_[i] || (pair && pair->first == i)) continue;
    std::vector<std::byte> wanted(in_memory_[i]->bytes());
    arrange(in_[i].element_type(), in_[i].shape(), kernel_.form().in[i], in_[i].raw(), wanted.data());
    if (!wanted.empty() && std::memcmp(wanted.data(), in_memory_[i]->data(), wanted.size()) != 0)
      note(fmt::format("writes to input {}", i));
  }
}

/// What is behind the last channel may be left as it was, or made zero.
void GuardedRun::note_padding(Trial& trial, std::byte fill) const {
  for (std::size_t i = 0; i < types_.size(); ++i)
    if (trial.problem.empty() && out_pointers_[i] &&
        !padding_is(types_[i].element, types_[i].shape.sizes(), kernel_.form().out[i], out_pointers_[i],
                    fill))
      trial.problem = fmt::format("writes something other than zero after the last channel of output {}", i);
}

Tensor GuardedRun::output(std::size_t i) const {
  if (!out_pointers_[i]) fail(ErrorCode::extension, "output {} was not allocated", i);
  Tensor out(types_[i].element, types_[i].shape.sizes());
  make_plain(types_[i].element, out.shape(), kernel_.form().out[i], out_pointers_[i], out.raw());
  return out;
}

}  // namespace lamina
