/// Wrong use of the library is an Error with the right code, or works.
#include <tbb/global_control.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/api/small_models.h"

namespace lamina::misuse_test {
namespace {

using namespace testing;

Request ready(const CompiledModel& compiled, std::int64_t batch = 2) {
  auto request = compiled.create_request();
  request.set_input(0, rows(batch, 1));
  request.set_input(1, rows(batch, 2));
  return request;
}

TEST(Misuse, objects_that_were_moved_from) {
  const auto code = ErrorCode::bad_call;
  Model model = model_of(sums());
  CompiledModel compiled(model);
  Request request = ready(compiled);
  const Model other_model = std::move(model);
  const CompiledModel other_compiled = std::move(compiled);
  const Request other_request = std::move(request);
  // NOLINTBEGIN(bugprone-use-after-move)
  expect_error([&] { (void)model.inputs(); }, code, "moved from");
  expect_error([&] { (void)model.unsupported(); }, code, "moved from");
  expect_error([&] { CompiledModel{model}; }, code, "moved from");
  expect_error([&] { (void)compiled.outputs(); }, code, "moved from");
  expect_error([&] { (void)compiled.create_request(); }, code, "moved from");
  expect_error([&] { (void)compiled(std::vector<Tensor>{}); }, code, "moved from");
  expect_error([&] { request.set_input(0, rows(2, 1)); }, code, "moved from");
  expect_error([&] { request.set_output("Add_2", {}); }, code, "moved from");
  expect_error([&] { request.run(); }, code, "moved from");
  expect_error([&] { (void)request.output(0); }, code, "moved from");
  expect_error([&] { (void)request.layer_times(); }, code, "moved from");
  expect_error([&] { (void)request.memory(); }, code, "moved from");
  Tensor tensor = rows(2, 1);
  const Tensor other = std::move(tensor);
  EXPECT_FALSE(tensor.valid());
  EXPECT_EQ(tensor.size(), 0u);
  EXPECT_EQ(tensor.raw(), nullptr);
  expect_error([&] { (void)tensor.data<float>(); }, ErrorCode::bad_input, "undefined");
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_TRUE(other.same_as(rows(2, 1)));
}

TEST(Misuse, a_request_used_by_two_threads) {
  const CompiledModel compiled(model_of(sums()), {.threads = 1});
  Request request = ready(compiled);
  std::atomic<int> refused = 0, fine = 0;
  const auto hammer = [&] {
    for (int i = 0; i < 2000; ++i) try {
        request.run();
        ++fine;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::busy) << e.what();
        ++refused;
      }
  };
  std::thread a(hammer), b(hammer);
  a.join();
  b.join();
  EXPECT_EQ(refused + fine, 4000);
  EXPECT_GT(fine, 0);
  request.run();
  EXPECT_TRUE(request.output(1).same_as(rows(2, 3)));
}

TEST(Misuse, a_request_used_while_it_is_busy) {
  auto request = ready(CompiledModel(model_of(sums())));
  const auto values = std::make_shared<std::vector<float>>(8, 1.0F);
  std::string found;
  // Called when the request lets go of the tensor, in the middle of set_input.
  std::shared_ptr<const void> owner(values.get(), [&, values](const void*) {
    found = error_of([&] { request.run(); }, ErrorCode::busy);
    expect_error([&] { (void)request.output(0); }, ErrorCode::busy, "in use");
  });
  request.set_input(0, Tensor::share(ElementType::f32, {2, 4}, owner, values->data()));
  EXPECT_EQ(owner.use_count(), 2);
  owner.reset();
  request.set_input(0, rows(2, 1));
  EXPECT_NE(found.find("another thread changes it"), std::string::npos) << found;
  request.run();
}

TEST(Misuse, null_pointers) {
  float* const none = nullptr;
  const float* const const_none = nullptr;
  expect_error([&] { Tensor::wrap({2}, none); }, ErrorCode::bad_input, "null pointer, wanted 8 bytes");
  expect_error([&] { Tensor::wrap({2}, const_none); }, ErrorCode::bad_input, "null");
  expect_error([&] { Tensor::share(ElementType::i64, {2}, nullptr, nullptr); }, ErrorCode::bad_input, "null");
  EXPECT_EQ(Tensor::wrap({2, 0}, none).size(), 0u);
}

TEST(Misuse, options_out_of_range) {
  const auto model = model_of(sums());
  const auto code = ErrorCode::bad_option;
  for (const int threads : {-1, 1025, 100000, INT32_MAX})
    expect_error([&] { CompiledModel(model, {.threads = threads}); }, code, "wanted 0 to 1024");
  expect_error([&] { CompiledModel(model, {.cached_plans = 0}); }, code, "wanted 1 to 1000");
  expect_error([&] { CompiledModel(model, {.precision = static_cast<Precision>(7)}); }, code, "precision 7");
  expect_error([&] { CompiledModel(model, {.max_isa = "mmx"}); }, code, "mmx");
  expect_error([&] { CompiledModel(model, {.disable = {"no-such-rule"}}); }, code, "no-such-rule");
}

TEST(Misuse, every_precision_is_said) {
  for (const auto& [precision, text] : {std::pair{Precision::f32, "f32"}, {Precision::bf16, "bf16"}}) {
    std::mutex mutex;
    std::vector<std::string> lines;
    Options options;
    options.precision = precision;
    options.log = [&](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex);
      lines.emplace_back(line);
    };
    const CompiledModel compiled(model_of(sums()), options);
    ASSERT_FALSE(lines.empty());
    EXPECT_NE(lines[0].find(text), std::string::npos) << lines[0];
  }
}

TEST(Misuse, tensors_that_do_not_fit_their_use) {
  auto t = rows(2, 1);
  expect_error([&] { t.reshaped({3, 3}); }, ErrorCode::bad_input, "9 elements, wanted 8");
  expect_error([&] { t.reshaped({-1}); }, ErrorCode::bad_input, "-1");
  expect_error([&] { (void)t.data<int>(); }, ErrorCode::bad_input, "tensor holds f32, wanted i32");
  alignas(8) char bytes[20] = {};
  const auto odd = Tensor::wrap(ElementType::f32, {4}, bytes + 1);
  expect_error([&] { (void)odd.data<float>(); }, ErrorCode::bad_input, "no multiple of 4");
  EXPECT_EQ(odd.to_aligned().data<float>()[0], 0);
  expect_error([&] { Tensor(ElementType::undefined, {1}); }, ErrorCode::bad_input, "undefined");
  expect_error([&] { Tensor(static_cast<ElementType>(99), {1}); }, ErrorCode::bad_input, "undefined");
  EXPECT_EQ(name_of(static_cast<ElementType>(99)), "undefined");
  expect_error([&] { Tensor::of<float>({3}, std::vector<float>(2)); }, ErrorCode::bad_input, "2 values");
  expect_error([&] { Tensor(ElementType::f32, {1LL << 60}); }, ErrorCode::bad_input, "1152921504606846976");
}

TEST(Misuse, types_of_cpp) {
  long long values[] = {1, 2};
  unsigned long long others[] = {3, 4};
  EXPECT_EQ(Tensor::wrap({2}, values).element_type(), ElementType::i64);
  EXPECT_EQ(Tensor::wrap({2}, others).element_type(), ElementType::u64);
  EXPECT_EQ(Tensor::wrap({2}, values).data<long long>()[1], 2);
  EXPECT_EQ(Tensor::of<long>({1}, std::vector<long>{5}).data<std::int64_t>()[0], 5);
  static_assert(element_type_of<const float> == ElementType::f32);
  static_assert(!Element<char> && !Element<float*> && !Element<std::string> && Element<signed char>);
}

TEST(Misuse, const_memory_is_an_input_and_no_output) {
  const std::vector<float> values(8, 1);
  const auto tensor = Tensor::wrap({2, 4}, values.data());
  EXPECT_TRUE(tensor.read_only());
  EXPECT_FALSE(tensor.clone().read_only());
  auto request = ready(CompiledModel(model_of(sums())));
  request.set_input("a", tensor);
  request.run();
  EXPECT_TRUE(request.output("Add_2").same_as(rows(2, 3)));
  expect_error([&] { request.set_output(0, tensor); }, ErrorCode::bad_input, "only to be read");
}

TEST(Misuse, outputs_that_do_not_fit_are_refused_at_once) {
  auto request = ready(CompiledModel(model_of(sums())));
  const auto code = ErrorCode::bad_input;
  expect_error([&] { request.set_output(2, rows(2, 0)); }, code, "the model has 2");
  expect_error(
      [&] {
        request.set_output(0, Tensor(ElementType::i32, {2, 4}));
      },
      code, "output \"Negative_3\": i32[2,4], wanted f32[?,4]");
  expect_error([&] { request.set_output(0, Tensor(ElementType::f32, {2, 5})); }, code, "wanted f32[?,4]");
  expect_error([&] { request.set_output(0, Tensor(ElementType::f32, {8})); }, code, "wanted f32[?,4]");
  alignas(8) char bytes[40] = {};
  expect_error(
      [&] {
        request.set_output(0, Tensor::wrap(ElementType::f32, {2, 4}, bytes + 2));
      },
      code, "address");
  request.run();  // with its own memory
  EXPECT_TRUE(request.output(0).same_as(rows(2, -3)));
}

TEST(Misuse, outputs_that_do_not_fit_these_inputs) {
  auto request = ready(CompiledModel(model_of(sums())));
  request.set_output(1, rows(3, 0));
  expect_error([&] { request.run(); }, ErrorCode::bad_input,
               "output \"Add_2\": f32[3,4] given, wanted f32[2,4]");
  expect_error([&] { (void)request.output(1); }, ErrorCode::bad_input, "the last run failed");
  request.set_input(0, rows(3, 1));
  request.set_input(1, rows(3, 2));
  request.run();
  EXPECT_TRUE(request.output(1).same_as(rows(3, 3)));
  request.set_output(1, {});
  request.set_input(0, rows(1, 1));
  request.set_input(1, rows(1, 2));
  request.run();
  EXPECT_TRUE(request.output(1).same_as(rows(1, 3)));
}

TEST(Misuse, outputs_whose_shape_depends_on_values) {
  auto request = CompiledModel(model_of(non_zeros())).create_request();
  std::vector<std::int64_t> mine(2, -1);
  request.set_output(0, Tensor::wrap({1, 2}, mine.data()));
  request.set_input(0, Tensor::of<float>({6}, std::vector<float>{0, 1, 0, 0, 1, 0}));
  request.run();
  EXPECT_EQ(mine, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(request.output(0).raw(), reinterpret_cast<std::byte*>(mine.data()));
  request.set_input(0, Tensor::of<float>({6}, std::vector<float>{1, 1, 1, 0, 0, 0}));
  expect_error([&] { request.run(); }, ErrorCode::bad_input, "i64[1,2] given, wanted i64[1,3]");
  request.set_output(0, {});
  request.run();
  EXPECT_EQ(request.output(0).shape(), (Dims{1, 3}));
}

TEST(Misuse, memory_for_two_things) {
  auto request = ready(CompiledModel(model_of(sums())));
  std::vector<float> mine(12);
  request.set_output(0, Tensor::wrap({2, 4}, mine.data()));
  request.set_output(1, Tensor::wrap({2, 4}, mine.data() + 4));
  expect_error([&] { request.run(); }, ErrorCode::bad_input,
               "output \"Add_2\" overlaps output \"Negative_3\"");
  request.set_output(1, {});
  request.set_input(0, Tensor::wrap({2, 4}, mine.data()));
  expect_error([&] { request.run(); }, ErrorCode::bad_input, "output \"Negative_3\" overlaps input \"a\"");
  request.set_output(0, {});
  request.run();
  EXPECT_TRUE(request.output(1).same_as(rows(2, 2)));
}

TEST(Misuse, a_result_may_be_the_next_input) {
  auto request = ready(CompiledModel(model_of(sums())));
  for (int i = 0; i < 5; ++i) {  // a = a + 2
    request.run();
    EXPECT_TRUE(request.output(1).same_as(rows(2, static_cast<float>(3 + 2 * i)))) << request.output(1);
    request.set_input(0, request.output(1));
  }
}

TEST(Misuse, inputs_can_be_released) {
  struct Watched {
    std::vector<float> values = std::vector<float>(8, 1);
  };
  auto held = std::make_shared<Watched>();
  const std::weak_ptr<Watched> watch = held;
  const CompiledModel compiled(model_of(sums()));
  auto request = ready(compiled);
  const auto shared = [&] { return Tensor::share(ElementType::f32, {2, 4}, held, held->values.data()); };
  request.set_input("a", shared());
  request.run();
  request.set_input("a", {});
  EXPECT_TRUE(request.output(1).same_as(rows(2, 3)));
  expect_error([&] { request.run(); }, ErrorCode::bad_input, "input \"a\": no tensor");
  (void)compiled({shared(), rows(2, 2)});
  held.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(Misuse, a_shape_that_the_model_cannot_run) {
  const CompiledModel compiled(model_of(sums()));
  auto request = ready(compiled);
  request.run();
  request.set_input(1, rows(3, 1));
  expect_error([&] { request.run(); }, ErrorCode::bad_input,
               "the model cannot run on \"a\" f32[2,4], \"b\" f32[3,4]: ");
  expect_error([&] { (void)request.output(0); }, ErrorCode::bad_input, "the last run failed");
  request.set_input(1, rows(2, 2));
  request.run();
  EXPECT_TRUE(request.output(1).same_as(rows(2, 3)));
}

TEST(Misuse, a_limit_of_oneTBB_is_kept_and_said) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 1);
  std::vector<std::string> lines;
  Options options;
  options.threads = 3;
  options.log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
  const CompiledModel compiled(model_of(sums()), options);
  EXPECT_EQ(compiled.threads(), 1);
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines[0].find("1 threads, of 3 wanted"), std::string::npos) << lines[0];
  auto request = ready(compiled);
  request.run();
  EXPECT_TRUE(request.output(1).same_as(rows(2, 3)));
}

}  // namespace
}  // namespace lamina::misuse_test
