#pragma once
/// Parameters of a layer: the fields of its `..._param` messages, each with the default of Caffe's schema.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/prototext.h"
#include "graph/op.h"

namespace lamina::caffe {

class Params {
 public:
  Params() = default;  ///< all defaults
  /// The messages of that name, as one.
  Params(const ProtoText::Message& layer, std::string_view name);

  bool has(std::string_view name) const { return find(name).has_value(); }
  /// The last field of that name.
  std::optional<ProtoText::Field> find(std::string_view name) const;

  std::int64_t integer(std::string_view name, std::int64_t fallback) const;  ///< int32 or uint32
  std::int64_t count(std::string_view name, std::int64_t fallback) const;    ///< uint32
  double number(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback) const;
  std::string text(std::string_view name, std::string_view fallback = {}) const;
  Ints counts(std::string_view name) const;
  Ints integers(std::string_view name) const;  ///< int64, too
  Floats numbers(std::string_view name) const;
  Params message(std::string_view name) const;
  /// An enumeration: the index of its word, or its number, among `words` ("" for a number that is none).
  std::size_t choice(std::string_view name, std::initializer_list<std::string_view> words,
                     std::size_t fallback) const;

 private:
  template <class Use>
  void each(std::string_view name, Use use) const;
  std::vector<ProtoText::Message> messages_;
};

/// A number of a uint32 or int32 field.
std::int64_t count_of(const ProtoText::Field& field);
std::int64_t integer_of(const ProtoText::Field& field);

}  // namespace lamina::caffe
