/// Matrix products of f32, of bf16 with f32 sums, of u8 or i8 with i32 sums, with broadcast batches, bias and
/// post-ops.
#include "ops/matmul.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/onednn/integers.h"
#include "kernels/onednn/post_ops.h"
#include "ops/activation.h"

namespace lamina::onednn {
namespace {

/// An operand with unit dims in front up to `rank`, as a descriptor of the not transposed matrix.
struct Operand {
  Dims dims, strides;
};

Operand operand(const Dims& dims, std::size_t rank, bool transposed) {
  Operand o;
  o.dims.assign(rank - dims.size(), 1);
  o.dims.insert(o.dims.end(), dims.begin(), dims.end());
  o.strides = strides_of(o.dims, Layout::plain);
  if (transposed) {
    std::swap(o.dims[rank - 1], o.dims[rank - 2]);
    std::swap(o.strides[rank - 1], o.strides[rank - 2]);
  }
  return o;
}

/// Leading dims of `a` and rows as one, when b has no batch: [2,3,4,k] x [k,n] is [24,k] x [k,n].
bool flatten(Dims& a, const Dims& b, Dims& y, bool transpose_a) {
  if (transpose_a || a.size() <= 2 || b.size() != 2) return false;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) rows *= a[i];
  a = {rows, a.back()};
  y = {rows, y.back()};
  return true;
}

/// Operands of the epilogue have one element or one per column, so that rows may be flattened. A slope of
/// rank 1 lies along axis 1, which would be another one.
bool only_columns(const NodeView& v) {
  const auto stages = chain_of(v.node());
  return stages && std::all_of(stages->begin(), stages->end(), [](const Stage& s) {
           const auto& d = s.operand_dims;
           if (s.node->op.is<PRelu>() && d.size() == 1 && d[0] != 1) return false;
           return d.empty() || std::all_of(d.begin(), d.end() - 1, [](auto n) { return n == 1; });
         });
}

/// Cost of [..., m, k] x [..., k, n] = [..., m, n]. `anew`: products run one after the other, each with its
/// own start; `copied`: b is given at run time, and copied into blocks.
Cost product_cost(const Machine& machine, ElementType type, const Dims& a, const Dims& b, const Dims& y,
                  bool anew, bool copied) {
  const auto last = y.size() - 1;
  const bool one_row = y[last - 1] == 1;
  const double filled = one_row ? 1 : filled_lanes(machine, y[last]),
               outputs = static_cast<double>(element_count(y)), k = static_cast<double>(a[last]);
  auto cost = cost_of(machine, one_row ? Family::matmul_row : Family::brgemm_matmul,
                      outputs * k * filled * share_of_f32(machine, type));
  const double b_bytes = bits_of(type) / 8 * static_cast<double>(element_count(b));
  if (one_row)
    cost += cost_of(machine, Family::matmul_row_memory, 0, beyond_caches(machine, b_bytes), 0);
  else
    cost += cost_of(machine, Family::far_weights, 0, beyond_l2(machine, b_bytes), 0) +
            (copied ? move_cost(machine, 2 * b_bytes, 0) : Cost());
  if (anew)
    cost += calls_of(machine, one_row ? Family::gemm_row_again : Family::gemm_again,
                     outputs / static_cast<double>(y[last] * y[last - 1]) - 1);
  return cost;
}

Desc desc_of(const Operand& o, ElementType type) { return Desc(o.dims, *type_of(type), o.strides); }

/// The product as oneDNN is to see it.
struct Matrices {
  Operand a, b, y;
  std::size_t rank = 2;
  bool one_b = false;  ///< for all products
};

Verdict describe(const NodeView& v, Matrices& m) {
  const auto& op = *v.op<MatMul>();
  if (auto verdict = multiplies(v); !verdict) return verdict;
  Dims a = v.dims(0), b = v.dims(1), y = v.out_dims();
  if (element_count(a) == 0 || element_count(b) == 0) return Verdict::no("empty tensors");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (row || column) {
    if (epilogue_size(v.node()) != 0 || v.has(2)) return Verdict::no("an operand of rank 1 with an epilogue");
    if (row) y.insert(y.end() - (column ? 0 : 1), 1);
    if (column) y.push_back(1);
  }
  const bool ta = op.transpose_a && !row, tb = op.transpose_b && !column;
  while (b.size() > 2 && b.front() == 1) b.erase(b.begin());
  if (only_columns(v)) flatten(a, b, y, ta);
  m.rank = std::max({a.size(), b.size(), y.size(), std::size_t{2}});
  if (m.rank > 6) return Verdict::no("rank {}", m.rank);
  m.a = operand(a, m.rank, ta), m.b = operand(b, m.rank, tb), m.y = operand(y, m.rank, false);
  m.one_b = b.size() == 2;
  return Verdict::yes();
}

/// The bias as oneDNN is to see it: of the node, or what its epilogue begins with; none: empty.
Verdict describe(const NodeView& v, std::size_t rank, PostOps& post, Desc& bias) {
  if (v.has(2)) {
    const auto dims = v.dims(2);
    Dims wide(rank - std::min(rank, dims.size()), 1);
    wide.insert(wide.end(), dims.begin(), dims.end());
    if (wide.size() != rank || std::any_of(wide.begin(), wide.end() - 1, [](auto d) { return d != 1; }))
      return Verdict::no("bias {} is not one value per column", to_string(dims));
    bias = desc(wide, ElementType::f32, Layout::plain);
  } else if (!post.bias.empty()) {
    Dims wide(rank, 1);
    wide.back() = static_cast<std::int64_t>(post.bias.size());
    bias = desc(wide, ElementType::f32, Layout::plain);
    post.args.push_back({DNNL_ARG_BIAS, bias, Arg::From::constant, 0, Tensor::of(wide, post.bias)});
  }
  return Verdict::yes();
}

/// `weights`: packed when the kernel is made; invalid: given at run time. `operands`: of the epilogue, zero
/// points.
struct Product {
  dnnl::matmul::primitive_desc pd;
  std::vector<Arg> operands;
  Tensor weights;
  Desc plain_weights;
  bool bias_given;
};

auto maker(Product product, const Integers& integers) {
  return [product = std::move(product), prepare = integers.prepare(),
          key = "onednn" + integers.key()](MakeContext& context) {
    const auto& pd = product.pd;
    auto args = aligned(product.operands, context);
    args.push_back({DNNL_ARG_SRC, pd.src_desc(), Arg::From::input, 0, {}});
    if (product.weights.valid())
      args.push_back(
          {DNNL_ARG_WEIGHTS, pd.weights_desc(), Arg::From::constant, 0,
           pack(context, product.weights, product.plain_weights, pd.weights_desc(), key, prepare)});
    else
      args.push_back({DNNL_ARG_WEIGHTS, pd.weights_desc(), Arg::From::input, 1, {}});
    if (product.bias_given) args.push_back({DNNL_ARG_BIAS, pd.bias_desc(), Arg::From::input, 2, {}});
    args.push_back({DNNL_ARG_DST, pd.dst_desc(), Arg::From::output, 0, {}});
    return make_primitive(dnnl::matmul(pd), std::move(args), pd.scratchpad_desc());
  };
}

}  // namespace

void offer_matmul(const NodeView& v, Answers& answers) {
  Matrices m;
  if (const auto ok = describe(v, m); !ok) return answers.refuse("onednn", "{}", ok.reason());
  const auto& [a, b, y, rank, one_b] = m;
  const auto type = multiplied(v);
  const auto b_type = is_byte(type) ? ElementType::i8 : type;
  const Tensor* weights = one_b ? v.constant(1) : nullptr;
  Integers integers;
  if (is_byte(type))
    if (const auto ok =
            Integers::describe(v, weights, {b.dims[rank - 1], b.strides[rank - 1]}, true, integers);
        !ok)
      return answers.refuse("onednn", "{}", ok.reason());
  const auto plain_b = desc_of(b, b_type);
  const auto b_desc = weights ? any(b.dims, b_type) : plain_b;
  auto post = post_ops(v, y.dims, Layout::plain, rank - 1, 1 << (rank - 1));
  integers.set(post.attr);
  Desc bias;
  if (const auto ok = describe(v, rank, post, bias); !ok) return answers.refuse("onednn", "{}", ok.reason());
  post.args.insert(post.args.end(), integers.args().begin(), integers.args().end());
  const Asked asked{.primitive = Primitive::matmul,
                    .node = v,
                    .post = &post,
                    .integers = is_byte(type) ? &integers : nullptr,
                    .bias = v.has(2) || !post.bias.empty(),
                    .products = a.dims[rank - 1]};
  const auto pd = try_create(answers, asked, fmt::format("matmul {}", operands_name(v)), [&] {
    return dnnl::matmul::primitive_desc(engine(), desc_of(a, type), b_desc, bias, desc_of(y, post.result),
                                        post.attr);
  });
  if (!post.refusal.empty())
    answers.refuse("onednn", "epilogue ends after {} stages: {}", post.stages, post.refusal);
  if (!pd) return;
  Offer o(v, label(v.machine(), pd->impl_info_str(), operands_name(v)), Layout::plain);
  o.stages = post.stages;
  o.scratch = pd->scratchpad_desc().get_size();
  o.cost = product_cost(v.machine(), type, a.dims, b.dims, y.dims, o.label.starts_with("gemm"),
                        !weights && !is_byte(type)) +
           post.cost;
  o.consumed = integers.consumed();
  if (weights) {
    o.consumed.push_back(1);
    if (!integers.looks_at_weights()) o.packed = {1};
  } else if (is_byte(type)) {  // it packs them itself
    o.cost += move_cost(v.machine(), static_cast<double>(element_count(b.dims)), 0);
  }
  o.make = maker({*pd, post.args, weights ? *weights : Tensor(), plain_b, v.has(2)}, integers);
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina::onednn
