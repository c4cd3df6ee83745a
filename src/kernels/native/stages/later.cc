#include "kernels/list.h"

#include <algorithm>

#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/epilogue.h"
#include "kernels/native/stages/code.h"
#include "kernels/native/stages/pass.h"
#include "ops/decompose.h"

namespace lamina {
namespace {

/// A kernel, and the stages behind it: on its output or, when results have other bytes, from scratch memory.
struct Later {
  std::unique_ptr<Executable> first;
  StagePass pass;
  std::optional<std::size_t> apart_at;  ///< bytes of the scratch before what the kernel makes
};

class LaterStep final : public Step {
 public:
  explicit LaterStep(const Later& later) : later_(later), first_(later.first->step()) {}
  void bind(const RunArgs& args) override {
    args_ = args;
    values_ = later_.apart_at ? static_cast<std::byte*>(args.scratch) + *later_.apart_at : args.out[0];
    first_->bind({args.in, &values_, args.scratch});
  }
  void run() override {
    first_->run();
    later_.pass.run(args_, values_);
  }

 private:
  const Later& later_;
  std::unique_ptr<Step> first_;
  RunArgs args_{};
  void* values_ = nullptr;
};

class LaterExecutable final : public Executable {
 public:
  explicit LaterExecutable(Later later) : later_(std::move(later)) {}
  std::unique_ptr<Step> step() const override { return std::make_unique<LaterStep>(later_); }

 private:
  Later later_;
};

bool has(const std::vector<std::size_t>& list, std::size_t i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

/// `read`: bytes of an element before.
Cost pass_cost(const NodeView& v, std::size_t read) {
  const auto elements = static_cast<double>(element_count(v.out_dims()));
  const double bytes = elements * bits_of(v.out_element()) / 8;
  return move_cost(v.machine(), elements * static_cast<double>(read) + bytes, 0) +
         far_cost(v.machine(), bytes);
}

Verdict complete(const NodeView& v, Offer& o) {
  if (o.outputs[0] != Layout::plain && o.outputs[0] != Layout::channels_last)
    return Verdict::no("its results lie as {}", name_of(o.outputs[0]));
  std::string why;
  const auto program = StageProgram::of_later_stages(v, o.stages, o.outputs[0], why);
  if (!program) return Verdict::no("{}", why);
  const auto before = inputs_of_stages(v.node(), o.stages);
  for (const auto& input : program->code().inputs) {
    if (input.consumed) continue;
    if (has(before, input.index) && o.inputs[input.index] != input.layout)
      return Verdict::no("it reads input {} in another layout", input.index);
    if (has(o.consumed, input.index)) return Verdict::no("it reads input {}", input.index);
    o.inputs[input.index] = input.layout;
    std::erase(o.wide_inputs, input.index);
    std::erase_if(o.in_place, [&](const InPlace& pair) { return pair.input == input.index; });
  }
  const auto bytes = program->code().tile_bytes;
  std::optional<std::size_t> apart_at;
  if (bytes != program->code().body.result_bytes) {
    apart_at = round_up(o.scratch, 64u);
    o.scratch = *apart_at + element_count(v.out_dims()) * bytes;
    o.in_place.clear();
    o.wide_outputs = {0};
  }
  if (o.outputs[0] != Layout::channels_last) o.wide_outputs.clear();
  o.stages = SIZE_MAX;
  o.label += "+stages";
  const auto cost = program->cost(v.machine()) + pass_cost(v, bytes);
  o.cost += cost;
  const auto rows = Rows::of(v.out_element(), v.out_dims(), o.outputs[0]);
  o.make = [program, us = cost.us(), rows, apart_at,
            make = std::move(o.make)](MakeContext& context) -> std::unique_ptr<Executable> {
    const StagePass pass(program->made(context), us, context.output(rows));
    if (apart_at) context.output_rows.clear();  // what the kernel makes is dense
    return std::make_unique<LaterExecutable>(Later{make(context), pass, apart_at});
  };
  return Verdict::yes();
}

}  // namespace

void add_later_stages(const NodeView& v, Answers& answers) {
  const auto size = epilogue_size(v.node());
  if (size == 0 || v.outputs() != 1 || element_count(v.out_dims()) == 0) return;
  for (auto& offer : answers.offers) {
    if (offer.stages >= size || offer.is_view) continue;
    const auto stages = offer.stages;
    if (const auto verdict = complete(v, offer); !verdict)
      answers.refuse("native", "{}: the stages after the first {} need a node of their own: {}", offer.label,
                     stages, verdict.reason());
  }
}

}  // namespace lamina
