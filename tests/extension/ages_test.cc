// Libraries and engines of different ages: old flags and the first header here, a new library in the first
// engine.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/shared_library.h"

// The first engine's side of the border. Its structs are not those of this lamina: the header that is the
// library's now is not seen here.
#include <stddef.h>
#include <stdint.h>
namespace first {
#include "tests/libraries/first/lamina/extension.h"

struct lamina_context {
  std::string error;
  std::map<std::string, double> reals;
};
struct lamina_registrar {
  std::vector<lamina_operation> operations;
  std::vector<size_t> sizes;
};
}  // namespace first

namespace lamina::testing {
namespace {

/// As every engine reads structs: no more than it knows.
template <class T>
T taken(const T* from) {
  T out{};
  std::memcpy(&out, from, std::min(from->struct_size, sizeof(T)));
  return out;
}

first::lamina_status fail(first::lamina_context* context, const char* text) {
  context->error = text;
  return first::LAMINA_FAILED;
}

first::lamina_host first_host() {
  first::lamina_host host{};
  host.struct_size = sizeof(host);
  host.engine = "the first";
  host.query = [](const char*) -> first::lamina_function { return nullptr; };
  host.describe = [](first::lamina_registrar*, const first::lamina_library* library) -> first::lamina_status {
    return library->struct_size > 0 ? first::LAMINA_OK : first::LAMINA_FAILED;
  };
  host.add_operation = [](first::lamina_registrar* r,
                          const first::lamina_operation* op) -> first::lamina_status {
    r->operations.push_back(taken(op));
    r->sizes.push_back(op->struct_size);
    return first::LAMINA_OK;
  };
  host.fail = fail;
  host.get_float = [](first::lamina_context* c, const char* name, double* value) -> first::lamina_status {
    *value = c->reals.at(name);
    return first::LAMINA_OK;
  };
  return host;
}

TEST(Ages, TheNewestLibraryInTheFirstEngine) {
  static const auto host = first_host();
  const auto library = SharedLibrary::open(std::string(LAMINA_TEST_EXTENSIONS) + "/keeps.so");
  using Entry = int (*)(const first::lamina_host*, first::lamina_registrar*);
  first::lamina_registrar registrar;
  ASSERT_EQ(reinterpret_cast<Entry>(library->symbol("lamina_extension"))(&host, &registrar), 0);
  const auto& op = registrar.operations.at(0);
  EXPECT_STREQ(op.type, "Table");
  EXPECT_GT(registrar.sizes[0], sizeof(op));  // it says more than this engine knows

  first::lamina_context context{{}, {{"step", 2}}};
  const int64_t dims[] = {1, 3, 2}, strides[] = {6, 2, 1};
  float x[] = {1, 1, 1, 1, 1, 1}, y[6] = {};
  const first::lamina_value value{sizeof(value), first::LAMINA_F32, 3, dims, dims, nullptr, nullptr};
  const first::lamina_value* const values[] = {&value};
  first::lamina_node node{sizeof(node), &context, 1, values, 1, values, 0, 0, nullptr};
  void* instance = nullptr;
  ASSERT_EQ(op.create(&node, &instance), first::LAMINA_OK) << context.error;

  const first::lamina_tensor in{sizeof(in), x, sizeof(x), first::LAMINA_F32, 0, 3, 0, dims, strides, 6};
  const first::lamina_tensor out{sizeof(out), y, sizeof(y), first::LAMINA_F32, 0, 3, 0, dims, strides, 6};
  const first::lamina_tensor *const ins[] = {&in}, *const outs[] = {&out};
  first::lamina_call call{};
  call.struct_size = sizeof(call);
  call.context = &context;
  call.instance = instance;
  call.inputs = call.outputs = 1;
  call.in = ins;
  call.out = outs;
  ASSERT_EQ(op.run(&call), first::LAMINA_OK) << context.error;
  op.destroy(instance);
  EXPECT_EQ((std::vector<float>(y, y + 6)), (std::vector<float>{2, 2, 4, 4, 6, 6}));
}

}  // namespace
}  // namespace lamina::testing
