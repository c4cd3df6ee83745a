#pragma once
/// What each family of native kernels offers, and for which operators it is asked (list.cc).
#include "kernels/kernel.h"

namespace lamina {

bool is_movement(const Op& op);
bool is_gathering(const Op& op);
bool is_scattering(const Op& op);
bool is_normalization(const Op& op);
bool is_recurrent(const Op& op);
bool is_pooling(const Op& op);

void offer_movement(const NodeView& v, Answers& answers);
void offer_gathering(const NodeView& v, Answers& answers);
void offer_scattering(const NodeView& v, Answers& answers);
void offer_topk(const NodeView& v, Answers& answers);
void offer_cumsum(const NodeView& v, Answers& answers);
void offer_one_hot(const NodeView& v, Answers& answers);
void offer_dynamic_quantize(const NodeView& v, Answers& answers);
void offer_native_elementwise(const NodeView& v, Answers& answers);
void offer_normalize(const NodeView& v, Answers& answers);
void offer_lrn(const NodeView& v, Answers& answers);
void offer_reduce(const NodeView& v, Answers& answers);
void offer_recurrent(const NodeView& v, Answers& answers);
void offer_native_softmax(const NodeView& v, Answers& answers);
void offer_native_attention(const NodeView& v, Answers& answers);
void offer_linear_attention(const NodeView& v, Answers& answers);
/// Ensembles of decision trees.
void offer_trees(const NodeView& v, Answers& answers);
void offer_resize(const NodeView& v, Answers& answers);
void offer_native_matmul(const NodeView& v, Answers& answers);
/// Offers for matrix products of u8 and i8.
void offer_integer_matmul(const NodeView& v, Answers& answers);
void offer_native_pooling(const NodeView& v, Answers& answers);
/// Convolutions of any number of groups, but depthwise ones, and transposed ones.
void offer_native_convolution(const NodeView& v, Answers& answers);
/// Convolutions of u8 and i8.
void offer_integer_convolution(const NodeView& v, Answers& answers);
void offer_native_depthwise(const NodeView& v, Answers& answers);
/// A convolution and the depthwise one behind it in one pass: lines of the tensor between live in a buffer
/// that stays in the cache.
void offer_native_conv_depthwise(const NodeView& v, Answers& answers);
void offer_binary_convolution(const NodeView& v, Answers& answers);
/// A comparison whose booleans lie as bits.
void offer_comparison(const NodeView& v, Answers& answers);

}  // namespace lamina
