/// LinearAttention: blocks of columns of a group's state, each through all its tokens.
#include <algorithm>
#include <cstring>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/attention/linear.h"
#include "kernels/native/offers.h"
#include "ops/linear_attention.h"

namespace lamina {
namespace {

struct Recurrence {
  LinearAttentionJob sizes{};
  std::int64_t groups = 0, beta_groups = 0, count = 0;  ///< groups of a sequence, those of beta, in all
  std::int64_t blocks = 1;                              ///< of columns
  const LinearAttentionTable* table = nullptr;
  WorkPartition all;
};

Recurrence code_of(const NodeView& v, double us) {
  Recurrence c;
  const auto q = v.dims(0), k = v.dims(1), values = v.dims(2);
  c.groups = k[1];
  c.count = k[0] * k[1];
  auto& s = c.sizes;
  s.tokens = q[2], s.key = q[3], s.width = values[3], s.heads = q[1] / k[1];
  s.decay_step = v.has(4) ? v.dims(4)[3] : 0;
  s.decay_by_row = v.has(4) && v.dims(4)[3] != 1;
  c.beta_groups = v.has(5) ? v.dims(5)[1] : 0;
  c.table = &linear_attention_table(v.machine().isa());
  c.blocks = ceil_div(s.width, c.table->columns);
  c.all = partitioned_here(c.count * c.blocks, us);
  return c;
}

void run_block(const Recurrence& c, const RunArgs& args, std::int64_t task) {
  const auto group = task / c.blocks, first = task % c.blocks * c.table->columns;
  auto j = c.sizes;
  const auto part = [&](std::size_t input, std::int64_t size) {
    return static_cast<const float*>(args.in[input]) + group * size;
  };
  j.q = part(0, j.heads * j.tokens * j.key);
  j.k = part(1, j.tokens * j.key);
  j.v = part(2, j.tokens * j.width);
  if (j.decay_step != 0) j.decay = part(4, j.tokens * j.decay_step);
  if (c.beta_groups != 0)
    j.beta = static_cast<const float*>(args.in[5]) +
             (c.beta_groups == c.groups ? group : group / c.groups) * j.tokens;
  j.y = static_cast<float*>(args.out[0]) + group * j.heads * j.tokens * j.width;
  j.state = static_cast<float*>(args.out[1]) + group * j.key * j.width;
  const auto count = std::min(c.table->columns, j.width - first);
  const float* before = part(3, j.key * j.width);
  for (std::int64_t r = 0; r < j.key; ++r)
    std::memcpy(j.state + r * j.width + first, before + r * j.width + first,
                static_cast<std::size_t>(count) * sizeof(float));
  constexpr std::int64_t kWork = 1 << 20;  // operations between stop points
  const auto token = std::max<std::int64_t>(1, j.key * count * (j.heads + 1));
  StopPoints points(kWork);
  for (std::int64_t t = 0; t < j.tokens;) {
    const auto end = std::min(j.tokens, t + std::max<std::int64_t>(1, kWork / token));
    c.table->run(j, first, count, t, end);
    points((end - t) * token);
    t = end;
  }
}

}  // namespace

void offer_linear_attention(const NodeView& v, Answers& answers) {
  for (std::size_t i = 0; i < v.inputs(); ++i)
    if (v.has(i) && v.element(i) != ElementType::f32)
      return answers.refuse("native", "a recurrence with an input of {}", name_of(v.element(i)));
  for (std::size_t i = 0; i < 4; ++i)
    if (element_count(v.dims(i)) == 0) return answers.refuse("native", "a recurrence without elements");
  const auto work = static_cast<double>(2 * element_count(v.dims(2)) + element_count(v.out_dims())) *
                    static_cast<double>(v.dims(0)[3]);
  const auto bytes = 8 * static_cast<double>(element_count(v.dims(3)));
  const auto cost = cost_of(v.machine(), Family::recurrent, work, bytes);
  const auto code = std::make_shared<const Recurrence>(code_of(v, cost.us()));
  Offer o(v, fmt::format("native_linear_attention_{}_f32", name_of(v.machine().isa())), Layout::plain);
  o.cost = cost;
  o.make = [code](MakeContext&) {
    return executable([code](const RunArgs& args) {
      parallel_for(code->all, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
        for (auto task = begin; task < end; ++task) run_block(*code, args, task);
      });
    });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
