#include "saved/tensors.h"

#include "base/limits.h"
#include "base/shape_only.h"

namespace lamina {
namespace {

constexpr std::size_t kTensorAlignment = 64;

/// What stands behind type and shape.
enum class Form : std::uint8_t { missing, shape, here, section, content };

std::span<const std::byte> bytes_of(const Tensor& t) { return {t.raw(), t.bytes()}; }

}  // namespace

Hash128 TensorWriter::content(const Tensor& tensor) {
  if (known_)
    if (const auto hash = known_(tensor)) return *hash;
  const auto [it, added] = hashes_.try_emplace({tensor.raw(), tensor.bytes()});
  if (added) {
    it->second = hash_of(bytes_of(tensor));
    drop_mapped_pages(tensor.raw(), tensor.bytes());
  }
  return it->second;
}

std::uint32_t TensorWriter::section_of(const Tensor& tensor) {
  const auto hash = content(tensor);
  const auto [it, added] = sections_.try_emplace({hash, tensor.bytes()});
  if (added) it->second = file_.add(kind_, bytes_of(tensor), std::make_shared<const Tensor>(tensor), hash);
  return it->second;
}

void TensorWriter::write(ByteWriter& to, const Tensor& tensor, TensorData large) {
  if (!tensor.valid()) return to.put(Form::missing);
  const bool small = tensor.bytes() < kLargeTensor;
  const auto form = !tensor.raw() && tensor.bytes() != 0 ? Form::shape
                    : small                              ? Form::here
                    : large == TensorData::none          ? Form::shape
                    : large == TensorData::by_content    ? Form::content
                                                         : Form::section;
  to.put(form);
  to.put(tensor.element_type());
  to.list(tensor.shape(), [&](std::int64_t d) { to.put(d); });
  if (form == Form::here) {
    to.align(kTensorAlignment);
    to.append(tensor.raw(), tensor.bytes());
  } else if (form == Form::section) {
    to.put(section_of(tensor));
  } else if (form == Form::content) {
    to.hash(content(tensor));
    to.put(static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(tensor.raw()) % kTensorAlignment));
  }
}

TensorReader::TensorReader(const CompiledFile& file, SectionKind kind, bool checked, ByContent by_content)
    : file_(file), checked_(checked), by_content_(std::move(by_content)) {
  for (std::size_t i = 0; i < file.sections().size(); ++i)
    if (file.sections()[i].kind == kind) sections_[file.sections()[i].number] = i;
}

Tensor TensorReader::in_section(ElementType type, const Dims& dims, std::uint32_t number) const {
  const auto it = sections_.find(number);
  if (it == sections_.end())
    fail(ErrorCode::bad_file, "{}: damaged: there is no section {} for a tensor", file_.path(), number);
  const auto bytes = checked_ ? file_.section(it->second) : file_.unchecked(it->second);
  const auto wanted = shape_only(type, dims).bytes();
  if (bytes.size() != wanted)
    fail(ErrorCode::bad_file, "{}: damaged: section {} has {} bytes, wanted {}", file_.path(),
         to_string(file_.sections()[it->second]), bytes.size(), wanted);
  return Tensor::share(type, dims, file_.file(), bytes.data());
}

Tensor TensorReader::operator()(ByteReader& from) const {
  const auto form = from.choice(Form::content);
  if (form == Form::missing) return {};
  const auto type = from.choice(ElementType::undefined);
  const auto dims = from.list([&] { return from.get<std::int64_t>(); }, sizeof(std::int64_t));
  const bool fits = dims.size() <= Limits::kRank && type != ElementType::undefined &&
                    std::all_of(dims.begin(), dims.end(), [](auto d) { return d >= 0; }) && extent_of(dims);
  if (!fits) from.wrong("a tensor's type and shape");
  if (form == Form::shape) return shape_only(type, dims);
  if (form == Form::section) return in_section(type, dims, from.get<std::uint32_t>());
  if (form == Form::here) {
    from.align(kTensorAlignment);
    const auto bytes = from.take(shape_only(type, dims).bytes());
    return Tensor::share(type, dims, file_.file(), bytes.data());
  }
  const auto hash = from.hash();
  const auto behind = from.get<std::uint8_t>();
  if (!by_content_ || behind >= kTensorAlignment) from.wrong("a tensor with its data");
  return by_content_(type, dims, hash, behind);
}

}  // namespace lamina
