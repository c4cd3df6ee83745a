// Layers whose old revisions have other inputs or attributes than the newest one.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "formats/ir/converters.h"
#include "formats/ir/text.h"
#include "graph/infer.h"

namespace lamina::ir {
namespace {

/// Up to opset4, gamma and beta are inputs before x.
void batch_norm(LayerContext& c) {
  c.want_inputs(5, 5);
  std::vector<NamedAttribute> renamed;
  if (!c.has("epsilon") && c.has("eps")) {
    const auto epsilon = parse_number(c.text("eps"));
    c.require(epsilon && *epsilon >= 0, "eps=\"{}\", wanted a number", c.text("eps").substr(0, 80));
    renamed.push_back({"epsilon", *epsilon});
  }
  Op op = c.op("BatchNormInference", renamed);
  if (c.opset() >= 5) return c.finish(std::move(op), c.all_inputs());
  c.finish(std::move(op), {c.in(2), c.in(0), c.in(1), c.in(3), c.in(4)});
}

/// MVN-1 has its axes as attributes.
void mvn(LayerContext& c) {
  if (c.opset() >= 6 && !c.has("across_channels")) return c.finish(c.op("MVN"), c.all_inputs());
  c.want_inputs(1, 1);
  Ints axes = c.integers("reduction_axes");
  if (axes.empty()) {
    const std::size_t first = c.boolean("across_channels", true) ? 1 : 2;
    c.require(c.rank(0) > first, "the input has rank {}, wanted more than {}", c.rank(0), first);
    axes.resize(c.rank(0) - first);
    std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(first));
  }
  c.finish(c.op("MVN", {{"eps_mode", std::string("inside_sqrt")}}), {c.in(0), c.constant(axes, "axes")});
}

/// Range-0 has the type of its inputs.
void range(LayerContext& c) {
  c.want_inputs(3, 3);
  if (c.opset() >= 4) return c.finish(c.op("Range"), c.all_inputs());
  const ElementType type = c.type(0).element;
  c.require(type != ElementType::undefined, "start has an unknown element type");
  c.finish(c.op("Range", {{"output_type", type}}), c.all_inputs());
}

void logical_xor(LayerContext& c) { c.finish(c.op("LogicalXor"), c.all_inputs()); }

/// Reverse-1: a Slice with steps of -1. Axes are given by index or by a mask.
void reverse(LayerContext& c) {
  c.want_inputs(2, 2);
  const Tensor* given = c.graph().constant(c.in(1));
  if (!given) throw NotSupported{"axes that are not constant"};
  const std::string mode = lower(c.text("mode", "index"));
  c.require(mode == "index" || mode == "mask", "mode=\"{}\", wanted index or mask", mode.substr(0, 80));
  c.require(is_integer(given->element_type()) || given->element_type() == ElementType::boolean,
            "axes are no integers");
  Ints axes = to_ints(*given);
  if (mode == "mask") {
    Ints marked;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i] != 0) marked.push_back(static_cast<std::int64_t>(i));
    axes = marked;
  }
  if (axes.empty()) return c.finish(c.plain_op("Identity"), {c.in(0)});
  const Ints start(axes.size(), -1), stop(axes.size(), std::numeric_limits<std::int64_t>::min()),
      step(axes.size(), -1);
  c.finish(c.plain_op("Slice"), {c.in(0), c.constant(start, "start"), c.constant(stop, "stop"),
                                 c.constant(step, "step"), c.constant(axes, "axes")});
}

/// GatherND-5 flattens the batch dimensions into one.
void gather_nd(LayerContext& c) {
  c.want_inputs(2, 2);
  const Ints given = c.integers("batch_dims");
  const auto batch = given.empty() ? 0 : given[0];
  Op op = c.op("GatherND");
  if (c.opset() >= 8 || batch <= 1) return c.finish(std::move(op), c.all_inputs());
  const ValueId gathered = c.add(std::move(op), c.all_inputs(), "by_batch");
  const Shape shape = c.graph().type(gathered).shape;
  if (!shape.known() || shape.count().is(0)) throw NotSupported{"batch_dims above 1 with an unknown shape"};
  const Dims sizes = shape.sizes();
  Ints flat(sizes.begin() + std::min<std::ptrdiff_t>(batch, std::ssize(sizes)) - 1, sizes.end());
  flat[0] = -1;
  c.finish(c.plain_op("Reshape"), {gathered, c.constant(flat, "flat_shape")});
}

/// Broadcast-1 knows PaddlePaddle's rule: x lies along the axes of the target from `axis` on.
void broadcast(LayerContext& c) {
  c.want_inputs(2, 3);
  if (lower(c.text("mode")) != "pdpd") return c.finish(c.op("Broadcast"), c.all_inputs());
  const Ints given = c.has("axis") ? c.integers("axis") : Ints{-1};
  const Shape target = c.shape(1);
  c.require(given.size() == 1 && target.ranked() && target.rank() == 1 && target[0].known(),
            "pdpd with an unknown rank");
  const auto rank = static_cast<std::int64_t>(c.rank(0));
  const auto from = given[0] == -1 ? target[0].size() - rank : given[0];
  c.require(from >= 0 && from <= target[0].size() - rank, "axis {} does not fit the shapes", given[0]);
  Ints axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), from);
  c.finish(c.plain_op("Broadcast", {{"mode", std::string("explicit")}}),
           {c.in(0), c.in(1), c.constant(axes, "axes")});
}

void split(LayerContext& c) {
  const Ints parts = c.integers("num_splits");
  c.require(parts.size() == 1, "num_splits is missing");
  c.require(parts[0] == std::ssize(c.layer().outputs), "num_splits is {}, but the layer has {} outputs",
            parts[0], c.layer().outputs.size());
  c.finish(c.op("Split"), c.all_inputs());
}

/// Gates, 4h of them along an axis, in IR's order f, i, c, o from another one.
ValueId reordered_gates(LayerContext& c, ValueId value, std::int64_t along, const std::string& format,
                        const std::string& what) {
  const ValueId axis = c.constant(Tensor::scalar(along), what + "_axis");
  const auto node = c.graph().add_node(c.plain_op("Split", {{"num_splits", std::int64_t{4}}}), {value, axis},
                                       c.layer().name + "/" + what + "_gates", 4);
  const auto gates = c.graph().node(node).outputs;
  std::vector<ValueId> wanted;
  for (const char gate : std::string_view("fico")) wanted.push_back(gates[format.find(gate)]);
  return c.add(c.plain_op("Concat", {{"axis", along}}), wanted, what);
}

/// The first operation sets had other orders of gates and peepholes, behind `inputs` others of which the last
/// three are weights and bias. Gates lie along axis `along`.
void first_lstm(LayerContext& c, const char* name, std::size_t inputs_without, std::int64_t along) {
  const std::string format = lower(c.text("weights_format", "fico"));
  auto inputs = c.all_inputs();
  if (inputs.size() > inputs_without) throw NotSupported{"peepholes"};
  Op op = c.op(name);
  if (format != "fico") {
    std::string sorted = format;
    std::sort(sorted.begin(), sorted.end());
    c.require(sorted == "cfio", "weights_format=\"{}\", wanted an order of f, i, c, o", format.substr(0, 80));
    constexpr std::array kNames = {"W", "R", "B"};
    const auto first = inputs_without - kNames.size();
    for (std::size_t i = first; i < inputs.size(); ++i)
      inputs[i] = reordered_gates(c, inputs[i], along, format, kNames[i - first]);
  }
  c.finish(std::move(op), std::move(inputs));
}

void lstm_cell(LayerContext& c) {
  if (c.opset() < 4) {
    c.want_inputs(5, 7);  // the bias may be missing
    return first_lstm(c, "LSTMCell", 6, 0);
  }
  c.want_inputs(6, 6);
  c.finish(c.op("LSTMCell"), c.all_inputs());
}

void lstm_sequence(LayerContext& c) {
  if (c.opset() < 5) {
    c.want_inputs(7, 8);
    return first_lstm(c, "LSTMSequence", 7, 1);
  }
  c.want_inputs(7, 7);
  c.finish(c.op("LSTMSequence"), c.all_inputs());
}

void detection_output(LayerContext& c) {
  for (const auto keep : c.integers("keep_top_k"))
    c.require(keep > 0 || keep == -1, "keep_top_k is {}, wanted at least 1", keep);
  if (const Ints classes = c.integers("num_classes"); classes.size() == 1 && c.inputs() >= 3)
    require_classes(c, classes[0], c.boolean("normalized", false));
  c.finish(c.op("DetectionOutput"), c.all_inputs());
}

/// NonMaxSuppression-5 has a soft mode that drops by the IoU threshold, too; from opset9 on it only weakens.
void non_max_suppression(LayerContext& c) {
  c.finish(c.op("NonMaxSuppression", {{"soft_up_to_threshold", c.opset() < 9}}), c.all_inputs());
}

void roi_align(LayerContext& c) {
  const std::string mode = lower(c.text("mode", "avg"));
  c.require(mode == "avg" || mode == "max", "mode=\"{}\", wanted avg or max", mode.substr(0, 80));
  c.finish(c.op("ROIAlign"), c.all_inputs());
}

void convert_type(LayerContext& c) {
  c.require(c.has("destination_type"), "destination_type is missing");
  if (is_foreign_element_type(c.text("destination_type")))
    throw NotSupported{fmt::format("element type {}", c.text("destination_type"))};
  c.finish(c.op("Convert"), c.all_inputs());
}

/// NV12toRGB and its like.
void colours(LayerContext& c) {
  const std::string type = lower(c.layer().type);
  c.finish(c.plain_op("YuvToRgb", {{"format", type.substr(0, 4)}, {"order", type.substr(6)}}),
           c.all_inputs());
}

}  // namespace

void require_classes(LayerContext& c, std::int64_t classes, bool normalized) {
  const Shape confidences = c.shape(1), priors = c.shape(2);
  if (!confidences.ranked() || !priors.ranked() || confidences.rank() < 2 || priors.rank() == 0) return;
  const Dim numbers = priors[priors.rank() - 1], given = confidences[1];
  if (!numbers.known() || !given.known()) return;
  const std::int64_t count = numbers.size() / (normalized ? 4 : 5);
  c.require(classes >= 1 && given.size() % classes == 0 && given.size() / classes == count,
            "num_classes is {}, but there are {} confidences for {} priors", classes, given.size(), count);
}

void register_special(ConverterTable& t) {
  t.add("BatchNormInference", batch_norm);
  t.add("MVN", mvn);
  t.add("Range", range);
  t.add("Xor", logical_xor);
  t.add("Reverse", reverse);
  t.add("GatherND", gather_nd);
  t.add("Broadcast", broadcast);
  t.add("Split", split);
  t.add("LSTMCell", lstm_cell);
  t.add("LSTMSequence", lstm_sequence);
  t.add("DetectionOutput", detection_output);
  t.add("NonMaxSuppression", non_max_suppression);
  t.add("ROIAlign", roi_align);
  t.add("Convert", convert_type);
  t.add("NV12toRGB", colours);
  t.add("NV12toBGR", colours);
  t.add("I420toRGB", colours);
  t.add("I420toBGR", colours);
}

}  // namespace lamina::ir
