#include "exec/single_step.h"

#include <tbb/task_arena.h>

namespace lamina {
std::vector<Tensor> run_single_step(const Plan& plan, const PlanStep& step,
                                    const std::vector<Tensor>& inputs) {
  if (!step.code) return {};
  std::vector<Tensor> in, out, results;
  tbb::task_arena arena(plan.threads);
  arena.execute([&] {
    std::vector<const void*> in_pointers;
    std::vector<void*> out_pointers;
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      if (step.in[i] == kNoTensor) {
        in.emplace_back();
      } else {
        const auto& t = plan.tensors[step.in[i]];
        in.push_back(t.place == Place::constant
                         ? t.constant
                         : reordered(inputs.at(i).to_aligned(), Layout::plain, t.layout));
      }
      in_pointers.push_back(in.back().raw());
    }
    for (const auto t : step.out) {
      const auto& type = plan.tensors[t].type;
      out.emplace_back(type.element, type.shape.sizes());
      out_pointers.push_back(out.back().raw());
    }
    Tensor scratch(ElementType::u8, {static_cast<std::int64_t>(step.scratch)});
    const auto bound = step.code->step();
    bound->bind({in_pointers.data(), out_pointers.data(), scratch.raw()});
    bound->run();
    for (std::size_t i = 0; i < out.size(); ++i)
      results.push_back(reordered(out[i], plan.tensors[step.out[i]].layout, Layout::plain));
  });
  return results;
}

}  // namespace lamina
