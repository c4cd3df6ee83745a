#pragma once
/// Tensors in the sections of a compiled model's file.
#include <functional>
#include <map>
#include <set>

#include "graph/binary.h"
#include "saved/container.h"

namespace lamina {

/// Smaller ones lie in the section of what has them.
inline constexpr std::size_t kLargeTensor = 4096;

/// How the data of a large tensor is kept.
enum class TensorData : std::uint8_t {
  stored,      ///< in a section of its own; equal ones share it
  by_content,  ///< not at all: its hash stands for it
  none,        ///< not at all
};

/// Writes tensors; the sections are of one kind.
class TensorWriter {
 public:
  /// `known`: hashes of tensors that have no data any more.
  using Known = std::function<std::optional<Hash128>(const Tensor&)>;
  TensorWriter(CompiledFileWriter& file, SectionKind kind, Known known = {})
      : file_(file), kind_(kind), known_(std::move(known)) {}

  void write(ByteWriter& to, const Tensor& tensor, TensorData large = TensorData::stored);
  /// Hash of the content, computed once.
  Hash128 content(const Tensor& tensor);

 private:
  std::uint32_t section_of(const Tensor& tensor);

  CompiledFileWriter& file_;
  SectionKind kind_;
  Known known_;
  std::map<std::pair<const void*, std::size_t>, Hash128> hashes_;
  std::map<std::pair<Hash128, std::size_t>, std::uint32_t> sections_;
};

/// Reads what TensorWriter has written. Tensors share the mapped file. Thread-safe.
class TensorReader {
 public:
  /// What stands for data that was not kept: type, shape, hash, and bytes behind a multiple of 64 at which it
  /// lay.
  using ByContent = std::function<Tensor(ElementType, const Dims&, const Hash128&, std::size_t behind)>;
  /// `checked`: sections are checked when a tensor lies in them; else whoever uses it sees to that.
  TensorReader(const CompiledFile& file, SectionKind kind, bool checked, ByContent by_content = {});
  Tensor operator()(ByteReader& from) const;

 private:
  Tensor in_section(ElementType type, const Dims& dims, std::uint32_t number) const;

  const CompiledFile& file_;
  bool checked_;
  ByContent by_content_;
  std::map<std::uint32_t, std::size_t> sections_;  // by their numbers
};

}  // namespace lamina
