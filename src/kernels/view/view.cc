/// Nodes that only give their input's memory another shape: nothing runs.
#include "kernels/list.h"
#include "ops/elementwise.h"
#include "ops/shaping.h"

namespace lamina {
namespace {

constexpr Layout kLayouts[] = {Layout::plain, Layout::channels_last};

Offer view(const NodeView& v, Layout in, Layout out) {
  Offer offer;
  offer.label = "view";
  offer.inputs.assign(v.inputs(), Layout::plain);
  offer.inputs[0] = in;
  offer.outputs.assign(v.outputs(), out);
  offer.is_view = true;
  for (std::size_t i = 1; i < v.inputs(); ++i) offer.consumed.push_back(i);
  return offer;
}

/// Reshapes. In channels-last, too, where batch and channels stay: the spatial axes between are one line.
void offer_reshape(const NodeView& v, Answers& answers) {
  if (v.element(0) != v.out_element()) return answers.refuse("view", "the element type changes");
  answers.offers.push_back(view(v, Layout::plain, Layout::plain));
  const auto x = v.dims(0), y = v.out_dims();
  if (x.size() >= 3 && y.size() >= 3 && x[0] == y[0] && x[1] == y[1])
    answers.offers.push_back(view(v, Layout::channels_last, Layout::channels_last));
}

/// The same memory under another type of as many bits.
void offer_bit_cast(const NodeView& v, Answers& answers) {
  if (v.out_element() == ElementType::boolean) return answers.refuse("view", "bytes become 0 or 1");
  answers.offers.push_back(view(v, Layout::plain, Layout::plain));
  if (v.dims(0).size() >= 3 && bits_of(v.out_element()) >= 8)
    answers.offers.push_back(view(v, Layout::channels_last, Layout::channels_last));
}

/// Transposes that undo the difference between two layouts: NCHW to NHWC is channels-last read as plain.
void offer_transpose(const NodeView& v, Answers& answers) {
  const auto x = v.dims(0), y = v.out_dims();
  const auto* order = v.constant(1);
  if ((v.has(1) && !order) || bits_of(v.element(0)) < 8) return;
  const auto axes = transpose_order(order ? to_ints(*order) : Ints(), x.size());
  bool any = false;
  for (const auto in : kLayouts)
    for (const auto out : kLayouts) {
      const auto from = strides_of(x, in), to = strides_of(y, out);
      bool same = true;
      for (std::size_t i = 0; i < y.size(); ++i)
        same &= y[i] == 1 || from[static_cast<std::size_t>(axes[i])] == to[i];
      if (!same || (x.size() < 3 && (in != Layout::plain || out != Layout::plain))) continue;
      answers.offers.push_back(view(v, in, out));
      any = true;
    }
  if (!any) answers.refuse("view", "the elements change places in every layout");
}

}  // namespace

void add_view_kernels(std::vector<Kernel>& list) {
  list.push_back({"view.reshape", [](const Op& op) { return op.has(Trait::keeps_values); }, offer_reshape});
  list.push_back({"view.bit_cast", [](const Op& op) { return op.is<BitCast>(); }, offer_bit_cast});
  list.push_back({"view.transpose", [](const Op& op) { return op.is<Transpose>(); }, offer_transpose});
}

}  // namespace lamina
