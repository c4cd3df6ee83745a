/// Copies of tensors between layouts, as steps of a plan.
#include <cstring>

#include "base/error.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/list.h"

namespace lamina {

std::unique_ptr<Executable> make_reorder(ElementType type, const Dims& shape, Layout from, Layout to) {
  if (from == to)
    return executable([bytes = memory_bytes(type, shape, from)](const RunArgs& args) {
      if (bytes) std::memcpy(args.out[0], args.in[0], bytes);
    });
  if (const auto* packed = packing_of(to), *unpacked = packing_of(from); packed || unpacked) {
    LAMINA_CHECK(from == Layout::plain || to == Layout::plain, "{} to {}", name_of(from), name_of(to));
    return executable([type, shape, &copy = packed ? packed->pack : unpacked->unpack](const RunArgs& args) {
      copy(type, shape, args.in[0], args.out[0]);
    });
  }
  return make_strided_reorder(type, shape, from, to);  // oneDNN's are slower, and those of 16 bits lose some
}

Cost reorder_cost(const Machine& machine, ElementType type, const Dims& shape) {
  const double bytes = bits_of(type) / 8.0;
  return cost_of(machine, Family::transpose, 0, static_cast<double>(element_count(shape)) * bytes * 2);
}

}  // namespace lamina
