#pragma once
/// What every reader returns.
#include <map>
#include <string>
#include <vector>

#include "extension/extensions.h"
#include "formats/format.h"
#include "formats/operators.h"
#include "formats/source.h"
#include "graph/graph.h"

namespace lamina {

/// An operator of the file that lamina does not have. Its nodes are Opaque in the graph.
struct Unsupported {
  std::string type;          ///< as the file says
  std::string domain;        ///< empty for the format's own
  std::int64_t version = 0;  ///< of the operator set or operator, 0 when the file does not say
  Strings nodes;             ///< names of the nodes, or of their first outputs
  std::string reason;        ///< why not, when the operator as such is known
};

/// What an IR file says besides what its network computes, for who writes one again. Texts are XML: what
/// stands in <rt_info>.
struct IrNotes {
  struct OfTensor {
    Strings names;              ///< all of them
    std::string rt_info;        ///< of its port
    std::string layer;          ///< of an input: what its layer is called
    std::string layer_rt_info;  ///< of an input
  };
  std::string network;
  std::map<std::string, std::string, std::less<>> layers;  ///< by name
  std::map<std::string, OfTensor, std::less<>> tensors;    ///< by the value's name
  std::map<std::string, Strings, std::less<>> results;     ///< all names, where there are more than its own
  /// Bytes of constants whose element type lamina has not, by the layer's name.
  std::map<std::string, Tensor, std::less<>> foreign;
};

struct Loaded {
  Graph graph;
  ModelFormat format = ModelFormat::onnx;
  std::string version;   ///< "IR 8, opset 13, com.microsoft 1" or "11"
  std::string producer;  ///< who wrote it and in which version; may be empty
  Strings warnings;
  std::map<std::string, std::string> metadata;  ///< texts that the file carries, by key
  std::vector<Unsupported> unsupported;
  std::vector<FileOperator> operators;  ///< of all nodes, in bodies and functions, too; in order of first use
  IrNotes ir_notes;
  std::map<std::string, Tensor> defaults;  ///< values of inputs that need not be given, by name
  Strings optional_inputs;                 ///< inputs that have a value in the file and are constants here
  std::shared_ptr<const ExtensionSet> extensions = std::make_shared<const ExtensionSet>();  ///< never null
};

/// How a model is read.
struct ReadSettings {
  /// Inputs that have a value in an ONNX model (overridable initialisers), by name: they stay inputs, whose
  /// values are Loaded::defaults, while others are constants.
  Strings settable = {};
  /// Shapes of inputs, instead of those in the file. Constants that a reader computes from sizes are computed
  /// from these.
  std::map<std::string, Shape, std::less<>> shapes = {};
  /// Operations that lamina does not have, or has another idea of.
  std::shared_ptr<const ExtensionSet> extensions = std::make_shared<const ExtensionSet>();
  /// Inputs of ONNX models and TensorFlow graphs that are constants, by name: "True", "[1 2]" (frozen.h).
  /// What conditions among them decide in a graph is not read.
  std::map<std::string, std::string, std::less<>> frozen = {};
  OperatorGate gate = OperatorGate();  ///< operators that the model may have
};

/// Readers by format. All errors name the path: Error(bad_file). Throws Error(bad_option) for a settable name
/// that is none.
Loaded read_onnx(const ModelSource& source, const ReadSettings& settings = {});
Loaded read_ir(const ModelSource& source, const ReadSettings& settings = {});
/// The model is either of the two files.
Loaded read_caffe(const ModelSource& source, const ReadSettings& settings = {});
Loaded read_tensorflow(const ModelSource& source, const ReadSettings& settings = {});
Loaded read_onednn_graph(const ModelSource& source, const ReadSettings& settings = {});
/// Whether a file begins as a TensorFlow graph does.
bool looks_like_tensorflow(std::string_view bytes);

}  // namespace lamina
