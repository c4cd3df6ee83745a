#include "formats/tensorflow/tensors.h"

#include <cstring>

#include "base/cancellation.h"
#include "formats/booleans.h"
#include "formats/wire.h"
#include "formats/wire_numbers.h"
#include "ops/eval.h"

namespace lamina::tensorflow {
namespace {

constexpr std::size_t kMostExpanded = std::size_t{1} << 22;  // elements of one constant made of few numbers,
constexpr std::size_t kMostPerValue = 256;                   // or for each of many

/// The field of TensorProto that holds values of that type.
std::uint32_t value_field(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return 5;
    case ElementType::f64:
      return 6;
    case ElementType::i64:
      return 10;
    case ElementType::boolean:
      return 11;
    case ElementType::f16:
    case ElementType::bf16:
      return 13;
    case ElementType::u32:
      return 16;
    case ElementType::u64:
      return 17;
    default:
      return 7;
  }
}

/// The values of the typed fields, as many as there are: a tensor of rank 1.
Tensor entries(const TensorProto& t, ElementType type) {
  const WireNumbers numbers(t.message, value_field(type), type);
  Tensor out(type, {static_cast<std::int64_t>(numbers.size())});
  numbers.store(out);
  return out;
}

/// Copies `some` and then its last element until all of `t` is written.
void fill(Tensor& t, const Tensor& some) {
  const auto size = static_cast<std::size_t>(bits_of(t.element_type())) / 8;
  std::memcpy(t.raw(), some.raw(), some.bytes());
  const auto* last = t.raw() + some.bytes() - size;
  for_pieces((t.bytes() - some.bytes()) / size, [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) std::memcpy(t.raw() + some.bytes() + i * size, last, size);
  });
}

}  // namespace

ReadTensor read_tensor(const TensorProto& t, const std::shared_ptr<const void>& owner,
                       std::int64_t& budget) try {
  const auto type = element_type_of(t.type);
  if (type == ElementType::undefined)
    fail(ErrorCode::unsupported, "elements of type {} are not supported", name_of_type(t.type));
  if (!t.shape.known())
    fail(ErrorCode::bad_file, "the constant has shape {}, wanted known sizes", to_string(t.shape));
  ReadTensor out;
  out.shape = t.shape.sizes();
  const auto count = element_count(out.shape);
  const auto bytes = count * static_cast<std::size_t>(bits_of(type)) / 8;
  if (t.content && !t.content->empty()) {
    if (t.content->size() != bytes)
      fail(ErrorCode::bad_file, "has {} bytes of data, its shape {} of {} wants {}", t.content->size(),
           to_string(out.shape), name_of(type), bytes);
    out.data = normalized(Tensor::share(type, out.shape, owner, t.content->data()));
    return out;
  }
  auto some = normalized(entries(t, type));
  if (some.size() > count)
    fail(ErrorCode::bad_file, "has {} values, its shape {} wants {}", some.size(), to_string(out.shape),
         count);
  if (some.size() == count) {
    out.data = some.reshaped(out.shape);
    return out;
  }
  if (some.size() == 0) some = Tensor(type, {1});  // zero
  if (const auto made = static_cast<std::int64_t>(count);
      made <= budget && count <= kMostExpanded + some.size() * kMostPerValue) {
    budget -= made;
    out.data = Tensor(type, out.shape);
    fill(out.data, some);
    return out;
  }
  if (some.size() > 1) fail(ErrorCode::unsupported, "{} values for {} elements", some.size(), count);
  out.data = some.reshaped({});
  out.repeated = true;
  return out;
} catch (const protozero::exception& e) {
  fail(ErrorCode::bad_file, "damaged: {}", words_of(e));
}

}  // namespace lamina::tensorflow
