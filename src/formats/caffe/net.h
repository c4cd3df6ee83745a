#pragma once
/// The structure of a Caffe network: net.prototxt, as far as it is for the TEST phase.
#include <optional>
#include <string>
#include <vector>

#include "formats/prototext.h"
#include "graph/op.h"

namespace lamina::caffe {

struct LayerDef {
  std::string name;
  std::string type;  ///< "Convolution", those of V1 (`layers { type: CONVOLUTION }`) too
  Strings bottoms, tops;
  ProtoText::Message message;
  int line = 0;
};

/// An `input:` of the file.
struct InputDef {
  std::string name;
  std::optional<Shape> shape;
};

struct Net {
  std::string name;
  std::vector<InputDef> inputs;
  std::vector<LayerDef> layers;    ///< of the TEST phase, in file order, which is that of execution
  std::vector<LayerDef> left_out;  ///< of other phases, those without a bottom: data for training
  bool old = false;                ///< V1: `layers` with words for types
};

Net read_net(const ProtoText& file);

/// The shape that a BlobShape says; sizes below 1 are unknown.
Shape blob_shape(const ProtoText::Message& message);

}  // namespace lamina::caffe
