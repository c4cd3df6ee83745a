#pragma once
/// An ONNX model to be changed and written again. What nobody changes is kept as it is in the file, byte by
/// byte, unknown fields too.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/source.h"
#include "graph/op.h"

namespace lamina::onnx {

/// Part of a message: in the file, which stays mapped, or our own.
class Piece {
 public:
  explicit Piece(std::string_view in_file) : bytes_(in_file) {}
  explicit Piece(std::string own)
      : own_(std::make_shared<const std::string>(std::move(own))), bytes_(*own_) {}
  std::string_view bytes() const { return bytes_; }

 private:
  std::shared_ptr<const std::string> own_;
  std::string_view bytes_;
};

/// A part with a name by which it is found: a tensor, the type of a value.
struct NamedPiece {
  std::string name;
  Piece piece;
};

struct EditNode {
  std::vector<std::string> inputs, outputs;
  std::string op_type, name = {}, domain = {};
  std::vector<NamedPiece> attributes = {};  ///< AttributeProto messages
  std::string rest = {};                    ///< all other fields

  const NamedPiece* attribute(std::string_view name) const;
  std::optional<std::int64_t> int_attribute(std::string_view name) const;
  std::optional<float> float_attribute(std::string_view name) const;
  std::optional<Ints> ints_attribute(std::string_view name) const;
  std::optional<std::vector<float>> floats_attribute(std::string_view name) const;
  std::optional<std::string> string_attribute(std::string_view name) const;
  void remove_attribute(std::string_view name);
  void set_attribute(std::string_view name, std::int64_t value);
  void set_attribute(std::string_view name, std::string_view value);
};

struct EditGraph {
  std::vector<EditNode> nodes;
  std::vector<NamedPiece> initializers;    ///< TensorProto messages
  std::vector<NamedPiece> inputs, values;  ///< ValueInfoProto messages: of inputs, of what lies between
  std::vector<std::string> outputs;        ///< names; their messages are in `rest`
  std::string rest;                        ///< all other fields
};

struct EditModel {
  std::shared_ptr<const MappedFile> file;
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t> opsets;  ///< "ai.onnx" is ""
  EditGraph graph;
  std::string rest;  ///< all other fields
  bool has_functions = false;

  std::int64_t opset() const;
};

/// The model of the source. External data becomes part of the model. Throws Error(bad_file).
EditModel edit_model(const ModelSource& source);
/// Throws Error(unsupported) for models of 2 GiB or more: protobuf has no larger ones.
std::string to_bytes(const EditModel& model);

/// A TensorProto message of the name with the elements of the tensor.
NamedPiece initializer(const std::string& name, const Tensor& tensor);

/// Calls `change` with the graphs that the node has as attributes, and puts what it makes of them in their
/// place.
void change_bodies(EditNode& node, const std::function<void(EditGraph&)>& change);
/// Calls `read` with these graphs.
void each_body(const EditNode& node, const std::function<void(const EditGraph&)>& read);

/// Removes nodes without effect and initialisers (with the inputs of their names) that nobody reads. Only
/// those that read or are what `was_read` names, and what these alone have read.
void remove_unread(EditGraph& graph, std::vector<std::string> was_read);

}  // namespace lamina::onnx
