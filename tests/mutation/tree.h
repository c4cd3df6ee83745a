#pragma once
/// A model's file as a tree, whatever its format, and the way from bytes to the tree and back.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::testing {

/// A message, an element or an object with its parts; or a single value.
struct Tree {
  enum class Kind : std::uint8_t {
    group,
    list,  ///< an array of JSON
    integer,
    real,
    text,
    word,  ///< a text that is written without quotes: a number, an identifier
    bytes  ///< data that nobody looks into
  };
  std::string name;
  Kind kind = Kind::group;
  std::int64_t integer = 0;
  double real = 0;
  std::string text = {};
  std::vector<Tree> children = {};
  /// Where it stands. Values and groups of one role may take each other's place: "node/op_type",
  /// "axis/i" (of an attribute called axis), "data.strides".
  std::string role = {};

  /// NaN is NaN.
  bool operator==(const Tree& other) const;
  bool is_leaf() const { return kind != Kind::group && kind != Kind::list; }
  const Tree* find(std::string_view child) const;
  Tree* find(std::string_view child) {
    return const_cast<Tree*>(static_cast<const Tree*>(this)->find(child));
  }
  /// The number of a child of that name; `otherwise` when there is none.
  std::int64_t integer_of(std::string_view child, std::int64_t otherwise) const;
};

enum class TreeFormat : std::uint8_t { onnx, ir, legacy_ir, caffe, tensorflow, onednn_graph };
std::string_view name_of(TreeFormat format);

/// A model in one or two files.
struct ModelFiles {
  std::string model;
  std::string weights = {};  ///< the .bin of IR, the caffemodel of Caffe
};

struct TreeModel {
  TreeFormat format = TreeFormat::onnx;
  Tree tree;
  std::string blob = {};  ///< of IR: the .bin as it was; constants of few elements are in the tree
};

/// Throws std::exception for what is none of that format.
TreeModel tree_of(TreeFormat format, const ModelFiles& files);
ModelFiles files_of(const TreeModel& model);

/// Gives tensors as many numbers as their shapes want, by repeating or cutting what is there.
void repair_tensors(TreeModel& model);

/// Sets all roles below.
void set_roles(Tree& tree);

}  // namespace lamina::testing
