#pragma once
/// Models of a few layers, read from memory.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "lamina/lamina.h"
#include "tests/support/ir_text.h"

namespace lamina::testing {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline Model model_of(const IrText& ir) {
  const auto text = ir.text();
  return Model::from_memory({.model = bytes_of(text), .weights = bytes_of(ir.bin), .name = "test.xml"});
}

/// a + b, of any batch; and its negative. Outputs: the second first.
inline IrText sums() {
  IrText ir;
  const int a = ir.parameter("a", "?,4"), b = ir.parameter("b", "?,4");
  const int sum = ir.layer("Add", "opset1", "", {{a}, {b}});
  const int negative = ir.layer("Negative", "opset1", "", {{sum}});
  ir.result({negative});
  ir.result({sum});
  return ir;
}

/// How many values are not 0, and where: a result whose shape depends on data.
inline IrText non_zeros() {
  IrText ir;
  const int x = ir.parameter("x", "6");
  ir.result({ir.layer("NonZero", "opset3", R"(output_type="i64")", {{x}})});
  return ir;
}

/// A chain of `count` matrix products of a square with itself, each after a Tanh: work of some length.
inline IrText products(int count, int size) {
  IrText ir;
  const auto shape = std::to_string(size) + "," + std::to_string(size);
  const int x = ir.parameter("x", shape);
  int last = x;
  for (int i = 0; i < count; ++i) {
    last = ir.layer("MatMul", "opset1", R"(transpose_a="false" transpose_b="true")", {{last}, {x}});
    last = ir.layer("Tanh", "opset1", "", {{last}});
  }
  ir.result({last});
  return ir;
}

/// Products with weights that a scale behind them is folded into: rewriting has work for several threads.
inline IrText scaled_products(int size) {
  IrText ir;
  const auto count = static_cast<std::size_t>(size);
  const int x = ir.parameter("x", "4," + std::to_string(size));
  const int w =
      ir.constant(std::to_string(size) + "," + std::to_string(size), std::vector<float>(count * count, 0.5F));
  const int scale = ir.constant("1," + std::to_string(size), std::vector<float>(count, 3));
  const int y = ir.layer("MatMul", "opset1", R"(transpose_a="false" transpose_b="true")", {{x}, {w}});
  ir.result({ir.layer("Multiply", "opset1", R"(auto_broadcast="numpy")", {{y}, {scale}})});
  return ir;
}

inline Tensor square(int size, float value) {
  Tensor t(ElementType::f32, {size, size});
  for (auto& v : t.data<float>()) v = value;
  return t;
}

inline Tensor rows(std::int64_t batch, float value) {
  Tensor t(ElementType::f32, {batch, 4});
  for (auto& v : t.data<float>()) v = value;
  return t;
}

/// What is thrown, an Error of that code with one short line; "" (and a failure) when nothing is.
inline std::string error_of(const std::function<void()>& f, ErrorCode code) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "no Error: " << e.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expect_error(const std::function<void()>& f, ErrorCode code, std::string_view text) {
  const auto found = error_of(f, code);
  EXPECT_NE(found.find(text), std::string::npos) << found << "\nwanted: " << text;
}

}  // namespace lamina::testing
