/// Copies of tensors between layouts, as steps of a plan.
#include <cstring>

#include "base/error.h"
#include "kernels/cost.h"
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
  // oneDNN's of 16 bits go through f32 below AVX-512, which not all bits survive; those of 32 are slower than
  // our own.
  auto bytes = bits_of(type) == 8 ? onednn::make_byte_reorder(shape, from, to) : nullptr;
  return bytes ? std::move(bytes) : make_strided_reorder(type, shape, from, to);
}

Cost reorder_cost(const Machine& machine, ElementType type, const Dims& shape) {
  const double bytes = bits_of(type) == 16 ? 8 : bits_of(type) / 8.0;  // no vector code for these
  return cost_of(machine, Family::transpose, 0, static_cast<double>(element_count(shape)) * bytes * 2);
}

}  // namespace lamina
