/// What the families of com.microsoft share.
#include "formats/onnx/microsoft/microsoft.h"

namespace lamina::onnx {

bool read_flag(const Call& c, std::string_view name, bool fallback) {
  const auto value = c.i(name, fallback ? 1 : 0);
  if (value != 0 && value != 1) c.fail("{} is {}, wanted 0 or 1", name, value);
  return value == 1;
}

void check_vector(const Call& c, ValueId v, std::string_view what, ValueId x) {
  const auto &shape = c.type(v).shape, &like = c.type(x).shape;
  if (!shape.ranked()) return;
  if (shape.rank() != 1) c.fail("{} has rank {}, wanted 1", what, shape.rank());
  if (like.ranked() && (like.rank() == 0 || !shape[0].fits(like[like.rank() - 1])))
    c.fail("{} is {} for an input of {}", what, to_string(shape), to_string(like));
}

void register_microsoft(ConverterTable& t) {
  register_microsoft_attention(t);
  register_microsoft_fused(t);
  register_microsoft_gather(t);
  register_microsoft_generation(t);
  register_microsoft_norms(t);
  register_matmul_n_bits(t);
  register_microsoft_quantized(t);
}

}  // namespace lamina::onnx
