#include "c_interface/tensors.h"

#include <sstream>

#include "c_interface/lent.h"
#include "c_interface/structs.h"
#include "c_interface/types.h"

namespace lamina::c_interface {
namespace {

constexpr std::size_t kMostRank = 1024;  // a larger one has not been set

/// Throws Error(bad_input) unless `bytes` are enough for the tensor.
void check_memory(const Tensor& tensor, std::size_t bytes) {
  if (bytes < tensor.bytes())
    fail(ErrorCode::bad_input, "{} bytes of memory, wanted {} for {}[{}]", bytes, tensor.bytes(),
         name_of(tensor.element_type()), fmt::join(tensor.shape(), ","));
}

/// A tensor in the caller's memory.
template <class Data>
std::unique_ptr<lamina_c_tensor> borrow(std::int32_t type, Dims shape, Data* data, std::size_t bytes,
                                        lamina_c_release release, void* user) {
  const auto owner = lent(release, user);
  auto handle = std::make_unique<lamina_c_tensor>();
  if constexpr (std::is_const_v<Data>)
    handle->tensor = Tensor::share(type_of(type), std::move(shape), owner, data);
  else
    handle->tensor = Tensor::wrap(type_of(type), std::move(shape), data, owner);
  check_memory(handle->tensor, bytes);
  owner->take();
  return handle;
}

}  // namespace

Dims dims_of(std::size_t rank, const std::int64_t* dims) {
  if (rank > kMostRank) fail(ErrorCode::bad_input, "rank {}, wanted at most {}", rank, kMostRank);
  if (rank == 0) return {};
  argument(dims, "the array of sizes");
  return {dims, dims + rank};
}

std::vector<Dims> shapes_of(std::size_t inputs, std::size_t count, const std::size_t* ranks,
                            const std::int64_t* const* dims) {
  if (count != inputs) fail(ErrorCode::bad_input, "shapes of {} inputs: the model has {}", count, inputs);
  std::vector<Dims> shapes;
  for (std::size_t i = 0; i < count; ++i)
    shapes.push_back(
        dims_of((&argument(ranks, "the array of ranks"))[i], (&argument(dims, "the array of shapes"))[i]));
  return shapes;
}

std::unique_ptr<lamina_c_tensor> handle_of(Tensor tensor) {
  auto handle = std::make_unique<lamina_c_tensor>();
  handle->tensor = std::move(tensor);
  return handle;
}

Tensor tensor_or_none(const lamina_c_tensor* handle) { return handle == nullptr ? Tensor() : handle->tensor; }

void show(const Tensor& tensor, lamina_c_tensor_info* to) {
  lamina_c_tensor_info out{};
  out.type = number_of(tensor.element_type());
  out.read_only = tensor.read_only();
  out.rank = tensor.rank();
  out.dims = tensor.shape().data();
  out.elements = tensor.size();
  out.bytes = tensor.bytes();
  out.data = const_cast<std::byte*>(tensor.raw());  // whoever gets it is told whether it may be written
  out.aligned = tensor.aligned();
  give(to, out, "lamina_c_tensor_info");
}

}  // namespace lamina::c_interface

using namespace lamina;
using namespace lamina::c_interface;

lamina_c_status lamina_c_element_count(size_t rank, const int64_t* dims, size_t* count) {
  return call("lamina_c_element_count", [&] {
    argument(count, "where to put the number of elements") = element_count(dims_of(rank, dims));
  });
}

lamina_c_status lamina_c_tensor_new(int32_t type, size_t rank, const int64_t* dims,
                                    lamina_c_tensor** tensor) {
  return call_making("lamina_c_tensor_new", tensor,
                     [&] { return handle_of(Tensor(type_of(type), dims_of(rank, dims))); });
}

lamina_c_status lamina_c_tensor_borrow(int32_t type, size_t rank, const int64_t* dims, void* data,
                                       size_t bytes, lamina_c_release release, void* user,
                                       lamina_c_tensor** tensor) {
  return call_making("lamina_c_tensor_borrow", tensor,
                     [&] { return borrow(type, dims_of(rank, dims), data, bytes, release, user); });
}

lamina_c_status lamina_c_tensor_borrow_const(int32_t type, size_t rank, const int64_t* dims, const void* data,
                                             size_t bytes, lamina_c_release release, void* user,
                                             lamina_c_tensor** tensor) {
  return call_making("lamina_c_tensor_borrow_const", tensor,
                     [&] { return borrow(type, dims_of(rank, dims), data, bytes, release, user); });
}

lamina_c_status lamina_c_tensor_get(const lamina_c_tensor* tensor, lamina_c_tensor_info* info) {
  return call("lamina_c_tensor_get", [&] { show(object(tensor, "tensor").tensor, info); });
}

lamina_c_status lamina_c_tensor_share(const lamina_c_tensor* tensor, lamina_c_tensor** shared) {
  return call_making("lamina_c_tensor_share", shared,
                     [&] { return handle_of(object(tensor, "tensor").tensor); });
}

lamina_c_status lamina_c_tensor_clone(const lamina_c_tensor* tensor, lamina_c_tensor** copy) {
  return call_making("lamina_c_tensor_clone", copy,
                     [&] { return handle_of(object(tensor, "tensor").tensor.clone()); });
}

lamina_c_status lamina_c_tensor_reshape(const lamina_c_tensor* tensor, size_t rank, const int64_t* dims,
                                        lamina_c_tensor** reshaped) {
  return call_making("lamina_c_tensor_reshape", reshaped, [&] {
    return handle_of(object(tensor, "tensor").tensor.reshaped(dims_of(rank, dims)));
  });
}

lamina_c_status lamina_c_tensor_align(const lamina_c_tensor* tensor, lamina_c_tensor** aligned) {
  return call_making("lamina_c_tensor_align", aligned,
                     [&] { return handle_of(object(tensor, "tensor").tensor.to_aligned()); });
}

lamina_c_status lamina_c_tensor_compare(const lamina_c_tensor* a, const lamina_c_tensor* b, int32_t* same) {
  return call("lamina_c_tensor_compare", [&] {
    argument(same, "where to put the result") =
        object(a, "tensor").tensor.same_as(argument(b, "the other tensor").tensor);
  });
}

lamina_c_status lamina_c_tensor_text(const lamina_c_tensor* tensor, char* buffer, size_t capacity,
                                     size_t* length) {
  return call("lamina_c_tensor_text", [&] {
    std::ostringstream out;
    out << tensor_or_none(tensor);
    copy_text(out.str(), buffer, capacity, length);
  });
}

void lamina_c_tensor_free(lamina_c_tensor* tensor) { delete tensor; }
