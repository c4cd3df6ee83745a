#pragma once
/// Elements of less than a byte (i4, u2, f4e2m1, ...), for reference operators that move elements.
#include "ops/eval.h"

namespace lamina {

inline bool is_packed(ElementType type) { return bits_of(type) < 8; }

/// One byte per element: i4 and i2 as i8, other integers as u8, both with their values; floats as codes in u8
/// in which 0 stands for the number 0. Tensors of whole bytes are returned as they are.
Tensor unpacked(const Tensor& tensor);
/// The type of what unpacked() gives for a tensor of this type.
ElementType unpacked_type(ElementType type);
/// The tensor of a packed type that unpacked() makes `bytes` of.
Tensor packed_as(ElementType type, const Tensor& bytes);

/// Where an input is packed, evaluates the node on unpacked inputs, packs what it gives, and returns true.
/// The evaluator of an operator that moves elements by their bytes begins with it, and is done where it is
/// true.
bool moved_unpacked(EvalContext& c);

}  // namespace lamina
