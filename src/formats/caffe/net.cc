#include "formats/caffe/net.h"

#include <array>
#include <utility>

#include "base/limits.h"
#include "formats/caffe/params.h"
#include "formats/read_error.h"
#include "formats/reading_points.h"

namespace lamina::caffe {
namespace {

struct OldType {
  int number;
  std::string_view word, type;
};

/// V1LayerParameter.LayerType.
constexpr auto kOldTypes =
    std::to_array<OldType>({{35, "ABSVAL", "AbsVal"},
                            {1, "ACCURACY", "Accuracy"},
                            {30, "ARGMAX", "ArgMax"},
                            {2, "BNLL", "BNLL"},
                            {3, "CONCAT", "Concat"},
                            {37, "CONTRASTIVE_LOSS", "ContrastiveLoss"},
                            {4, "CONVOLUTION", "Convolution"},
                            {5, "DATA", "Data"},
                            {39, "DECONVOLUTION", "Deconvolution"},
                            {6, "DROPOUT", "Dropout"},
                            {32, "DUMMY_DATA", "DummyData"},
                            {7, "EUCLIDEAN_LOSS", "EuclideanLoss"},
                            {25, "ELTWISE", "Eltwise"},
                            {38, "EXP", "Exp"},
                            {8, "FLATTEN", "Flatten"},
                            {9, "HDF5_DATA", "HDF5Data"},
                            {10, "HDF5_OUTPUT", "HDF5Output"},
                            {28, "HINGE_LOSS", "HingeLoss"},
                            {11, "IM2COL", "Im2col"},
                            {12, "IMAGE_DATA", "ImageData"},
                            {13, "INFOGAIN_LOSS", "InfogainLoss"},
                            {14, "INNER_PRODUCT", "InnerProduct"},
                            {15, "LRN", "LRN"},
                            {29, "MEMORY_DATA", "MemoryData"},
                            {16, "MULTINOMIAL_LOGISTIC_LOSS", "MultinomialLogisticLoss"},
                            {34, "MVN", "MVN"},
                            {17, "POOLING", "Pooling"},
                            {26, "POWER", "Power"},
                            {18, "RELU", "ReLU"},
                            {19, "SIGMOID", "Sigmoid"},
                            {27, "SIGMOID_CROSS_ENTROPY_LOSS", "SigmoidCrossEntropyLoss"},
                            {36, "SILENCE", "Silence"},
                            {20, "SOFTMAX", "Softmax"},
                            {21, "SOFTMAX_LOSS", "SoftmaxWithLoss"},
                            {22, "SPLIT", "Split"},
                            {33, "SLICE", "Slice"},
                            {23, "TANH", "TanH"},
                            {24, "WINDOW_DATA", "WindowData"},
                            {31, "THRESHOLD", "Threshold"},
                            // Types of forks that went on with V1; their numbers clash.
                            {-1, "BN", "BN"},
                            {-1, "PRELU", "PReLU"},
                            {-1, "UPSAMPLE", "Upsample"}});

/// "Convolution" as a string; or V1's word or number, of which those that are not known stay as they are.
std::string type_of(const ProtoText::Field& field) {
  if (field.kind() == ProtoText::Kind::string) return std::string(field.text());
  const bool is_number = field.kind() == ProtoText::Kind::number;
  if (!is_number) field.word();
  for (const auto& old : kOldTypes)
    if (is_number ? field.natural() == static_cast<std::uint64_t>(old.number) : field.text() == old.word)
      return std::string(old.type);
  return std::string(field.text());
}

/// What a network is asked for; files may say it, too.
struct State {
  std::int64_t level = 0;
  Strings stages;
};

State state_of(const ProtoText::Message& root) {
  const Params given(root, "state");
  State state;
  state.level = given.integer("level", 0);
  if (given.has("stage"))
    for (const auto message : root.all("state"))
      for (const auto stage : message.message().all("stage")) state.stages.emplace_back(stage.string());
  return state;
}

bool has_stage(const State& state, std::string_view stage) {
  for (const auto& s : state.stages)
    if (s == stage) return true;
  return false;
}

bool is_test(const ProtoText::Field& phase) {
  return phase.kind() == ProtoText::Kind::number ? phase.natural() == 1 : phase.word() == "TEST";
}

/// A NetStateRule holds in the TEST phase.
bool holds(const ProtoText::Message& rule, const State& state) {
  for (const auto field : rule) {
    const auto name = field.name();
    const bool fails = (name == "phase" && !is_test(field)) ||
                       (name == "min_level" && state.level < integer_of(field)) ||
                       (name == "max_level" && state.level > integer_of(field)) ||
                       (name == "stage" && !has_stage(state, field.string())) ||
                       (name == "not_stage" && has_stage(state, field.string()));
    if (fails) return false;
  }
  return true;
}

/// True if there are no rules, or an `include` holds, or else no `exclude` holds.
bool is_included(const ProtoText::Message& layer, const State& state) {
  bool has_include = false, included = false, excluded = false;
  for (const auto field : layer) {
    if (field.name() == "include") {
      has_include = true;
      included = included || holds(field.message(), state);
    } else if (field.name() == "exclude") {
      excluded = excluded || holds(field.message(), state);
    }
  }
  return has_include ? included : !excluded;
}

LayerDef read_layer(const ProtoText::Field& field) {
  LayerDef layer;
  note_read(kReadOfNode);
  layer.message = field.message();
  layer.line = field.line();
  for (const auto f : layer.message) {
    if (f.name() == "name")
      layer.name = f.string();
    else if (f.name() == "type")
      layer.type = type_of(f);
    else if (f.name() == "bottom")
      layer.bottoms.emplace_back(f.string());
    else if (f.name() == "top")
      layer.tops.emplace_back(f.string());
    else if (f.name() == "layer")
      f.fail("a layer in a layer: the format of before 2014 (V0), which is not supported");
  }
  if (layer.name.empty() && !layer.tops.empty()) layer.name = layer.tops[0];
  if (layer.type.empty()) field.fail("layer \"{}\" has no type", layer.name);
  return layer;
}

/// `input` with `input_shape`, or with four `input_dim`.
void give_shapes(Net& net, const ProtoText::Message& root) {
  const auto shapes = root.all("input_shape");
  const auto dims = root.all("input_dim");
  if (!shapes.empty() && shapes.size() != net.inputs.size())
    shapes[0].fail("{} input_shape for {} input, wanted as many", shapes.size(), net.inputs.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) net.inputs[i].shape = blob_shape(shapes[i].message());
  if (!shapes.empty() || dims.empty()) return;
  if (dims.size() != 4 * net.inputs.size())
    blaming(FileProblem::input_dims, [&] {
      dims[0].fail("{} input_dim for {} input, wanted 4 for each", dims.size(), net.inputs.size());
    });
  for (std::size_t i = 0; i < net.inputs.size(); ++i) {
    std::vector<Dim> shape;
    for (std::size_t k = 0; k < 4; ++k) {
      const auto size = integer_of(dims[4 * i + k]);
      shape.push_back(size < 1 ? Dim() : Dim(size));
    }
    net.inputs[i].shape = Shape(shape);
  }
}

}  // namespace

Shape blob_shape(const ProtoText::Message& message) {
  std::vector<Dim> dims;
  Dims known;
  for (const auto field : message.all("dim")) {
    const auto size = field.integer();
    dims.push_back(size < 1 ? Dim() : Dim(size));
    if (size >= 1) known.push_back(size);
    if (dims.size() > Limits::kRank || !extent_of(known)) field.fail("a shape with too many elements");
  }
  return Shape(dims);
}

Net read_net(const ProtoText& file) {
  Net net;
  const auto root = file.root();
  const auto state = state_of(root);
  std::size_t layers = 0;
  for (const auto field : root) {
    if (field.name() == "name") {
      net.name = field.string();
    } else if (field.name() == "input") {
      net.inputs.push_back({std::string(field.string()), std::nullopt});
    } else if (field.name() == "layer" || field.name() == "layers") {
      ++layers;
      net.old = net.old || field.name() == "layers";
      if (is_included(field.message(), state))
        net.layers.push_back(read_layer(field));
      else if (!field.message().find("bottom"))
        net.left_out.push_back(read_layer(field));
    }
  }
  if (layers == 0)
    fail_reading(FileProblem::no_layers, "{}: has no layer, wanted a Caffe network", file.path());
  give_shapes(net, root);
  return net;
}

}  // namespace lamina::caffe
