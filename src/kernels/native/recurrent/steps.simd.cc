/// Steps of recurrent networks in vector code; see steps.h.
#include "kernels/native/recurrent/steps.h"

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/recurrent/steps.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "kernels/native/simd/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace vm = vector_math;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr std::int64_t kLanes = hn::MaxLanes(d);
/// Rows whose sums fit into the registers: 32 of them, or 16.
constexpr int kRows = kLanes == 16 ? 6 : 3;

HWY_INLINE V set(float v) { return hn::Set(d, v); }
/// NaN passes: it is the second operand.
HWY_INLINE V clamped(V x, float low, float high) { return hn::Min(set(high), hn::Max(set(low), x)); }

HWY_INLINE V activated(const GateActivation& f, V x) {
  using Kind = GateActivation::Kind;
  const V zero = hn::Zero(d), a = set(f.alpha), b = set(f.beta);
  switch (f.kind) {
    case Kind::sigmoid:
      return vm::sigmoid_of(d, x);
    case Kind::tanh:
      return vm::tanh_of(d, x);
    case Kind::relu:
      return hn::Max(zero, x);
    case Kind::affine:
      return hn::MulAdd(a, x, b);
    case Kind::elu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, vm::expm1_of(d, hn::Min(zero, x))), x);
    case Kind::hardsigmoid:
      return clamped(hn::MulAdd(a, x, b), 0, 1);
    case Kind::leakyrelu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, x), x);
    case Kind::scaledtanh:
      return hn::Mul(a, vm::tanh_of(d, hn::Mul(b, x)));
    case Kind::softplus:
      return hn::Add(hn::Max(zero, x), hn::Log1p(d, vm::exp_of(d, hn::Neg(hn::Abs(x)))));
    case Kind::softsign:
      return hn::Div(x, hn::Add(set(1), hn::Abs(x)));
    case Kind::thresholdedrelu:
      return hn::IfThenElseZero(hn::Gt(x, a), x);
  }
  return x;
}

HWY_INLINE V gate(const RecurrentStep& s, int function, V x) {
  if (s.clip > 0) x = clamped(x, -s.clip, s.clip);
  return activated(s.activations[function], x);
}

/// sums[row][gate] += x[row] x panel. Few rows and gates are summed in several parts, to hide the latency of
/// multiply-adds.
template <int kGates, int R>
HWY_INLINE void accumulate(const float* HWY_RESTRICT panel, std::int64_t depth, const float* const (&x)[R],
                           V (&sums)[R][kGates]) {
  constexpr int kParts = kGates * R >= 8 ? 1 : kGates * R >= 4 ? 2 : kGates * R >= 2 ? 4 : 8;
  std::int64_t k = 0;
  if constexpr (kParts > 1) {
    V parts[kParts][R][kGates];
    LAMINA_UNROLL
    for (int p = 0; p < kParts; ++p) {
      LAMINA_UNROLL
      for (int i = 0; i < R; ++i) {
        LAMINA_UNROLL
        for (int g = 0; g < kGates; ++g) parts[p][i][g] = hn::Zero(d);
      }
    }
    for (; k + kParts <= depth; k += kParts) {
      LAMINA_UNROLL
      for (int p = 0; p < kParts; ++p) {
        LAMINA_UNROLL
        for (int g = 0; g < kGates; ++g) {
          const V w = hn::LoadU(d, panel + ((k + p) * kGates + g) * kLanes);
          LAMINA_UNROLL
          for (int i = 0; i < R; ++i) parts[p][i][g] = hn::MulAdd(set(x[i][k + p]), w, parts[p][i][g]);
        }
      }
    }
    LAMINA_UNROLL
    for (int p = 0; p < kParts; ++p) {
      LAMINA_UNROLL
      for (int i = 0; i < R; ++i) {
        LAMINA_UNROLL
        for (int g = 0; g < kGates; ++g) sums[i][g] = hn::Add(sums[i][g], parts[p][i][g]);
      }
    }
  }
  for (; k < depth; ++k) {
    LAMINA_UNROLL
    for (int g = 0; g < kGates; ++g) {
      const V w = hn::LoadU(d, panel + (k * kGates + g) * kLanes);
      LAMINA_UNROLL
      for (int i = 0; i < R; ++i) sums[i][g] = hn::MulAdd(set(x[i][k]), w, sums[i][g]);
    }
  }
}

template <int kGates>
struct Product {
  template <int R>
  static HWY_INLINE void tile(const PanelProduct& t, std::int64_t block, std::int64_t row) {
    constexpr std::int64_t kBlock = kGates * kLanes;
    const float* x[R];
    V sums[R][kGates];
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) {
      x[i] = t.rows[row + i];
      LAMINA_UNROLL
      for (int g = 0; g < kGates; ++g) sums[i][g] = hn::LoadU(d, t.init + block * kBlock + g * kLanes);
    }
    accumulate(t.panels + block * t.depth * kBlock, t.depth, x, sums);
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) {
      LAMINA_UNROLL
      for (int g = 0; g < kGates; ++g)
        hn::StoreU(sums[i][g], d, t.out + (row + i) * t.out_stride + block * kBlock + g * kLanes);
    }
  }
  static std::int64_t rows(const PanelProduct& t) { return t.row_count; }
};

/// Gates of a tile: the input part plus the recurrence of `state` (of depth hidden) with `panels`.
template <int kGates, int R>
HWY_INLINE void recur(const RecurrentStep& s, const float* panels, const float* state, std::int64_t block,
                      std::int64_t row, V (&sums)[R][kGates]) {
  const float* x[R];
  LAMINA_UNROLL
  for (int i = 0; i < R; ++i) x[i] = state + (row + i) * s.padded;
  accumulate(panels + block * s.hidden * kGates * kLanes, s.hidden, x, sums);
}

struct Step {
  static std::int64_t rows(const RecurrentStep& s) { return s.rows; }
  /// Where a block's gates of a row begin.
  template <int kGates>
  static HWY_INLINE const float* gates(const RecurrentStep& s, std::int64_t block, std::int64_t row) {
    return s.gates + row * s.gates_stride + block * kGates * kLanes;
  }
};

struct Lstm : Step {
  template <int R>
  static HWY_INLINE void tile(const RecurrentStep& s, std::int64_t block, std::int64_t row) {
    V sums[R][4];
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) {
      LAMINA_UNROLL
      for (int g = 0; g < 4; ++g) sums[i][g] = hn::LoadU(d, gates<4>(s, block, row + i) + g * kLanes);
    }
    recur(s, s.r, s.h, block, row, sums);
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) {
      const auto at = (row + i) * s.padded + block * kLanes;
      finish(s, block, sums[i], at);
    }
  }
  static HWY_INLINE void finish(const RecurrentStep& s, std::int64_t block, const V (&sums)[4],
                                std::int64_t at) {
    const V before = hn::LoadU(d, s.c + at);
    V fx = sums[0], ix = sums[1], ox = sums[3];
    const float* p = s.peepholes ? s.peepholes + block * kLanes : nullptr;
    if (p) {
      ix = hn::MulAdd(hn::LoadU(d, p), before, ix);
      fx = hn::MulAdd(hn::LoadU(d, p + 2 * s.padded), before, fx);
    }
    const V i = gate(s, 0, ix), f = s.coupled ? hn::Sub(set(1), i) : gate(s, 0, fx);
    const V now = hn::MulAdd(f, before, hn::Mul(i, gate(s, 1, sums[2])));
    if (p) ox = hn::MulAdd(hn::LoadU(d, p + s.padded), now, ox);
    hn::StoreU(now, d, s.next_c + at);
    hn::StoreU(hn::Mul(gate(s, 0, ox), activated(s.activations[2], now)), d, s.next + at);
  }
};

/// (1 - z) candidate + z h, also of an infinite candidate.
HWY_INLINE V mixed(V z, V candidate, V h) { return hn::MulAdd(z, h, hn::Mul(hn::Sub(set(1), z), candidate)); }

struct GruLinear : Step {
  template <int R>
  static HWY_INLINE void tile(const RecurrentStep& s, std::int64_t block, std::int64_t row) {
    V sums[R][3];
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) {
      LAMINA_UNROLL
      for (int g = 0; g < 2; ++g) sums[i][g] = hn::LoadU(d, gates<3>(s, block, row + i) + g * kLanes);
      sums[i][2] = hn::LoadU(d, s.r_bias + block * kLanes);
    }
    recur(s, s.r, s.h, block, row, sums);
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) {
      const auto at = (row + i) * s.padded + block * kLanes;
      const V z = gate(s, 0, sums[i][0]), r = gate(s, 0, sums[i][1]);
      const V x = hn::LoadU(d, gates<3>(s, block, row + i) + 2 * kLanes);
      hn::StoreU(mixed(z, gate(s, 1, hn::MulAdd(r, sums[i][2], x)), hn::LoadU(d, s.h + at)), d, s.next + at);
    }
  }
};

struct GruGates : Step {
  template <int R>
  static HWY_INLINE void tile(const RecurrentStep& s, std::int64_t block, std::int64_t row) {
    V sums[R][2];
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) {
      LAMINA_UNROLL
      for (int g = 0; g < 2; ++g) sums[i][g] = hn::LoadU(d, gates<3>(s, block, row + i) + g * kLanes);
    }
    recur(s, s.r, s.h, block, row, sums);
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) {
      const auto at = (row + i) * s.padded + block * kLanes;
      hn::StoreU(gate(s, 0, sums[i][0]), d, s.z + at);
      hn::StoreU(hn::Mul(gate(s, 0, sums[i][1]), hn::LoadU(d, s.h + at)), d, s.reset_h + at);
    }
  }
};

struct GruCandidate : Step {
  template <int R>
  static HWY_INLINE void tile(const RecurrentStep& s, std::int64_t block, std::int64_t row) {
    V sums[R][1];
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) sums[i][0] = hn::LoadU(d, gates<3>(s, block, row + i) + 2 * kLanes);
    recur(s, s.r_candidate, s.reset_h, block, row, sums);
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) {
      const auto at = (row + i) * s.padded + block * kLanes;
      hn::StoreU(mixed(hn::LoadU(d, s.z + at), gate(s, 1, sums[i][0]), hn::LoadU(d, s.h + at)), d,
                 s.next + at);
    }
  }
};

struct Rnn : Step {
  template <int R>
  static HWY_INLINE void tile(const RecurrentStep& s, std::int64_t block, std::int64_t row) {
    V sums[R][1];
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i) sums[i][0] = hn::LoadU(d, gates<1>(s, block, row + i));
    recur(s, s.r, s.h, block, row, sums);
    LAMINA_UNROLL
    for (int i = 0; i < R; ++i)
      hn::StoreU(gate(s, 0, sums[i][0]), d, s.next + (row + i) * s.padded + block * kLanes);
  }
};

template <class Kernel, int R, class Task>
HWY_INLINE void last_rows(const Task& t, std::int64_t block, std::int64_t row, std::int64_t rows) {
  if constexpr (R > 0) {
    if (rows == R) return Kernel::template tile<R>(t, block, row);
    last_rows<Kernel, R - 1>(t, block, row, rows);
  }
}

template <class Kernel, class Task>
void run(const Task& t, std::int64_t begin, std::int64_t end) {
  const std::int64_t rows = Kernel::rows(t);
  for (std::int64_t block = begin; block < end; ++block) {
    std::int64_t row = 0;
    for (; row + kRows <= rows; row += kRows) Kernel::template tile<kRows>(t, block, row);
    last_rows<Kernel, kRows - 1>(t, block, row, rows - row);
  }
}

constexpr RecurrentTable kRecurrentTable{
    .lanes = kLanes,
    .rows = kRows,
    .product = {nullptr, run<Product<1>, PanelProduct>, nullptr, run<Product<3>, PanelProduct>,
                run<Product<4>, PanelProduct>},
    .lstm = run<Lstm, RecurrentStep>,
    .rnn = run<Rnn, RecurrentStep>,
    .gru_linear = run<GruLinear, RecurrentStep>,
    .gru_gates = run<GruGates, RecurrentStep>,
    .gru_candidate = run<GruCandidate, RecurrentStep>};

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
const RecurrentTable& recurrent_table(Isa isa) { return LAMINA_CONSTANT_PER_ISA(kRecurrentTable).at(isa); }

}  // namespace lamina
#endif
