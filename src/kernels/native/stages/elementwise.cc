/// Element-wise nodes and chains of them in one pass over memory; see program.h.
#include "ops/elementwise.h"

#include "base/cpu.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/offers.h"
#include "kernels/native/stages/pass.h"

namespace lamina {
void offer_native_elementwise(const NodeView& v, Answers& answers) {
  const auto dims = v.out_dims();
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && dims.size() < 3) continue;
    std::string why;
    const auto program = StageProgram::of_elementwise(v, layout, why);
    if (!program) return answers.refuse("native", "{}", why);
    Offer o;
    o.label = fmt::format("native_elementwise_{}_{}", name_of(v.machine().isa()), name_of(v.out_element()));
    o.inputs.assign(v.inputs(), Layout::plain);
    for (std::size_t i = 0; i < v.inputs(); ++i)
      if (!v.has(i)) o.consumed.push_back(i);
    o.outputs = {layout};
    for (const auto i : program->may_overwrite()) o.in_place.push_back({i, 0});
    program->add_to(o, v.machine());
    const double bytes = static_cast<double>(element_count(dims)) * bits_of(v.out_element()) / 8.0;
    o.cost += cost_of(v.machine(), Family::vector_light, 0, bytes, 0);
    if (layout == Layout::channels_last) {
      o.wide_inputs = program->whole_inputs();
      o.wide_outputs = {0};
    }
    o.make = [program, us = o.cost.us(),
              rows = Rows::of(v.out_element(), dims, layout)](MakeContext& context) {
      return executable([pass = StagePass(program->made(context), us, context.output(rows))](
                            const RunArgs& args) { pass.run(args, nullptr); });
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
