#pragma once
/// protozero with every field's wire type checked, and repeated numbers read packed or not.
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "base/error.h"
#include "base/work_bounds.h"
#include "formats/reading_points.h"

namespace lamina {

/// What is wrong with the bytes of a protocol buffer, in words that say what is found in the file.
inline const char* words_of(const protozero::exception& e) {
  if (dynamic_cast<const protozero::end_of_buffer_exception*>(&e)) return "it ends in the middle of a field";
  if (dynamic_cast<const protozero::varint_too_long_exception*>(&e)) return "a number has more than 10 bytes";
  if (dynamic_cast<const protozero::unknown_pbf_wire_type_exception*>(&e))
    return "a field is of a kind that protocol buffers do not have";
  if (dynamic_cast<const protozero::invalid_tag_exception*>(&e))
    return "a field has a number that protocol buffers do not allow";
  if (dynamic_cast<const protozero::invalid_length_exception*>(&e))
    return "a list of numbers has a length that they do not fill";
  return "its fields cannot be read";
}

class WireReader {
 public:
  WireReader(std::string_view bytes, std::string_view what) : pbf_(bytes.data(), bytes.size()), what_(what) {
    constexpr std::size_t kAbout = 200;  // of the struct that a message becomes
    note_parsed(kAbout);
  }

  bool next() {
    note_read(8);  // a field takes as long
    return pbf_.next();
  }
  std::uint32_t field() const { return pbf_.tag(); }
  void skip() { pbf_.skip(); }

  std::string_view bytes() {
    want(protozero::pbf_wire_type::length_delimited);
    const auto view = pbf_.get_view();
    return {view.data(), view.size()};
  }
  std::int64_t integer() {
    want(protozero::pbf_wire_type::varint);
    return pbf_.get_int64();
  }
  float number() {
    want(protozero::pbf_wire_type::fixed32);
    return pbf_.get_float();
  }
  /// One number or a packed run of them, appended.
  template <class T>
  void integers(std::vector<T>& out) {
    if (!packed()) return out.push_back(static_cast<T>(integer()));
    const auto before = out.size();
    append(pbf_.get_packed_int64(), out);
    note_parsed((out.size() - before) * sizeof(T));
  }
  void floats(std::vector<float>& out) {
    if (!packed()) return out.push_back(number());
    append(pbf_.get_packed_float(), out);
  }
  void doubles(std::vector<double>& out) {
    if (packed()) {
      append(pbf_.get_packed_double(), out);
    } else {
      want(protozero::pbf_wire_type::fixed64);
      out.push_back(pbf_.get_double());
    }
  }
  bool packed() const { return pbf_.wire_type() == protozero::pbf_wire_type::length_delimited; }

 private:
  template <class Range, class T>
  static void append(const Range& values, std::vector<T>& out) {
    for (auto v : values) {
      note_read(1);
      out.push_back(static_cast<T>(v));
    }
  }
  void want(protozero::pbf_wire_type type) const {
    if (pbf_.wire_type() != type)
      fail(ErrorCode::bad_file, "field {} of a {} has wire type {}, wanted {}", pbf_.tag(), what_,
           static_cast<int>(pbf_.wire_type()), static_cast<int>(type));
  }

  protozero::pbf_reader pbf_;
  std::string_view what_;
};

/// The two fields of a message that is an entry of a map: key and value.
inline std::pair<std::string_view, std::string_view> read_entry(std::string_view bytes,
                                                                std::string_view what) {
  std::pair<std::string_view, std::string_view> entry;
  WireReader in(bytes, what);
  while (in.next()) {
    if (in.field() == 1)
      entry.first = in.bytes();
    else if (in.field() == 2)
      entry.second = in.bytes();
    else
      in.skip();
  }
  return entry;
}

}  // namespace lamina
