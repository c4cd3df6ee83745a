#pragma once
/// Implementations of oneDNN that are not taken, although oneDNN offers them. All of them are rows of one
/// table, in refused.cc.
#include <string_view>

#include "kernels/layout.h"
#include "kernels/node_view.h"

namespace lamina::onednn {

struct PostOps;
class Integers;

/// Geometry of a window that slides over spatial axes. oneDNN counts dilation from 0.
struct Geometry {
  Dims strides, dilations, left, right;
};

enum class Primitive {
  convolution,
  deconvolution,
  matmul,
  pooling,
  eltwise,
  binary,
  reorder,
  lrn,
  layer_normalization,
  resampling
};

/// What oneDNN is asked for, as far as rows look at it.
struct Asked {
  Primitive primitive;
  const NodeView& node;
  Layout layout = Layout::plain;       ///< of source and destination
  const PostOps* post = nullptr;       ///< what it takes of the epilogue; null: nothing
  const Integers* integers = nullptr;  ///< of products of u8 or i8; null: others
  const Geometry* window = nullptr;    ///< of convolutions and poolings
  bool bias = false;                   ///< it adds the node's bias, or what an epilogue begins with
  std::int64_t products = 0;           ///< added up for one result; 0: not a product
};

/// A set of enumerators, in which none stands for all.
template <class E>
class AnyOf {
 public:
  constexpr AnyOf() = default;
  constexpr AnyOf(std::initializer_list<E> list) {
    for (const auto e : list) bits_ |= 1u << static_cast<unsigned>(e);
  }
  constexpr bool has(E e) const { return bits_ == 0 || (bits_ >> static_cast<unsigned>(e) & 1) != 0; }

 private:
  unsigned bits_ = 0;
};

/// A row: the implementation is refused where all of its conditions hold.
struct Refused {
  AnyOf<Isa> isa;               ///< of oneDNN: Machine::library
  AnyOf<Primitive> primitives;  ///< primitives that the row is for
  std::string_view
      implementation;  ///< one word of its name begins so ("gemm": "gemm:jit", not "brgemm:avx2")
  /// What else must hold; null: nothing.
  bool (*when)(const Asked& asked, std::string_view implementation);
  std::string_view reason;  ///< a sentence about the implementation, without its name
};

/// The row that refuses the implementation, which is an impl_info_str(), or null.
const Refused* refusal_of(const Asked& asked, std::string_view implementation);

/// True if a row without condition refuses the implementation in all cases. `implementation` may be the label
/// of an offer, too.
bool is_always_refused(Isa isa, Primitive primitive, std::string_view implementation);

/// The name of an implementation has a word that begins so.
bool has_word(std::string_view implementation, std::string_view word);

}  // namespace lamina::onednn
