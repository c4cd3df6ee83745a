#include "ops/linear_attention.h"

#include "op_testing.h"

namespace lamina {
namespace {

using namespace testing;

Tensor of(Dims dims, std::vector<float> values) { return floats(std::move(dims), std::move(values)); }

Tensor run(const std::vector<Tensor>& inputs) { return evaluate_all(LinearAttention{}, inputs, 2).at(0); }

TEST(LinearAttention, keeps_what_was_written) {
  const auto q = of({1, 1, 2, 1}, {1, 2}), k = of({1, 1, 2, 1}, {1, 3}), v = of({1, 1, 2, 1}, {5, 7}),
             s = of({1, 1, 1, 1}, {4});
  expect_values(run({q, k, v, s}), {1, 1, 2, 1}, {9, 60});
  expect_values(run({q, k, v, s, of({1, 1, 2, 1}, {0.5f, 0})}), {1, 1, 2, 1}, {7, 42});
  // 4 + 0.5 * 1 * (5 - 4) = 4.5, then 4.5 + 1 * 3 * (7 - 3 * 4.5) = -15.
  expect_values(run({q, k, v, s, {}, of({1, 1, 2, 1}, {0.5f, 1})}), {1, 1, 2, 1}, {4.5, -30});
}

TEST(LinearAttention, heads_share_a_state_and_rows_decay) {
  const auto q = of({1, 2, 1, 2}, {1, 0, 0, 1}), k = of({1, 1, 1, 2}, {0, 0}), v = of({1, 1, 1, 1}, {9}),
             s = of({1, 1, 2, 1}, {8, 6});
  expect_values(run({q, k, v, s, of({1, 1, 1, 2}, {0.5f, 2})}), {1, 2, 1, 1}, {4, 12});
}

void shapes(const std::vector<Known>& inputs) { infer_all(LinearAttention{}, inputs, 2); }

TEST(LinearAttention, shapes) {
  const auto q = f32({dim("N"), 4, dim("T"), 8}), k = f32({dim("N"), 2, dim("T"), 8}),
             v = f32({dim("N"), 2, dim("T"), 5}), s = f32({dim("N"), 2, 8, 5});
  const auto types = infer_all(LinearAttention{}, {q, k, v, s}, 2);
  EXPECT_EQ(to_string(types[0]) + " " + to_string(types[1]), "f32[N,4,T,5] f32[N,2,8,5]");
  EXPECT_ERROR(shapes({f32({1, 3, 2, 8}), f32({1, 2, 2, 8}), v, s}), "3 heads of queries for 2 of keys");
  EXPECT_ERROR(shapes({q, f32({1, 2, 3, 7}), v, s}), "key");
  EXPECT_ERROR(shapes({q, k, v, f32({1, 2, 8, 6})}), "state");
  EXPECT_ERROR(shapes({q, k, v, s, f32({1, 2, 3, 4})}), "decay");
  EXPECT_ERROR(shapes({q, k, v, s, Tensor(), f32({1, 3, 3, 1})}), "beta");
  EXPECT_ERROR(shapes({f32({4, 2, 8}), k, v, s}), "query has shape [4,2,8]");
}

}  // namespace
}  // namespace lamina
