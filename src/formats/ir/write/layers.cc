// Nodes as layers: how OpenVINO calls them, the first operation set that has what the node says, attributes.
#include <algorithm>
#include <array>

#include "extension/custom_op.h"
#include "formats/ir/write/net_writer.h"
#include "formats/ir/write/text_out.h"
#include "graph/infer.h"
#include "ops/attention.h"
#include "ops/control.h"
#include "ops/convolution.h"
#include "ops/detection.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/multiclass.h"
#include "ops/pooling.h"
#include "ops/resize.h"
#include "ops/shaping.h"
#include "ops/sorting.h"
#include "ops/yuv.h"

namespace lamina::ir {
namespace {

/// The newest set that IR 10 names.
constexpr int kNewestOfVersion10 = 8;

/// Spellings of files that are not the operators' names.
struct FileName {
  std::string_view op, file;
};
constexpr std::array kFileNames = {FileName{"PRelu", "PReLU"}, FileName{"Relu", "ReLU"},
                                   FileName{"Softmax", "SoftMax"}};

/// Revisions with lamina's inputs, where they are not in the first set that has the operator.
struct Revision {
  std::string_view op;
  int opset;
};
constexpr std::array kRevisions = {
    Revision{"Assign", 3},          Revision{"BatchNormInference", 5},
    Revision{"Broadcast", 3},       Revision{"DeformableConvolution", 8},
    Revision{"DetectionOutput", 8}, Revision{"Gather", 8},
    Revision{"GatherND", 8},        Revision{"Gelu", 7},
    Revision{"Interpolate", 4},     Revision{"LSTMCell", 4},
    Revision{"LSTMSequence", 5},    Revision{"MVN", 6},
    Revision{"Proposal", 4},        Revision{"ROIPooling", 2},
    Revision{"Range", 4},           Revision{"ReorgYolo", 2},
    Revision{"ScatterNDUpdate", 4}, Revision{"ShapeOf", 3},
    Revision{"Softmax", 8},         Revision{"TopK", 3},
};

bool all_are(const Ints& list, std::int64_t value) {
  return std::all_of(list.begin(), list.end(), [value](auto v) { return v == value; });
}

class LayerMaker {
 public:
  LayerMaker(NetWriter& net, const Node& node) : net_(net), graph_(net.graph()), node_(node) {}

  LayerText make() {
    text_.type = node_.op.name();
    for (const auto& [op, file] : kFileNames)
      if (op == text_.type) text_.type = file;
    if (const auto* custom = custom_op(node_.op)) return make_custom(*custom);
    if (const auto* opaque = node_.op.as<Opaque>()) return make_opaque(*opaque);
    const OpInfo& info = node_.op.info();
    opset_ = info.opset;
    for (const auto& [op, opset] : kRevisions)
      if (op == info.name) opset_ = opset;
    read_attributes();
    make_inputs();
    by_operator();
    if (opset_ == 0) refuse("{}", info.name);
    if (net_.writing().options.version == 10 && opset_ > kNewestOfVersion10)
      fail(ErrorCode::unsupported,
           "{} \"{}\": IR 10 has the operators up to opset{}, it is of opset{}: write IR 11", info.name,
           label(), kNewestOfVersion10, opset_);
    text_.version = fmt::format("opset{}", opset_);
    for (const auto& [name, value] : attributes_) text_.set(name, value);
    return std::move(text_);
  }

 private:
  std::string label() const {
    return !node_.name.empty() || node_.outputs.empty() ? node_.name : graph_.value(node_.outputs[0]).name;
  }
  template <class... A>
  [[noreturn]] void refuse(fmt::format_string<A...> text, A&&... args) const {
    fail(ErrorCode::unsupported, "{} \"{}\": IR has no operator for {}", node_.op.name(), label(),
         fmt::format(text, std::forward<A>(args)...));
  }

  // Attributes.
  void read_attributes() {
    for (auto& [name, value, owner] : node_.op->attributes()) {
      if (owner == Owner::lamina) continue;
      if (auto* type = std::get_if<ElementType>(&value)) *type = net_.writing().stored(*type);
      attributes_.emplace_back(name, attribute_text(value));
    }
    if (node_.op.has(Trait::binary_elementwise) || node_.op.is<Select>() ||
        node_.op.info().name == "FakeQuantize")
      set("auto_broadcast", "numpy");
  }
  void set(const std::string& name, const std::string& value) {
    for (auto& attribute : attributes_)
      if (attribute.first == name) {
        attribute.second = value;
        return;
      }
    attributes_.emplace_back(name, value);
  }
  void drop(std::initializer_list<std::string_view> names) {
    std::erase_if(attributes_, [&](const auto& attribute) {
      return std::find(names.begin(), names.end(), attribute.first) != names.end();
    });
  }
  /// A list of an element per axis; where it is empty all are `value`.
  void fill(const std::string& name, const Ints& list, std::size_t count, std::int64_t value) {
    set(name, attribute_text(list.empty() ? Ints(count, value) : list));
  }
  void fill_window(const Window& window, std::size_t axes) {
    fill("strides", window.strides, axes, 1);
    fill("dilations", window.dilations, axes, 1);
    fill("pads_begin", window.pads_begin, axes, 0);
    fill("pads_end", window.pads_end, axes, 0);
  }

  // Inputs.
  void make_inputs() {
    auto count = node_.inputs.size();
    while (count > 0 && !node_.inputs[count - 1].valid()) --count;
    for (std::size_t i = 0; i < count; ++i) {
      const bool backprop_bias = i == 2 && node_.op.is<ConvolutionBackpropData>();
      if (backprop_bias) continue;
      // own bits in own order: see by_operator()
      if (i == 1 && node_.op.is<BinaryConvolution>() && graph_.constant(node_.inputs[1])) {
        text_.inputs.push_back(
            net_.constant(*graph_.constant(node_.inputs[1]), graph_.value(node_.inputs[1]).name, true));
        continue;
      }
      // grouped weights have a shape of their own
      if (i == 1 && groups() > 1) {
        text_.inputs.push_back(grouped_weights());
        continue;
      }
      if (!node_.inputs[i].valid()) refuse("an input {} that is absent", i);
      text_.inputs.push_back(net_.value(node_.inputs[i]));
    }
  }
  std::int64_t groups() const {
    if (const auto* convolution = node_.op.as<Convolution>()) return convolution->groups;
    if (const auto* transposed = node_.op.as<ConvolutionBackpropData>()) return transposed->groups;
    return 1;
  }
  /// [g * a, b, ...] -> [g, a, b, ...]
  Outlet grouped_weights() {
    const ValueId weights = node_.inputs[1];
    const Shape& shape = graph_.type(weights).shape;
    if (!shape.known()) refuse("groups of weights {}", to_string(shape));
    Dims dims = shape.sizes();
    dims[0] /= groups();
    dims.insert(dims.begin(), groups());
    const std::string name = graph_.value(weights).name + "/groups";
    if (const Tensor* tensor = graph_.constant(weights))
      return net_.reshaped(weights, tensor->reshaped(dims), name);
    LayerText reshape{name, "Reshape", "opset1", {{"special_zero", "false"}}, {}};
    reshape.inputs = {
        net_.value(weights),
        net_.constant(Tensor::of(Dims{std::ssize(dims)}, Ints(dims.begin(), dims.end())), name + "_shape")};
    net_.add(std::move(reshape), {{{graph_.type(weights).element, Shape::of(dims)}, {}}});
    return net_.last();
  }
  std::size_t rank(std::size_t input) const {
    const Shape& shape = graph_.type(node_.inputs[input]).shape;
    if (!shape.ranked()) refuse("an input of unknown rank");
    return shape.rank();
  }
  bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i].valid(); }
  bool never_negative(std::size_t input) const {
    const Tensor* tensor = graph_.constant(node_.inputs[input]);
    if (!tensor) return false;
    const auto numbers = to_ints(*tensor);
    return std::all_of(numbers.begin(), numbers.end(), [](auto v) { return v >= 0; });
  }

  // What is special of some.
  void by_operator() {
    convolutions();
    poolings();
    movements();
    detections();
    others();
  }
  void convolutions() {
    if (const auto* op = node_.op.as<Convolution>()) {
      fill_window(*op, rank(1) - 2);
      if (op->groups > 1) text_.type = "GroupConvolution";
    } else if (const auto* transposed = node_.op.as<ConvolutionBackpropData>()) {
      fill_window(*transposed, rank(1) - 2);
      fill("output_padding", transposed->output_padding, rank(1) - 2, 0);
      if (transposed->groups > 1) text_.type = "GroupConvolutionBackpropData";
    } else if (const auto* binary = node_.op.as<BinaryConvolution>()) {
      fill_window(*binary, rank(1) - 2);
    } else if (const auto* deformable = node_.op.as<DeformableConvolution>()) {
      fill_window(*deformable, rank(2) - 2);
    }
  }
  void poolings() {
    if (const auto* op = node_.op.as<MaxPool>()) {
      fill_window(*op, op->kernel.size());
      opset_ = op->rounding_type == RoundingType::ceil_torch            ? 14
               : node_.outputs.size() > 1 || !all_are(op->dilations, 1) ? 8
                                                                        : 1;
      if (opset_ == 1) drop({"dilations", "index_element_type", "axis"});
      if (opset_ > 1 && node_.outputs.size() == 1)
        text_.more_outputs = {{{op->index_element_type, graph_.type(node_.outputs[0]).shape}, {}}};
    } else if (const auto* mean = node_.op.as<AvgPool>()) {
      fill_window(*mean, mean->kernel.size());
      // OpenVINO folds a Pad into opset1's revision, which divides wrongly then where windows overhang.
      const bool overhangs = mean->rounding_type == RoundingType::ceil && net_.writing().options.version > 10;
      const bool late = overhangs || mean->rounding_type == RoundingType::ceil_torch;
      opset_ = !all_are(mean->dilations, 1) ? 16 : late ? 14 : 1;
      if (opset_ < 16) drop({"dilations"});
    }
  }
  void movements() {
    if (node_.op.is<Pad>()) {
      opset_ = never_negative(1) && never_negative(2) ? 1 : net_.writing().options.version == 10 ? 1 : 12;
    } else if (const auto* slice = node_.op.as<StridedSlice>()) {
      const Shape& begin = graph_.type(node_.inputs[1]).shape;
      const std::size_t count = begin.ranked() && begin.rank() == 1 && begin[0].known()
                                    ? static_cast<std::size_t>(begin[0].size())
                                    : 0;
      fill("begin_mask", slice->begin_mask, count, 0);
      fill("end_mask", slice->end_mask, count, 0);
      fill("new_axis_mask", slice->new_axis_mask, count, 0);
      fill("shrink_axis_mask", slice->shrink_axis_mask, count, 0);
      fill("ellipsis_mask", slice->ellipsis_mask, count, 0);
    } else if (const auto* squeeze = node_.op.as<Squeeze>()) {
      if (squeeze->allow_axis_skip)
        opset_ = 15;
      else
        drop({"allow_axis_skip"});
    } else if (const auto* elements = node_.op.as<ScatterElementsUpdate>()) {
      if (net_.writing().options.version > 10 || elements->reduction != ElementsReduction::none)
        opset_ = 12;
      else
        drop({"reduction", "use_init_val"});
    } else if (const auto* slices = node_.op.as<ScatterNDUpdate>()) {
      if (slices->reduction != SlicesReduction::none)
        opset_ = 15;
      else
        drop({"reduction"});
    } else if (const auto* top = node_.op.as<TopK>()) {
      if (top->stable && net_.writing().options.version > 10)
        opset_ = 11;
      else
        drop({"stable"});
    } else if (node_.op.info().name == "OneHot") {
      drop({"negative_indices_mode"});
    }
  }
  void detections() {
    if (const auto* op = node_.op.as<NonMaxSuppression>()) {
      opset_ = op->soft_up_to_threshold || net_.writing().options.version == 10 ? 5 : 9;
      drop({"soft_up_to_threshold"});
    } else if (const auto* align = node_.op.as<ROIAlign>()) {
      if (align->aligned_mode != AlignedMode::asymmetric)
        opset_ = 9;
      else
        drop({"aligned_mode"});
    } else if (const auto* prior = node_.op.as<PriorBox>()) {
      if (!prior->min_max_aspect_ratios_order)
        opset_ = 8;
      else
        drop({"min_max_aspect_ratios_order"});
    } else if (node_.op.is<MulticlassNms>()) {
      opset_ = has(2) ? 9 : 8;
    } else if (const auto* yuv = node_.op.as<YuvToRgb>()) {
      text_.type = fmt::format("{}to{}", yuv->format == YuvFormat::nv12 ? "NV12" : "I420",
                               yuv->order == ColourOrder::rgb ? "RGB" : "BGR");
      drop({"format", "order"});
      opset_ = 8;
    }
  }
  void others() {
    const std::string_view name = node_.op.info().name;
    if (name == "LSTMCell" || name == "LSTMSequence") drop({"input_forget"});
    if (name == "LSTMCell" || name == "LSTMSequence") drop_zero_peepholes(name == "LSTMCell" ? 6 : 7);
    if (name == "GridSample" && rank(0) != 4) refuse("a grid of {} axes, wanted 4", rank(0));
    if (const auto* op = node_.op.as<Interpolate>()) {
      interpolate(*op);
    } else if (const auto* read = node_.op.as<ReadValue>()) {
      if (read->variable_type != ElementType::undefined)
        opset_ = 6;
      else
        drop({"variable_type", "variable_shape"});
    } else if (const auto* assign = node_.op.as<Assign>()) {
      opset_ = net_.untyped_variables().contains(assign->variable_id) ? 3 : 6;
    }
  }
  void drop_zero_peepholes(std::size_t inputs) {
    if (text_.inputs.size() > inputs) text_.inputs.resize(inputs);
  }

  /// Until opset11 there are both sizes and scales, of which one is read.
  void interpolate(const Interpolate& op) {
    const std::size_t axes = rank(0);
    fill("pads_begin", op.pads_begin, axes, 0);
    fill("pads_end", op.pads_end, axes, 0);
    if (text_.inputs.size() > 3) text_.inputs.resize(3);  // a region nobody reads
    if (op.mode == InterpolateMode::bilinear_pillow || op.mode == InterpolateMode::bicubic_pillow) {
      opset_ = 11;
      return;
    }
    const Shape& given = graph_.type(node_.inputs[1]).shape;
    const Shape& axes_shape = graph_.type(node_.inputs[2]).shape;
    const Shape& known = given.known() ? given : axes_shape;
    if (!known.known() || known.rank() > 1) refuse("an unknown number of axes");
    const std::int64_t count = known.rank() == 0 ? 1 : known[0].size();
    const std::string name = label();
    const bool by_scales = op.shape_calculation_mode == ShapeCalculationMode::scales;
    if (by_scales) {
      const Tensor sizes = Tensor::of(Dims{count}, Ints(static_cast<std::size_t>(count), 1));
      text_.inputs.insert(text_.inputs.begin() + 1, net_.constant(sizes, name + "/sizes"));
    } else {
      const Tensor scales = Tensor::of(Dims{count}, std::vector<float>(static_cast<std::size_t>(count), 1));
      text_.inputs.insert(text_.inputs.begin() + 2, net_.constant(scales, name + "/scales"));
    }
  }

  LayerText make_custom(const CustomOp& op) {
    text_.type = op.declared().type;
    text_.version = op.declared().domain;
    for (const auto& [name, value, owner] : op.attributes()) text_.set(name, attribute_text(value));
    make_inputs();
    return std::move(text_);
  }

  LayerText make_opaque(const Opaque& op) {
    if (!net_.writing().from_ir())
      fail(ErrorCode::unsupported,
           "{} \"{}\": lamina does not know this operator of {}, and IR has none of it", op.type, label(),
           name_of(net_.writing().loaded.format));
    text_.version = op.version;
    for (const auto& attribute : op.attributes) {
      const auto equals = attribute.find('=');
      text_.set(attribute.substr(0, equals), equals == std::string::npos ? "" : attribute.substr(equals + 1));
    }
    if (text_.type == "Const") keep_foreign_constant();
    make_inputs();
    return std::move(text_);
  }

  /// Numbers of a type that lamina has not: their bytes are copied.
  void keep_foreign_constant() {
    const auto& kept = net_.writing().loaded.ir_notes.foreign;
    const auto it = kept.find(label());
    if (it == kept.end())
      fail(ErrorCode::unsupported, "Const \"{}\": its element type is none that lamina can write", label());
    for (auto& [name, value] : text_.data) {
      if (name == "offset") value = std::to_string(net_.writing().bin.add(it->second));
      if (name == "size") value = std::to_string(it->second.bytes());
    }
  }

  NetWriter& net_;
  const Graph& graph_;
  const Node& node_;
  LayerText text_;
  std::vector<std::pair<std::string, std::string>> attributes_;
  int opset_ = 0;
};

}  // namespace

LayerText layer_of(NetWriter& net, const Node& node) { return LayerMaker(net, node).make(); }

}  // namespace lamina::ir
