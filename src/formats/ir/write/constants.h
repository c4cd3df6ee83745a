#pragma once
/// The .bin file: constants one behind the other, equal ones once.
#include <cstdint>
#include <map>
#include <vector>

#include "base/atomic_file.h"
#include "base/hash.h"
#include "lamina/tensor.h"

namespace lamina::ir {

class ConstantFile {
 public:
  explicit ConstantFile(AtomicFile& file) : file_(file) {}

  /// Offset of the tensor's bytes in the file, which are written as in memory.
  std::uint64_t add(const Tensor& tensor);

  std::size_t shared() const { return shared_; }  ///< constants that were stored before

 private:
  struct Kept {
    std::uint64_t offset;
    Tensor tensor;
  };
  AtomicFile& file_;
  std::map<Hash128, std::vector<Kept>> by_content_;
  std::size_t shared_ = 0;
};

/// u1 in the order of bits that files have for all but weights of BinaryConvolution: the first element is the
/// most significant bit.
Tensor high_bits_first(const Tensor& bits);

/// The numbers in f16.
struct Halves {
  Tensor tensor;
  std::size_t overflown = 0;  ///< finite numbers that became infinite
  std::size_t vanished = 0;   ///< numbers other than 0 that became 0
  std::size_t inexact = 0;    ///< numbers that became others, NaN among them
  std::size_t others = 0;     ///< numbers other than 0
};
Halves halves_of(const Tensor& floats);  ///< f32 or f64

}  // namespace lamina::ir
