#include "plan/weight_store.h"

#include <gtest/gtest.h>

namespace lamina::testing {
namespace {

Tensor floats(const std::vector<float>& values) {
  Tensor t(ElementType::f32, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.data<float>().begin());
  return t;
}

Tensor doubled(const Tensor& source) {
  Tensor t = source.clone();
  for (auto& v : t.data<float>()) v *= 2;
  return t;
}

Tensor as_it_is(const Tensor& source) { return source; }

TEST(WeightStore, packs_once_under_a_key) {
  ModelWeights store;
  const auto source = floats({1, 2});
  const auto first = store.packed(source, "doubled", PackedSize::like(source), doubled),
             second = store.packed(source, "doubled", PackedSize::like(source), doubled);
  EXPECT_EQ(first.raw(), second.raw());
  EXPECT_EQ(first.data<float>()[1], 4);
  EXPECT_EQ(store.bytes(), 8u);
}

TEST(WeightStore, weights_that_are_used_as_they_lie_are_not_copied) {
  ModelWeights store;
  const auto source = floats({1, 2});
  EXPECT_EQ(store.packed(source, "", PackedSize::like(source), as_it_is).raw(), source.raw());
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(WeightStore, packs_without_denormal_numbers) {
  ModelWeights store;
  const auto source = floats({1, 1e-40f, -1e-44f, 3});
  const auto packed = store.packed(source, "doubled", PackedSize::like(source), doubled),
             as_is = store.packed(source, "", PackedSize::like(source), as_it_is);
  EXPECT_EQ(packed.data<float>()[1], 0);
  EXPECT_EQ(packed.data<float>()[3], 6);
  EXPECT_EQ(as_is.data<float>()[2], 0);
  EXPECT_EQ(source.data<float>()[1], 1e-40f);
  EXPECT_EQ(store.bytes(), 32u);
  EXPECT_EQ(to_string(store.denormals()),
            "2 of 4 numbers in 1 constant are denormal (below 1.18e-38) and count as 0");
}

TEST(WeightStore, forgets_what_no_plan_uses) {
  ModelWeights store;
  auto packed = store.packed(floats({1e-40f, 2}), "doubled", {ElementType::f32, 2}, doubled);
  std::weak_ptr<int> alive;
  {
    const auto owner = std::make_shared<int>(0);
    alive = owner;
    const auto source = floats({1e-41f, 4});
    store.packed(Tensor::share(ElementType::f32, {2}, owner, source.raw()), "doubled", {ElementType::f32, 2},
                 doubled);
  }
  EXPECT_EQ(store.denormals().constants, 1u);
  store.sweep();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(store.denormals().constants, 1u);
  packed = Tensor();
  EXPECT_FALSE(store.denormals());
}

TEST(WeightStore, counts_a_constant_once_however_often_it_is_packed) {
  ModelWeights store;
  const auto source = floats({1e-40f, 2});
  const auto a = store.packed(source, "a", PackedSize::like(source), doubled),
             b = store.packed(source, "b", PackedSize::like(source), doubled);
  EXPECT_EQ(store.denormals().constants, 1u);
}

TEST(WeightStore, a_packing_of_another_size_is_refused) {
  ModelWeights store;
  const auto source = floats({1, 2});
  for (const PackedSize wrong :
       {PackedSize(ElementType::f32, 3), PackedSize(ElementType::f32, 1), PackedSize(ElementType::i32, 2)})
    EXPECT_THROW(store.packed(source, "doubled", wrong, doubled), Error);
  EXPECT_THROW(store.moved(source, "doubled", {ElementType::f32, 3}, doubled), Error);
}

}  // namespace
}  // namespace lamina::testing
