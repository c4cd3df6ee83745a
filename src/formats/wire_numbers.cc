#include "formats/wire_numbers.h"

#include <cstring>

#include "base/cancellation.h"
#include "formats/wire.h"

namespace lamina {
namespace {

template <class T, class V>
void store_as(Tensor& to, const std::vector<V>& values) {
  for_pieces(values.size(), [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto v = static_cast<T>(values[i]);
      std::memcpy(to.raw() + i * sizeof(T), &v, sizeof(T));
    }
  });
}

}  // namespace

WireNumbers::WireNumbers(std::string_view message, std::uint32_t field, ElementType type) {
  WireReader in(message, "TensorProto");
  while (in.next()) {
    if (in.field() != field)
      in.skip();
    else if (type == ElementType::f32)
      in.floats(floats_);
    else if (type == ElementType::f64)
      in.doubles(doubles_);
    else
      in.integers(integers_);
  }
}

std::size_t WireNumbers::size() const { return floats_.size() + doubles_.size() + integers_.size(); }

void WireNumbers::store(Tensor& to) const {
  const auto type = to.element_type();
  if (type == ElementType::f32) return store_as<float>(to, floats_);
  if (type == ElementType::f64) return store_as<double>(to, doubles_);
  if (type == ElementType::boolean) return store_as<bool>(to, integers_);  // 256 is true, too
  switch (bits_of(type)) {
    case 64:
      return store_as<std::int64_t>(to, integers_);
    case 32:
      return store_as<std::int32_t>(to, integers_);
    case 16:
      return store_as<std::int16_t>(to, integers_);
    default:
      return store_as<std::int8_t>(to, integers_);
  }
}

}  // namespace lamina
