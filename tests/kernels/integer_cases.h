#pragma once
/// Random products of u8 and i8, as the text of graphs of one: what tests of kernels for integers are made
/// of.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/random.h"

namespace lamina::testing::integer_cases {

bool one_in(SplitMix& random, std::uint64_t n);

/// A constant of that type with numbers of its whole range, or of 7 bits; of small ones where it is large.
std::string numbers(SplitMix& random, const std::string& name, const std::string& type);
/// Numbers of i16, of 9 bits.
std::string wide_numbers(SplitMix& random, const std::string& name, const std::string& shape,
                         std::size_t count);
/// Inputs of small numbers i as x of the whole range.
std::string spread(const std::string& type);

/// Inputs 3 and 4 of a product.
struct ZeroPoints {
  std::string inputs, constants, source = "_", weights = "_";

  std::string arguments() const;
};
ZeroPoints zero_points(SplitMix& random, const std::string& x, const std::string& w, std::int64_t columns);

/// What is behind sums of [dims], with constants of that shape.
std::string epilogue(SplitMix& random, const std::string& dims, const std::string& constants);

std::string convolution(SplitMix& random);
std::string transposed(SplitMix& random);
std::string product(SplitMix& random);
/// The right operand is a vector: the last axis of what comes out is that of rows, and there are no columns.
std::string vector_product(SplitMix& random);

}  // namespace lamina::testing::integer_cases
