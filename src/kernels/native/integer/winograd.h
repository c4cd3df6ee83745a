#pragma once
/// Convolutions of 3x3 taps side by side by Winograd's algorithm, exact: F(4x4, 3x3) with 36 multiplications
/// for 16 outputs instead of 144, for processors whose products of integers are no faster by bytes than by
/// words.
///
///     576 * outputs = A' (sum over channels of (G' w G'^T) * (B' x B'^T)) A'^T       * place by place
///
/// With the usual matrices scaled so that all of them are integers, weights and inputs have 16 bits after
/// their transforms and the sums are i32. These wrap, but an output is known modulo 2^26 then (576 is
/// 9 << 6): enough where weights show that none is larger, which nearly all do. The others take the direct
/// way.
#include <optional>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/native/convolution/window.h"
#include "kernels/native/integer/operands.h"
#include "kernels/native/stages/epilogue.h"

namespace lamina::integers {

/// An offer for the convolution, where `direct` reads channels-last and runs what does not fit; or nothing.
std::optional<Offer> winograd_offer(const NodeView& v, const windows::Geometry& g,
                                    const std::vector<Operands>& possible, const Epilogue& epilogue,
                                    const Offer& direct);

}  // namespace lamina::integers
