#include "lamina/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/guard.h"
#include "base/limits.h"
#include "base/memory_left.h"
#include "base/no_destructor.h"
#include "base/shape_only.h"
#include "base/work_bounds.h"
#include "base/work_partition.h"

namespace lamina {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
  char kind;  // f float, s signed, u unsigned, b boolean
};

constexpr std::array<TypeRow, 26> kTypes{
    {{"f32", 32, 'f'},    {"f16", 16, 'f'},       {"bf16", 16, 'f'},  {"f64", 64, 'f'},
     {"i64", 64, 's'},    {"i32", 32, 's'},       {"i16", 16, 's'},   {"i8", 8, 's'},
     {"u64", 64, 'u'},    {"u32", 32, 'u'},       {"u16", 16, 'u'},   {"u8", 8, 'u'},
     {"boolean", 8, 'b'}, {"u1", 1, 'u'},         {"i4", 4, 's'},     {"u4", 4, 'u'},
     {"i2", 2, 's'},      {"u2", 2, 'u'},         {"f8e4m3", 8, 'f'}, {"f8e4m3fnuz", 8, 'f'},
     {"f8e5m2", 8, 'f'},  {"f8e5m2fnuz", 8, 'f'}, {"f8e8m0", 8, 'f'}, {"f4e2m1", 4, 'f'},
     {"nf4", 4, 'f'},     {"undefined", 0, ' '}}};

/// A number that is no type of ours counts as undefined.
const TypeRow& row(ElementType type) {
  return kTypes[std::min(static_cast<std::size_t>(type), kTypes.size() - 1)];
}

std::size_t alignment_of(ElementType type) {
  return static_cast<std::size_t>(std::max(1, row(type).bits / 8));
}

std::size_t byte_count(ElementType type, std::size_t count) {
  return (count * static_cast<std::size_t>(row(type).bits) + 7) / 8;
}

/// No tensor can be larger than the memory of the machine and of the process' control groups; a model that
/// wants one is damaged.
const MemoryLeft& memory_limit() {
  static const ProcessLifetime limit([] { return memory_in_all(); });
  return *limit;
}

constexpr std::size_t kAlignment = 64;

/// Large tensors lie on huge pages where the system gives them: reading weights once per inference is bound
/// by address translation otherwise.
constexpr std::size_t kHugePage = std::size_t{2} << 20, kLarge = 2 * kHugePage;

std::byte* aligned_up(void* memory, std::size_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return static_cast<std::byte*>(memory) + (round_up(address, alignment) - address);
}

/// The memory with what was taken for it from an account, which is given back with it.
std::shared_ptr<const void> with_account(std::shared_ptr<const void> memory, TakenMemory taken) {
  if (taken.nothing()) return memory;
  const void* const address = memory.get();
  using Both = std::pair<std::shared_ptr<const void>, TakenMemory>;
  return {std::make_shared<Both>(std::move(memory), std::move(taken)), address};
}

/// Zeroed memory, not touched yet; null when there is none.
std::shared_ptr<const void> large_memory(std::size_t bytes, std::byte*& data) {
  const std::size_t whole = bytes + kHugePage;
  void* memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  data = aligned_up(memory, kHugePage);
  madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // a hint: failure changes nothing
  return {memory, [whole](const void* p) { munmap(const_cast<void*>(p), whole); }};
}

/// Zeroed memory from the heap: large blocks of calloc come zeroed from the system.
std::shared_ptr<const void> heap_memory(std::size_t bytes, std::byte*& data) {
  void* memory = std::calloc(1, bytes + 2 * kAlignment);
  if (!memory) return nullptr;
  data = aligned_up(memory, kAlignment);
  return {memory, [](const void* p) { std::free(const_cast<void*>(p)); }};
}

}  // namespace

std::string_view name_of(ElementType type) noexcept { return row(type).name; }

std::optional<ElementType> element_type_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i].name == name) return static_cast<ElementType>(i);
  return std::nullopt;
}

int bits_of(ElementType type) noexcept { return row(type).bits; }
bool is_float(ElementType type) noexcept { return row(type).kind == 'f'; }
bool is_integer(ElementType type) noexcept { return row(type).kind == 's' || row(type).kind == 'u'; }
bool is_signed(ElementType type) noexcept { return row(type).kind == 's' || row(type).kind == 'f'; }

std::size_t element_count(std::span<const std::int64_t> shape) {
  return guarded("element_count", [&] {
    if (shape.size() > Limits::kRank)
      fail(ErrorCode::bad_input, "a shape of {} dimensions, wanted at most {}", shape.size(), Limits::kRank);
    for (auto d : shape)
      if (d < 0) fail(ErrorCode::bad_input, "shape has the dimension {}, wanted 0 or more", d);
    const auto extent = extent_of(shape);
    if (!extent)
      fail(ErrorCode::bad_input, "shape [{}] has more than 2^{} elements beside its zeros",
           fmt::join(shape, ","), Limits::kElementBits);
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    return empty ? std::size_t{0} : static_cast<std::size_t>(*extent);
  });
}

namespace {

/// An empty tensor, too, has no dimensions that the machine's memory could not hold.
void check_memory(ElementType type, std::span<const std::int64_t> shape) {
  const auto whole = byte_count(type, static_cast<std::size_t>(*extent_of(shape)));
  if (whole > memory_limit().bytes)
    fail(ErrorCode::bad_input, "a tensor {}[{}] of {} bytes{} is more than {}'s memory", name_of(type),
         fmt::join(shape, ","), whole, element_count(shape) == 0 ? " beside its zeros" : "",
         memory_limit().of);
}

}  // namespace

Tensor shape_only(ElementType type, Dims shape) {
  Tensor t;
  t.type_ = std::min(type, ElementType::undefined);  // a number that is no type
  t.size_ = element_count(shape);
  t.shape_ = std::move(shape);
  return t;
}

Tensor::Tensor(ElementType type, Dims shape) : Tensor(shape_only(type, std::move(shape))) {
  guarded("Tensor", [&] {
    if (!valid()) fail(ErrorCode::bad_input, "a tensor of undefined type");
    check_memory(type_, shape_);
    const std::size_t count = bytes();
    require_elements("a tensor", shape_);
    TakenMemory taken(type_, shape_, count);
    auto memory = count >= kLarge ? large_memory(count, data_) : heap_memory(count, data_);
    if (!memory) fail(ErrorCode::out_of_memory, "no memory for a tensor of {} bytes", count);
    owner_ = with_account(std::move(memory), std::move(taken));
  });
}

Tensor::Tensor(const Tensor& other)
    : type_(other.type_),
      read_only_(other.read_only_),
      shape_(guarded("Tensor", [&] { return other.shape_; })),
      size_(other.size_),
      data_(other.data_),
      owner_(other.owner_) {}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this == &other) return *this;
  guarded("Tensor", [&] { shape_ = other.shape_; });  // in place, so that runs allocate nothing
  type_ = other.type_;
  read_only_ = other.read_only_;
  size_ = other.size_;
  data_ = other.data_;
  owner_ = other.owner_;
  return *this;
}

Tensor Tensor::wrap(ElementType type, Dims shape, void* data) {
  return guarded("Tensor::wrap", [&] {
    Tensor t = shape_only(type, std::move(shape));
    if (!t.valid()) fail(ErrorCode::bad_input, "a tensor of undefined type");
    check_memory(type, t.shape_);
    if (!data && t.size_ != 0)
      fail(ErrorCode::bad_input, "a null pointer, wanted {} bytes for {}[{}]", t.bytes(), name_of(type),
           fmt::join(t.shape_, ","));
    t.data_ = static_cast<std::byte*>(data);
    return t;
  });
}

Tensor Tensor::wrap(ElementType type, Dims shape, const void* data) {
  Tensor t = wrap(type, std::move(shape), const_cast<void*>(data));
  t.read_only_ = true;
  return t;
}

Tensor Tensor::share(ElementType type, Dims shape, std::shared_ptr<const void> owner, const void* data) {
  Tensor t = wrap(type, std::move(shape), data);
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::wrap(ElementType type, Dims shape, void* data, std::shared_ptr<const void> owner) {
  Tensor t = wrap(type, std::move(shape), data);
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::copied(ElementType type, Dims shape, const void* values, std::size_t count) {
  return guarded("Tensor::of", [&] {
    Tensor t(type, std::move(shape));
    if (count != t.size_)
      fail(ErrorCode::bad_input, "{} values for a tensor of shape [{}], wanted {}", count,
           fmt::join(t.shape_, ","), t.size_);
    if (count != 0) std::memcpy(t.data_, values, t.bytes());
    return t;
  });
}

std::size_t Tensor::bytes() const noexcept {
  return (size_ * static_cast<std::size_t>(row(type_).bits) + 7) / 8;  // checked when it was made
}

bool Tensor::aligned() const noexcept {
  return reinterpret_cast<std::uintptr_t>(data_) % alignment_of(type_) == 0;
}

Tensor Tensor::to_aligned() const { return aligned() ? *this : clone(); }

Tensor Tensor::clone() const {
  return guarded("Tensor::clone", [&] {
    if (!valid()) return Tensor();
    Tensor t(type_, shape_);
    if (bytes() != 0) std::memcpy(t.data_, data_, bytes());
    return t;
  });
}

Tensor Tensor::reshaped(Dims shape) const {
  return guarded("Tensor::reshaped", [&] {
    if (element_count(shape) != size_)
      fail(ErrorCode::bad_input, "a tensor of shape [{}] as [{}]: {} elements, wanted {}",
           fmt::join(shape_, ","), fmt::join(shape, ","), element_count(shape), size_);
    Tensor t = *this;
    t.shape_ = std::move(shape);
    return t;
  });
}

/// In the last byte of packed elements, bits that belong to no element are not compared.
bool Tensor::same_as(const Tensor& other) const noexcept {
  if (type_ != other.type_ || shape_ != other.shape_) return false;
  if (data_ == other.data_ || bytes() == 0) return true;
  const auto used = size() * static_cast<std::size_t>(bits_of(type_)) % 8;
  const auto whole = bytes() - (used == 0 ? 0 : 1);
  if (whole != 0 && std::memcmp(data_, other.data_, whole) != 0) return false;
  const auto mask = std::byte((1U << used) - 1);
  return used == 0 || (data_[whole] & mask) == (other.data_[whole] & mask);
}

void Tensor::check_view(ElementType wanted) const {
  if (type_ == wanted && aligned()) return;
  guarded("Tensor::data", [&] {
    if (type_ != wanted)
      fail(ErrorCode::bad_input, "tensor holds {}, wanted {}", name_of(type_), name_of(wanted));
    fail(ErrorCode::bad_input,
         "tensor of {} at an address that is no multiple of {}, as to_aligned() gives it", name_of(type_),
         alignment_of(type_));
  });
}

}  // namespace lamina
