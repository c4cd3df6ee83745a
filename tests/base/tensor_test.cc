#include "lamina/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "lamina/error.h"

namespace lamina {
namespace {

TEST(ElementType, NamesAndSizes) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(ElementType::undefined); ++i) {
    const auto type = static_cast<ElementType>(i);
    EXPECT_TRUE(names.insert(name_of(type)).second);
    EXPECT_EQ(element_type_named(name_of(type)), type);
    if (type != ElementType::undefined && type != ElementType::boolean) {
      const std::string digits(name_of(type).substr(name_of(type).find_first_of("0123456789")));
      EXPECT_EQ(bits_of(type), std::stoi(digits)) << name_of(type);
      EXPECT_NE(is_float(type), is_integer(type)) << name_of(type);
    }
  }
  EXPECT_EQ(bits_of(ElementType::boolean), 8);
  EXPECT_FALSE(is_integer(ElementType::boolean) || is_float(ElementType::boolean));
  EXPECT_TRUE(is_signed(ElementType::i4) && is_signed(ElementType::f16));
  EXPECT_FALSE(is_signed(ElementType::u1));
  EXPECT_FALSE(element_type_named("float").has_value());
  EXPECT_FALSE(element_type_named("").has_value());
}

TEST(Tensor, StartsInvalid) {
  const Tensor t;
  EXPECT_FALSE(t.valid());
  EXPECT_EQ(t.bytes(), 0u);
  EXPECT_FALSE(t.clone().valid());
}

TEST(Tensor, OwnedMemoryIsZeroAndAligned) {
  for (const auto type : {ElementType::f32, ElementType::u1, ElementType::i64}) {
    const Tensor t(type, {3, 5, 7});
    EXPECT_EQ(t.size(), 105u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.raw()) % 64, 0u);
    EXPECT_TRUE(t.aligned());
    for (std::size_t i = 0; i < t.bytes(); ++i) ASSERT_EQ(t.raw()[i], std::byte{0});
  }
}

TEST(Tensor, Bytes) {
  EXPECT_EQ(Tensor(ElementType::u1, {9}).bytes(), 2u);
  EXPECT_EQ(Tensor(ElementType::i4, {3}).bytes(), 2u);
  EXPECT_EQ(Tensor(ElementType::f16, {3}).bytes(), 6u);
  EXPECT_EQ(Tensor(ElementType::f32, {}).bytes(), 4u);
  EXPECT_EQ(Tensor(ElementType::f32, {4, 0}).bytes(), 0u);
}

TEST(Tensor, ImpossibleShapes) {
  EXPECT_THROW(Tensor(ElementType::f32, {-1}), Error);
  EXPECT_THROW(Tensor(ElementType::f32, {1ll << 40, 1ll << 40}), Error);
  EXPECT_THROW(Tensor(ElementType::f32, {1ll << 60}), Error);
  EXPECT_THROW(Tensor(ElementType::f64, {INT64_MAX}), Error);
  EXPECT_EQ(element_count(Dims{1ll << 30, 0}), 0u);
  EXPECT_THROW(element_count(Dims{1ll << 50, 0}), Error);
  EXPECT_THROW(element_count(Dims{0, -1}), Error);
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  auto t = Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4});
  const auto copy = t, clone = t.clone();
  t.data<float>()[0] = 9;
  EXPECT_EQ(copy.data<float>()[0], 9);
  EXPECT_EQ(clone.data<float>()[0], 1);
  EXPECT_TRUE(copy.same_as(t));
  EXPECT_FALSE(clone.same_as(t));
}

TEST(Tensor, WrapUsesTheCallersMemory) {
  std::vector<std::int32_t> mine = {1, 2, 3};
  auto t = Tensor::wrap<std::int32_t>({3}, mine.data());
  t.data<std::int32_t>()[1] = 7;
  EXPECT_EQ(mine[1], 7);
  EXPECT_EQ(t.element_type(), ElementType::i32);
}

TEST(Tensor, SharedMemoryLivesAsLongAsATensor) {
  auto owner = std::make_shared<std::vector<std::byte>>(16);
  std::weak_ptr<std::vector<std::byte>> watch = owner;
  auto t = Tensor::share(ElementType::u8, {16}, owner, owner->data());
  owner.reset();
  auto view = t.reshaped({4, 4});
  t = {};
  EXPECT_FALSE(watch.expired());
  view = {};
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, UnalignedDataHasNoTypedView) {
  alignas(8) std::byte memory[17] = {};
  const float values[2] = {1.5f, -2.0f};
  std::memcpy(memory + 1, values, sizeof(values));
  const auto t = Tensor::wrap(ElementType::f32, {2}, memory + 1);
  EXPECT_FALSE(t.aligned());
  EXPECT_THROW(t.data<float>(), Error);
  EXPECT_EQ(t.to_aligned().data<float>()[1], -2.0f);
  EXPECT_TRUE(t.to_aligned().same_as(t));
}

TEST(Tensor, ViewsOfAnotherTypeAreRefused) {
  const auto t = Tensor::scalar(1.0f);
  try {
    t.data<double>();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input);
    EXPECT_STREQ(e.what(), "tensor holds f32, wanted f64");
  }
}

TEST(Tensor, ReshapedKeepsData) {
  const auto t = Tensor::of<std::int64_t>({6}, std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  EXPECT_EQ(t.reshaped({2, 3}).raw(), t.raw());
  EXPECT_FALSE(t.reshaped({2, 3}).same_as(t));
  EXPECT_THROW(t.reshaped({7}), Error);
}

TEST(Tensor, LimitsCountDimensionsBesideZeros) {
  double memory = 0;  // it is never read
  const auto refusal = [&](const Dims& shape) -> std::string {
    try {
      Tensor::wrap(ElementType::f64, shape, &memory);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_input);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({0, 1 << 20, 3}), "");
  EXPECT_EQ(refusal({2, 0, std::int64_t{1} << 40}),
            "shape [2,0,1099511627776] has more than 2^40 elements beside its zeros");
  EXPECT_EQ(refusal({std::int64_t{1} << 32, std::int64_t{1} << 32, 0}),
            "shape [4294967296,4294967296,0] has more than 2^40 elements beside its zeros");
  EXPECT_EQ(refusal({INT64_MAX, INT64_MAX}).substr(0, 6), "shape ");
  EXPECT_EQ(refusal(Dims(64, 1)), "");
  EXPECT_EQ(refusal(Dims(65, 1)), "a shape of 65 dimensions, wanted at most 64");
  EXPECT_EQ(refusal({0, -1}), "shape has the dimension -1, wanted 0 or more");
  EXPECT_NE(refusal({0, std::int64_t{1} << 40}).find("beside its zeros is more than this machine's memory"),
            std::string::npos);
}

/// Files may have anything in the bits of the last byte that belong to no element.
TEST(Tensor, BitsBehindTheLastElementAreNoDifference) {
  for (const auto& [type, elements] :
       {std::pair(ElementType::u4, 1), {ElementType::i4, 3}, {ElementType::u1, 5}}) {
    Tensor a(type, {elements}), b(type, {elements});
    std::fill_n(a.raw(), a.bytes(), std::byte{0});
    std::fill_n(b.raw(), b.bytes(), std::byte{0});
    b.raw()[b.bytes() - 1] = std::byte{0x80};
    EXPECT_TRUE(a.same_as(b)) << name_of(type);
    b.raw()[b.bytes() - 1] = std::byte{0x01};
    EXPECT_FALSE(a.same_as(b)) << name_of(type);
  }
}

TEST(Tensor, ValuesMustFitTheShape) { EXPECT_THROW(Tensor::of<float>({3}, std::vector<float>{1, 2}), Error); }

}  // namespace
}  // namespace lamina
