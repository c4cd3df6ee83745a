#include "formats/onnx/tensors.h"

#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/work_partition.h"
#include "formats/booleans.h"
#include "formats/wire.h"
#include "formats/wire_numbers.h"
#include "graph/infer.h"

namespace lamina::onnx {
namespace {

std::size_t byte_count(const Dims& dims, ElementType type) {
  const auto count = element_count(dims);
  const auto bits = static_cast<std::size_t>(bits_of(type));
  return (count * bits + 7) / 8;
}

/// The typed data fields of a TensorProto: which number, and what one entry holds.
struct Typed {
  std::uint32_t field;
  std::size_t per_entry = 1;  // elements
};

Typed typed_field(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return {4};
    case ElementType::f64:
      return {10};
    case ElementType::i64:
      return {7};
    case ElementType::u64:
    case ElementType::u32:
      return {11};
    case ElementType::i4:
    case ElementType::u4:
    case ElementType::f4e2m1:
      return {5, 2};
    case ElementType::i2:
    case ElementType::u2:
      return {5, 4};
    default:
      return {5};
  }
}

void want_entries(std::size_t found, std::size_t wanted, std::uint32_t field) {
  if (found != wanted)
    fail(ErrorCode::bad_file, "has {} values in field {}, its shape wants {}", found, field, wanted);
}

/// One packed run of fixed-size numbers is the data itself.
std::optional<std::string_view> single_run(std::string_view message, std::uint32_t field) {
  std::optional<std::string_view> run;
  WireReader in(message, "TensorProto");
  while (in.next()) {
    if (in.field() != field) {
      in.skip();
    } else if (run || !in.packed()) {
      return std::nullopt;
    } else {
      run = in.bytes();
    }
  }
  return run;
}

Tensor from_entries(const TensorProto& t, ElementType type) {
  const auto [field, per_entry] = typed_field(type);
  const WireNumbers numbers(t.message, field, type);
  want_entries(numbers.size(), ceil_div(element_count(t.dims), per_entry), field);
  Tensor out(type, t.dims);
  numbers.store(out);
  return out;
}

std::uint64_t parse_number(std::string_view text, std::string_view what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail(ErrorCode::bad_file, "has the external {} \"{}\", wanted a number", what, text);
  return value;
}

/// Runs `body` so that its errors name the tensor and have the code bad_file (or unsupported).
template <class F>
Tensor naming(std::string_view name, F body) try {
  return body();
} catch (const protozero::exception& e) {
  fail(ErrorCode::bad_file, "tensor \"{}\": damaged ({})", name, words_of(e));
} catch (const Error& e) {
  const bool same = e.code() == ErrorCode::unsupported || ends_the_work(e.code());
  fail(same ? e.code() : ErrorCode::bad_file, "tensor \"{}\": {}", name, e.what());
}

}  // namespace

std::shared_ptr<const MappedFile> TensorReader::external_file(const std::string& location) {
  auto& file = external_[location];
  if (!file) file = source_.external_data(location);
  return file;
}

Tensor TensorReader::read_external(const TensorProto& t, ElementType type, std::size_t bytes) {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  for (const auto& [key, value] : t.external_data) {
    if (key == "location")
      location = std::string(value);
    else if (key == "offset")
      offset = parse_number(value, key);
    else if (key == "length")
      length = parse_number(value, key);
  }
  const auto file = external_file(location);
  if (length && *length != bytes)
    fail(ErrorCode::bad_file, "has {} bytes of external data, its shape wants {}", *length, bytes);
  if (offset > file->size() || bytes > file->size() - offset)
    fail(ErrorCode::bad_file, "wants {} bytes at offset {} of \"{}\", which has {}", bytes, offset, location,
         file->size());
  return normalized(Tensor::share(type, t.dims, file, file->data() + offset));
}

Tensor TensorReader::read(const TensorProto& t) {
  return naming(t.name, [&] {
    const auto type = element_type_of_onnx(t.data_type);
    if (type == ElementType::undefined)
      fail(ErrorCode::unsupported, "elements of type {} are not supported", name_of_onnx_type(t.data_type));
    const auto bytes = byte_count(t.dims, type);
    if (t.external) return read_external(t, type, bytes);
    if (t.raw_data && (!t.raw_data->empty() || bytes == 0)) {
      if (t.raw_data->size() != bytes)
        fail(ErrorCode::bad_file, "has {} bytes of data, its shape {} of {} wants {}", t.raw_data->size(),
             to_string(t.dims), name_of(type), bytes);
      return normalized(Tensor::share(type, t.dims, source_.model(), t.raw_data->data()));
    }
    if (type == ElementType::f32 || type == ElementType::f64) {
      if (const auto run = single_run(t.message, typed_field(type).field); run && run->size() == bytes)
        return Tensor::share(type, t.dims, source_.model(), run->data());
    }
    return normalized(from_entries(t, type));
  });
}

Tensor TensorReader::read(const SparseTensorProto& t) {
  return naming(t.values.name, [&] {
    const Tensor values = read(t.values);
    const Ints indices = to_ints(read(t.indices));
    const auto size = static_cast<std::size_t>(bits_of(values.element_type())) / 8;
    if (size == 0) fail(ErrorCode::unsupported, "sparse data of type {}", name_of(values.element_type()));
    const auto count = element_count(t.dims), entries = values.size(), rank = t.dims.size();
    // A dense tensor may be far larger than its file.
    if (count > (std::size_t{1} << 20) + entries * 256)
      fail(ErrorCode::unsupported, "sparse data with {} of {} elements is not supported", entries, count);
    const bool linear = indices.size() == entries && (t.indices.dims.size() == 1 || rank != 1);
    if (!linear && indices.size() != entries * rank)
      fail(ErrorCode::bad_file, "has {} indices for {} values of rank {}", indices.size(), entries, rank);
    Tensor dense(values.element_type(), t.dims);
    for (std::size_t e = 0; e < entries; ++e) {
      note_read(8 * (1 + rank));
      std::int64_t at = linear ? indices[e] : 0;
      for (std::size_t axis = 0; !linear && axis < rank; ++axis) {
        const auto index = indices[e * rank + axis];
        if (index < 0 || index >= t.dims[axis])
          fail(ErrorCode::bad_file, "has the index {} on axis {} of size {}", index, axis, t.dims[axis]);
        at = at * t.dims[axis] + index;
      }
      if (at < 0 || static_cast<std::size_t>(at) >= count)
        fail(ErrorCode::bad_file, "has the index {} of {} elements", at, count);
      std::memcpy(dense.raw() + static_cast<std::size_t>(at) * size, values.raw() + e * size, size);
    }
    return dense;
  });
}

}  // namespace lamina::onnx
