#include "formats/frozen.h"

#include <gtest/gtest.h>

#include "formats/read_error.h"

namespace lamina {
namespace {

Tensor value(const char* text, const TensorType& type) { return frozen_value("x", text, type); }

TEST(FrozenValue, HasTheTypeAndShapeOfItsInput) {
  EXPECT_EQ(value("True", {ElementType::boolean, Shape{}}).raw()[0], std::byte{1});
  EXPECT_EQ(value("[1, 2]", {ElementType::i32, Shape()}).shape(), Dims{2});
  EXPECT_EQ(value("[5]", {ElementType::i32, Shape()}).shape(), Dims{1});
  EXPECT_EQ(value("5", {ElementType::i32, Shape()}).shape(), Dims{});
  EXPECT_EQ(value("(1 2 3 4)", {ElementType::f32, Shape{2, Dim()}}).shape(), (Dims{2, 2}));
  EXPECT_EQ(value("(1 2 3 4)", {ElementType::f32, Shape{Dim(), Dim()}}).shape(), (Dims{1, 4}));
  EXPECT_EQ(value("7", {ElementType::i64, Shape{Dim(), 1}}).shape(), (Dims{1, 1}));
  EXPECT_EQ(value("[]", {ElementType::i64, Shape{0}}).shape(), Dims{0});
}

TEST(FrozenValue, RefusesWhatDoesNotFit) {
  for (const auto* text : {"[1 2 3]", "x", "[1,]x", "[]", "1", "[1 2)"})
    EXPECT_THROW(value(text, {ElementType::f32, Shape{2}}), ReadError) << text;
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_THROW(value("1", {ElementType::f32, Shape{huge, huge}}), ReadError);
  EXPECT_THROW(value("1", {ElementType::f32, Shape{huge, huge, huge, Dim()}}), ReadError);
  EXPECT_THROW(value("1", {ElementType::undefined, Shape{}}), ReadError);
}

}  // namespace
}  // namespace lamina
