/// The kernel of last resort: evaluates the node as the interpreter does.
#include <cstring>

#include "interpreter/interpreter.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/list.h"

namespace lamina {
namespace {

/// What the reference kernel keeps of a node.
struct Kept {
  Node node;
  std::vector<TensorType> types;  // of inputs; undefined when absent
};

void run(const Kept& kept, const RunArgs& args) {
  std::vector<Tensor> in;
  for (std::size_t i = 0; i < kept.types.size(); ++i)
    in.push_back(args.in[i] ? Tensor::wrap(kept.types[i].element, kept.types[i].shape.sizes(),
                                           const_cast<void*>(args.in[i]))
                            : Tensor());
  std::vector<Tensor> out;
  try {
    out = interpret_node(kept.node, in);
  } catch (const Error& e) {
    throw in_node(e, kept.node.name, kept.node);
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (args.out[i] && out[i].bytes() != 0) std::memcpy(args.out[i], out[i].raw(), out[i].bytes());
}

void offer(const NodeView& v, Answers& answers) {
  Offer o(v, "reference", Layout::plain);
  o.last_resort = true;
  double work = 0;
  for (std::size_t i = 0; i < v.outputs(); ++i) work += static_cast<double>(element_count(v.out_dims(i)));
  o.cost = cost_of(v.machine(), Family::reference, work);
  auto kept = std::make_shared<Kept>();
  kept->node = v.node();
  kept->node.name = v.graph().label(v.id());  // for errors
  for (std::size_t i = 0; i < v.inputs(); ++i)
    kept->types.push_back(v.has(i) ? TensorType{v.element(i), Shape::of(v.dims(i))} : TensorType{});
  o.make = [kept](MakeContext&) { return executable([kept](const RunArgs& args) { run(*kept, args); }); };
  answers.offers.push_back(std::move(o));
}

}  // namespace

void add_reference_kernel(std::vector<Kernel>& list) {
  list.push_back({"reference", [](const Op&) { return true; }, offer});
}

}  // namespace lamina
