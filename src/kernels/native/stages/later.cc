#include "kernels/list.h"

#include <algorithm>

#include "kernels/cost.h"
#include "kernels/epilogue.h"
#include "kernels/native/stages/code.h"
#include "kernels/native/stages/pass.h"
#include "ops/decompose.h"

namespace lamina {
namespace {

/// A kernel, and the stages behind it on its output.
class LaterStep final : public Step {
 public:
  LaterStep(const Executable& first, const StagePass& pass) : first_(first.step()), pass_(pass) {}
  void bind(const RunArgs& args) override {
    first_->bind(args);
    args_ = args;
  }
  void run() override {
    first_->run();
    pass_.run(args_);
  }

 private:
  std::unique_ptr<Step> first_;
  const StagePass& pass_;
  RunArgs args_{};
};

class LaterExecutable final : public Executable {
 public:
  LaterExecutable(std::unique_ptr<Executable> first, StagePass pass)
      : first_(std::move(first)), pass_(std::move(pass)) {}
  std::unique_ptr<Step> step() const override { return std::make_unique<LaterStep>(*first_, pass_); }

 private:
  std::unique_ptr<Executable> first_;
  StagePass pass_;
};

bool has(const std::vector<std::size_t>& list, std::size_t i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

Cost pass_cost(const NodeView& v) {
  const double bytes = static_cast<double>(element_count(v.out_dims()) * bits_of(v.out_element())) / 8;
  return move_cost(v.machine(), 2 * bytes, 0) + far_cost(v.machine(), bytes);
}

Verdict complete(const NodeView& v, Offer& o) {
  std::string why;
  const auto program = StageProgram::of_later_stages(v, o.stages, o.outputs[0], why);
  if (!program) return Verdict::no("{}", why);
  // They would want the whole output once more: as a node of their own they have that in the arena.
  if (program->code().tile_bytes != program->code().body.result_bytes)
    return Verdict::no("its results have {} bytes instead of {}", program->code().body.result_bytes,
                       program->code().tile_bytes);
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
  if (o.outputs[0] != Layout::channels_last) o.wide_outputs.clear();
  o.stages = SIZE_MAX;
  o.label += "+stages";
  const auto cost = program->cost(v.machine()) + pass_cost(v);
  o.cost += cost;
  const auto rows = Rows::of(v.out_element(), v.out_dims(), o.outputs[0]);
  o.make = [program, us = cost.us(), rows,
            make = std::move(o.make)](MakeContext& context) -> std::unique_ptr<Executable> {
    return std::make_unique<LaterExecutable>(make(context),
                                             StagePass(program, us, context.output(rows), true));
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
      answers.refuse("native", "{}: the stages behind the first {} want a node of their own: {}", offer.label,
                     stages, verdict.reason());
  }
}

}  // namespace lamina
