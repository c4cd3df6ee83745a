/// Nodes that give their input's memory another shape.
#include "kernels/list.h"

namespace lamina {

void add_view_kernels(std::vector<Kernel>& list) {
  list.push_back({"view", [](const Op& op) { return op.has(Trait::keeps_values); },
                  [](const NodeView& v, Answers& answers) {
                    if (v.element(0) != v.out_element())
                      return answers.refuse("view", "the element type changes");
                    Offer offer;
                    offer.label = "view";
                    offer.inputs.assign(v.inputs(), Layout::plain);
                    offer.outputs.assign(v.outputs(), Layout::plain);
                    offer.is_view = true;
                    for (std::size_t i = 1; i < v.inputs(); ++i) offer.consumed.push_back(i);
                    answers.offers.push_back(std::move(offer));
                  }});
}

}  // namespace lamina
