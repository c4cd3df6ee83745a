/// Matrix products, inner products, and what is built on them.
#include "tests/stack/problems.h"

namespace lamina::stack {
namespace {

struct ProductTypes {
  Type left, right, result;
};
const std::vector<ProductTypes> kProductTypes{{Type::f32, Type::f32, Type::f32},
                                              {Type::bf16, Type::bf16, Type::f32},
                                              {Type::u8, Type::s8, Type::s32},
                                              {Type::s8, Type::s8, Type::f32}};

/// How B lies: by rows, by columns, or as oneDNN likes it.
enum class Right { rows, columns, any };

struct Product {
  std::int64_t m, n, k, batch;
  bool transposed_a;
  Right right;
  ProductTypes types;
  Stages stages;

  std::string text() const {
    return fmt::format("{} {}x{} by {}x{} {}{}, {}", batch, m, k, k, n, transposed_a ? "A transposed, " : "",
                       right == Right::rows      ? "B by rows"
                       : right == Right::columns ? "B by columns"
                                                 : "B any",
                       text_of(types.left));
  }
};

Dims with_batch(std::int64_t batch, std::int64_t each, Dims dims) {
  if (batch > 1) dims.insert(dims.begin(), each);
  return dims;
}

dnnl::primitive_desc_base matmul(const Product& p) {
  using onednn::engine;
  const auto dims = [&](std::int64_t rows, std::int64_t columns) {
    return with_batch(p.batch, p.batch, {rows, columns});
  };
  const auto steps = [&](std::int64_t size, std::int64_t row, std::int64_t column) {
    return with_batch(p.batch, size, {row, column});
  };
  const auto a_steps = p.transposed_a ? steps(p.m * p.k, 1, p.m) : steps(p.m * p.k, p.k, 1),
             b_steps = p.right == Right::columns ? steps(p.k * p.n, 1, p.k) : steps(p.k * p.n, p.n, 1);
  const auto c = dims(p.m, p.n);
  const onednn::Desc b = p.right == Right::any ? onednn::Desc(dims(p.k, p.n), p.types.right, Tag::any)
                                               : onednn::Desc(dims(p.k, p.n), p.types.right, b_steps);
  return dnnl::matmul::primitive_desc(engine(), onednn::Desc(dims(p.m, p.k), p.types.left, a_steps), b,
                                      onednn::Desc(c, p.types.result, steps(p.m * p.n, p.n, 1)),
                                      attributes(p.stages, c, c.size() - 1));
}

dnnl::primitive_desc_base inner_product(const Product& p) {
  return dnnl::inner_product_forward::primitive_desc(
      onednn::engine(), dnnl::prop_kind::forward_inference, onednn::Desc({p.m, p.k}, p.types.left, Tag::ab),
      onednn::Desc({p.n, p.k}, p.types.right,
                   p.right == Right::any    ? Tag::any
                   : p.right == Right::rows ? Tag::ba
                                            : Tag::ab),
      onednn::Desc({p.m, p.n}, p.types.result, Tag::ab), attributes(p.stages, {p.m, p.n}, 1));
}

}  // namespace

/// oneDNN's gemm has other code for one row, one column, a short k, and few rows of long ones.
void add_products(std::vector<Problem>& to) {
  for (const auto& types : kProductTypes)
    for (const std::int64_t m : {1, 5, 40})
      for (const std::int64_t n : {1, 20, 50})
        for (const std::int64_t k : {8, 150, 600})
          for (const bool transposed : {false, true})
            for (const auto right : {Right::rows, Right::columns, Right::any})
              for (const auto stages : {Stages::none, Stages::many})
                for (const std::int64_t batch : {1, 2}) {
                  const Product p{m, n, k, batch, transposed, right, types, stages};
                  to.push_back({"matmul", onednn::Primitive::matmul, p.text(), [p] { return matmul(p); }});
                  if (batch == 1 && !transposed)
                    to.push_back({"inner product", std::nullopt, p.text(), [p] { return inner_product(p); }});
                }
}

void add_recurrent(std::vector<Problem>& to) {
  constexpr std::int64_t kSteps = 3, kBatch = 2, kIn = 24, kOut = 40;
  using onednn::Desc;
  const auto weights = [](std::int64_t in, std::int64_t gates, Type type) {
    return Desc({1, 1, in, gates, kOut}, type, Tag::any);
  };
  for (const auto type : {Type::f32, Type::bf16}) {
    const Desc x({kSteps, kBatch, kIn}, type, Tag::tnc), y({kSteps, kBatch, kOut}, type, Tag::tnc),
        state({1, 1, kBatch, kOut}, type, Tag::ldnc), cell({1, 1, kBatch, kOut}, Type::f32, Tag::ldnc);
    const auto bias = [](std::int64_t gates) { return Desc({1, 1, gates, kOut}, Type::f32, Tag::ldgo); };
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto direction = dnnl::rnn_direction::unidirectional_left2right;
    to.push_back({"recurrent", std::nullopt, fmt::format("LSTM {}", text_of(type)), [=] {
                    return dnnl::lstm_forward::primitive_desc(
                        onednn::engine(), kind, direction, x, state, cell, weights(kIn, 4, type),
                        weights(kOut, 4, type), bias(4), y, state, cell, onednn::user_scratch());
                  }});
    to.push_back({"recurrent", std::nullopt, fmt::format("GRU {}", text_of(type)), [=] {
                    return dnnl::gru_forward::primitive_desc(onednn::engine(), kind, direction, x, state,
                                                             weights(kIn, 3, type), weights(kOut, 3, type),
                                                             bias(3), y, state, onednn::user_scratch());
                  }});
    to.push_back({"recurrent", std::nullopt, fmt::format("RNN {}", text_of(type)), [=] {
                    return dnnl::vanilla_rnn_forward::primitive_desc(
                        onednn::engine(), kind, dnnl::algorithm::eltwise_tanh, direction, x, state,
                        weights(kIn, 1, type), weights(kOut, 1, type), bias(1), y, state,
                        onednn::user_scratch());
                  }});
  }
}

}  // namespace lamina::stack
