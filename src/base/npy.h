#pragma once
/// numpy's .npy files: one array.
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/command_api.h"
#include "lamina/tensor.h"

namespace lamina {

/// Reads an array; `where` starts the texts of errors. Booleans, integers and floats of 16, 32 and 64 bits in
/// either byte order; arrays in column-major (Fortran) order are transposed. Types that numpy lacks
/// (ml_dtypes, "V1", "V2") are read as the u8 or u16 of their bits. Anything else is an Error(bad_file).
Tensor parse_npy(std::span<const std::byte> bytes, std::string_view where);
LAMINA_COMMAND_API Tensor read_npy(const std::string& path);

/// Writes an array completely or not at all. Types that numpy does not have are widened: bf16 to f32; u1, u2,
/// u4 to u8; i2, i4 to i8. Floats of 8 and 4 bits are written as their codes, u8, one to an element.
void write_npy(const std::string& path, const Tensor& tensor);

/// An array as a tensor of a type that numpy lacks: u8 (or i8) as codes of floats of 8 and 4 bits and of
/// packed integers, one to an element, u16 as the bits of bf16. Other arrays and types are given back as they
/// are. Throws Error(bad_input), "element 3 is 17, wanted a code of 4 bits", where one does not fit.
LAMINA_COMMAND_API Tensor as_stored(const Tensor& array, ElementType type);

/// Bytes that come one after the other.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills all of `to` or throws.
  virtual void read(std::span<std::byte> to) = 0;
};
/// Asked when the type and shape of an array are known, before there is memory for it: false: it is not
/// wanted. May throw.
using WantedArray = std::function<bool(ElementType type, const Dims& shape)>;
/// An array of `size` bytes, header included; an invalid tensor where it is not wanted.
Tensor parse_npy(ByteSource& source, std::uint64_t size, std::string_view where,
                 const WantedArray& wanted = {});

/// The two parts of a .npy file.
struct NpyParts {
  std::string header;
  Tensor data;  ///< of a type that numpy has
};
NpyParts npy_parts(const Tensor& tensor);

}  // namespace lamina
