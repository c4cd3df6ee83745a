#pragma once
/// The messages of a TensorFlow GraphDef as plain structs. Texts, tensors and attributes are views into the
/// file: nothing is copied, and an attribute is read when a converter asks for it.
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/op.h"

namespace lamina::tensorflow {

using Names = std::vector<std::string_view>;
using Entries = std::vector<std::pair<std::string_view, std::string_view>>;  ///< by key, as messages

struct NodeDef {
  std::string_view name, op;
  Names inputs;
  Entries attributes;  ///< AttrValue messages
};

/// A function of the library: its arguments and results, and the nodes between.
struct FunctionDef {
  std::string_view name;
  Names inputs, outputs;  ///< of the signature
  std::vector<NodeDef> nodes;
  Entries results;  ///< by output: what is returned, "node:argument:index"
};

struct GraphDef {
  std::vector<NodeDef> nodes;
  std::vector<FunctionDef> functions;
  std::int64_t producer = 0;      ///< version of TensorFlow's graph format
  std::deque<std::string> texts;  ///< names that are not in the file
};

/// One AttrValue, whichever it is.
struct AttrValue {
  enum Kind : std::uint8_t {
    none = 0,
    list = 1,
    text = 2,
    integer = 3,
    number = 4,
    flag = 5,
    type = 6,
    shape = 7,
    tensor = 8,
    placeholder = 9,
    function = 10
  };
  Kind kind = none;
  std::int64_t i = 0;  ///< integer, flag or type
  double f = 0;
  std::string_view bytes;  ///< a text, or the message of a list, shape, tensor or function
};

/// AttrValue.ListValue: the one list that has elements.
struct ListValue {
  Ints integers;
  std::vector<float> numbers;
  Names texts;
};

/// TensorProto; the values stay in the message.
struct TensorProto {
  std::int64_t type = 0;
  Shape shape{};
  std::optional<std::string_view> content;
  std::string_view message;
};

/// Throw Error(bad_file) without the path: "damaged: ...".
GraphDef parse_graph(std::string_view bytes);
AttrValue parse_attribute(std::string_view bytes);
ListValue parse_list(std::string_view bytes);
Shape parse_shape(std::string_view bytes);
TensorProto parse_tensor(std::string_view bytes);
/// The name in a NameAttrList.
std::string_view parse_function_name(std::string_view bytes);

/// Ours, or undefined when there is none (strings, complex and quantised numbers, ...). References count as
/// what they refer to.
ElementType element_type_of(std::int64_t data_type);
/// "DT_STRING", or "17".
std::string name_of_type(std::int64_t data_type);

/// Whether bytes begin as a GraphDef does: with a node that has a name and an operator.
bool looks_like_graph(std::string_view bytes);
/// Whether bytes begin as a SavedModel does, which holds graphs whose variables are elsewhere.
bool looks_like_saved_model(std::string_view bytes);

}  // namespace lamina::tensorflow
