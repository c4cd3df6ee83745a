#pragma once
/// Constants of the .bin file.
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "formats/ir/network.h"
#include "formats/source.h"
#include "lamina/tensor.h"

namespace lamina::ir {

class Blobs {
 public:
  explicit Blobs(const ModelSource& source) : source_(source) {}

  /// How the file packs u1: most significant bit first, but weights of BinaryConvolution the other way round.
  enum class BitOrder { high_first, low_first };

  /// The tensor of a Const layer, a slice of the mapped file wherever that is possible. The layer's element
  /// type must be one that lamina has.
  Tensor constant(const XmlFile& xml, const Layer& layer, BitOrder order);
  /// The layer's bytes, whatever they mean: for types that lamina has not.
  Tensor bytes(const XmlFile& xml, const Layer& layer);
  /// The tensor of an element that has offset and size, of a known type and shape.
  Tensor tensor(const XmlFile& xml, pugi::xml_node node, const std::string& what, const TensorType& type,
                BitOrder order);
  /// The size that the element gives; offset and size are checked to be no nonsense.
  static std::size_t declared_bytes(const XmlFile& xml, pugi::xml_node node, const std::string& what);
  /// `size` bytes at `offset`; `what` names the reader in errors.
  const std::byte* slice(const XmlFile& xml, pugi::xml_node node, const std::string& what,
                         std::uint64_t offset, std::uint64_t size);
  std::size_t size() const { return file_ ? file_->size() : 0; }  ///< of the file, once something was read

 private:
  void open(const std::string& what);
  Tensor rewritten(const XmlFile& xml, pugi::xml_node node, const std::string& what, ElementType type,
                   const Dims& dims, const std::byte* data, std::uint64_t offset, std::size_t bytes);

  const ModelSource& source_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::tuple<std::uint64_t, std::size_t, ElementType>, Tensor>
      rewritten_;  // bytes changed on reading
  std::size_t rewritten_bytes_ = 0;
};

}  // namespace lamina::ir
