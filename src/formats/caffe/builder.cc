#include "formats/caffe/builder.h"

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "formats/caffe/custom.h"
#include "formats/read_error.h"
#include "formats/reading_points.h"
#include "ops/control.h"

namespace lamina::caffe {
namespace {

/// Layers that read from data bases and files; Python ones without a bottom do, too.
bool is_data(const LayerDef& layer) {
  return layer.bottoms.empty() && (layer.type.ends_with("Data") || layer.type == "Python");
}

/// What judges a network, or says that blobs are no outputs. Of a loss with probabilities these stay.
bool is_loss_or_metric(const LayerDef& layer) {
  if (layer.type == "SoftmaxWithLoss" && layer.tops.size() > 1) return false;
  if (layer.type == "Python" && layer.message.find("loss_weight")) return true;
  return layer.type == "Accuracy" || layer.type == "HDF5Output" || layer.type.ends_with("Loss") ||
         layer.type.ends_with("Evaluate");
}

/// Sizes that a Data layer says itself; all others come from what it reads.
Shape data_shape(const LayerDef& layer) {
  const Params memory(layer.message, "memory_data_param");
  if (memory.has("channels"))
    return {memory.count("batch_size", 1), memory.count("channels", 1), memory.count("height", 1),
            memory.count("width", 1)};
  const Params dummy(layer.message, "dummy_data_param");
  if (const auto shape = dummy.find("shape")) return blob_shape(shape->message());
  if (dummy.has("channels"))
    return {dummy.count("num", 1), dummy.count("channels", 1), dummy.count("height", 1),
            dummy.count("width", 1)};
  if (layer.type != "Data" && layer.type != "ImageData" && layer.type != "AnnotatedData") return {};
  auto shape = Shape::of_rank(4);
  const Params images(layer.message, "image_data_param"), transform(layer.message, "transform_param");
  const auto crop = transform.count("crop_size", 0);
  const auto h = crop != 0 ? crop : images.count("new_height", 0),
             w = crop != 0 ? crop : images.count("new_width", 0);
  if (h > 0 && w > 0) shape = Shape{Dim(), Dim(), Dim(h), Dim(w)};
  if (layer.type == "ImageData") shape[1] = images.flag("is_color", true) ? 3 : 1;
  return shape;
}

std::string label(const LayerDef& layer) { return fmt::format("layer \"{}\" ({})", layer.name, layer.type); }

}  // namespace

void Builder::run() {
  note_names();
  try {
    for (const auto& input : net_.inputs) add_input(input.name, input.shape);
  } catch (const Error& e) {
    throw ReadError(e, fmt::format("{}: {}", path_, e.what()));
  }
  for (std::size_t i = 0; i < net_.layers.size(); ++i) {
    const auto& layer = net_.layers[i];
    note_read(4 * kReadOfNode);
    try {
      add_layer(i);
    } catch (const Error& e) {
      const auto reason = reason_of(e);
      const bool located = reason.starts_with(path_ + ":");  // a field, with its own line
      throw ReadError(
          e, located ? reason : fmt::format("{}:{}: {}: {}", path_, layer.line, label(layer), reason),
          located ? FileProblem::caffe_text : FileProblem::caffe_layer);
    }
  }
  add_results();
}

void Builder::note_names() {
  for (const auto& layer : net_.left_out)
    if (is_data(layer) && !layer.tops.empty())
      labels_.insert(std::next(layer.tops.begin()), layer.tops.end());
  for (std::size_t i = 0; i < net_.layers.size(); ++i) {
    layer_named_.try_emplace(net_.layers[i].name, i);
    for (const auto& top : net_.layers[i].tops) {
      last_writer_[top] = i;
      later_.insert(top);
    }
  }
}

void Builder::add_input(const std::string& name, const std::optional<Shape>& shape) {
  if (name.empty()) fail(ErrorCode::bad_file, "an input has no name");
  if (tops_.contains(name)) fail(ErrorCode::bad_file, "makes \"{}\", which is there already", name);
  const auto asked = settings_.shapes.find(name);
  const auto type = asked != settings_.shapes.end() ? asked->second : shape.value_or(Shape());
  inputs_.insert(name);
  tops_[name] = {loaded_.graph.add_input(name, {ElementType::f32, type}), false, true};
}

/// One shape for each top, or one for all.
void Builder::add_input_layer(const LayerDef& layer) {
  const auto param = layer.message.find("input_param");
  const auto shapes = param ? param->message().all("shape") : std::vector<ProtoText::Field>();
  if (shapes.size() > 1 && shapes.size() != layer.tops.size())
    fail(ErrorCode::bad_file, "{} shapes for {} tops, wanted 1 or as many", shapes.size(), layer.tops.size());
  for (std::size_t i = 0; i < layer.tops.size(); ++i) {
    std::optional<Shape> shape;
    if (!shapes.empty()) shape = blob_shape(shapes[shapes.size() == 1 ? 0 : i].message());
    add_input(layer.tops[i], shape);
  }
}

/// The first top is what the network is for. The others are labels: inputs only where a layer that stays
/// reads them beside other blobs.
void Builder::add_data_layer(const LayerDef& layer) {
  for (std::size_t i = 0; i < layer.tops.size(); ++i)
    if (i == 0)
      add_input(layer.tops[i], data_shape(layer));
    else
      labels_.insert(layer.tops[i]);
}

/// What makes nothing, or something of labels only; what is not known and looks at labels is a judge.
bool Builder::has_no_part(const LayerDef& layer) const {
  if (layer.tops.empty()) return true;
  const auto labels = std::count_if(layer.bottoms.begin(), layer.bottoms.end(),
                                    [&](const auto& b) { return labels_.contains(b) && !tops_.contains(b); });
  if (labels == 0) return false;
  const bool is_known = layer.type != "Python" && converters().find(layer.type) != nullptr;
  return !is_known || static_cast<std::size_t>(labels) == layer.bottoms.size();
}

/// Silence says that its bottoms are no outputs; what judges does not.
void Builder::drop(const LayerDef& layer) {
  for (const auto& bottom : layer.bottoms) {
    const auto it = tops_.find(bottom);
    if (it != tops_.end() && layer.type == "Silence") it->second.is_read = true;
  }
  for (const auto& top : layer.tops) labels_.insert(top);
}

void Builder::add_layer(std::size_t index) {
  const auto& layer = net_.layers[index];
  if (layer.type == "Input") return add_input_layer(layer);
  if (is_data(layer)) return add_data_layer(layer);
  if (layer.type == "Silence" || is_loss_or_metric(layer) || has_no_part(layer)) return drop(layer);
  std::set<std::string_view> seen;
  for (const auto& top : layer.tops)
    if (!seen.insert(top).second) fail(ErrorCode::bad_file, "has the top \"{}\" twice", top);
  for (const auto& top : layer.tops)
    if (tops_.contains(top) &&
        std::find(layer.bottoms.begin(), layer.bottoms.end(), top) == layer.bottoms.end())
      fail(ErrorCode::bad_file, "makes \"{}\", which is there already", top);
  const auto inputs = bottoms(layer);
  const auto first_node = loaded_.graph.node_slots(), first_value = loaded_.graph.value_slots();
  notes_.before("", layer.type, layer.name);
  const auto values = convert(layer, inputs);
  notes_.after("", layer.type, layer.name, loaded_.graph, first_node);
  finish(index, values, first_node, first_value);
}

Builder::Top& Builder::top_named(const LayerDef& layer, const std::string& name) {
  if (const auto it = tops_.find(name); it != tops_.end()) return it->second;
  if (labels_.contains(name)) {
    add_input(name, std::nullopt);
    return tops_[name];
  }
  // A file for training alone: its data are those of the test.
  for (const auto& layer : net_.left_out)
    if (is_data(layer) && std::find(layer.tops.begin(), layer.tops.end(), name) != layer.tops.end()) {
      add_input(name, layer.tops[0] == name ? std::optional(data_shape(layer)) : std::nullopt);
      return tops_[name];
    }
  if (later_.contains(name))
    fail(ErrorCode::bad_file, "reads \"{}\", which no layer before it makes, but a later one", name);
  Strings known;
  for (const auto& [top, value] : tops_) known.push_back(top);
  fail(ErrorCode::bad_file, "reads \"{}\", which no layer makes{}", name,
       layer.bottoms.size() < 1000 ? did_you_mean(name, known) : "");
}

Values Builder::bottoms(const LayerDef& layer) {
  Values inputs;
  const bool is_loss = layer.type == "SoftmaxWithLoss";  // of which only the probabilities are wanted
  for (const auto& name : layer.bottoms) {
    if (is_loss && !inputs.empty()) break;
    auto& top = top_named(layer, name);
    top.is_read = true;
    inputs.push_back(top.value);
  }
  return inputs;
}

/// What reads an unknown layer's tops may well fail; it is not to blame.
bool Builder::is_tainted(const Values& inputs) const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](auto v) { return loaded_.graph.type(v).element == ElementType::undefined; });
}

void Builder::list_unsupported(const LayerDef& layer, const std::string& reason) {
  const auto [it, added] = unsupported_.try_emplace({layer.type, reason}, loaded_.unsupported.size());
  if (added) loaded_.unsupported.push_back({layer.type, "", 0, {}, reason});
  loaded_.unsupported[it->second].nodes.push_back(layer.name);
}

Values Builder::make_opaque(const LayerDef& layer, const Values& inputs) {
  const auto id =
      loaded_.graph.add_node(Opaque{"", layer.type, "", {}}, inputs, {}, static_cast<int>(layer.tops.size()));
  return loaded_.graph.node(id).outputs;
}

Values Builder::convert(const LayerDef& layer, const Values& inputs) {
  auto& graph = loaded_.graph;
  const auto first_node = graph.node_slots();
  const Call call(graph, folding_budget_, layer, inputs, weights_, loaded_.warnings);
  if (auto operation = loaded_.extensions->find(kDomain, layer.type))
    return make_custom(call, std::move(operation));
  const auto converter = converters().find(layer.type);
  if (!converter) {
    list_unsupported(layer, "");
    return make_opaque(layer, inputs);
  }
  try {
    return converter(call);
  } catch (const NotSupported& e) {
    if (!is_tainted(inputs)) list_unsupported(layer, e.reason);
  } catch (const Error& e) {
    const bool not_ours = e.code() == ErrorCode::unsupported;
    if (e.code() == ErrorCode::internal || ends_the_work(e.code()) || (!not_ours && !is_tainted(inputs)))
      throw;
    if (not_ours) list_unsupported(layer, reason_of(e));
  }
  for (auto n = static_cast<std::uint32_t>(graph.node_slots()); n-- > first_node;)
    if (!graph.node({n}).erased()) graph.erase({n});
  return make_opaque(layer, inputs);
}

/// A top has the blob's name, unless layers behind it go on in place, or that is another layer's name: then
/// its own layer's.
std::string Builder::value_name(std::size_t index, std::size_t top) const {
  const auto& layer = net_.layers[index];
  const auto& blob = layer.tops[top];
  const auto owner = layer_named_.find(blob);
  const bool is_other = (owner != layer_named_.end() && owner->second != index) || inputs_.contains(blob);
  if (last_writer_.at(blob) == index && !is_other) return blob;
  return layer.tops.size() == 1 ? layer.name : fmt::format("{}_{}", layer.name, top);
}

void Builder::finish(std::size_t index, const Values& values, std::size_t first_node,
                     std::size_t first_value) {
  const auto& layer = net_.layers[index];
  auto& graph = loaded_.graph;
  const auto source = graph.add_source(layer.name, layer.type);
  for (auto n = static_cast<std::uint32_t>(first_node); n < graph.node_slots(); ++n) {
    if (graph.node({n}).erased()) continue;
    graph.set_node_name({n}, layer.name);
    graph.set_sources({n}, {source});
  }
  if (values.size() < layer.tops.size())
    fail(ErrorCode::bad_file, "has {} tops, wanted at most {}", layer.tops.size(), values.size());
  for (std::size_t i = 0; i < layer.tops.size(); ++i) {
    if (!values[i].valid()) {  // a loss
      labels_.insert(layer.tops[i]);
      continue;
    }
    if (values[i].index >= first_value) graph.set_value_name(values[i], value_name(index, i));
    const bool is_constant = graph.constant(values[i]) != nullptr;
    tops_.insert_or_assign(layer.tops[i], Top{values[i], false, is_constant});
  }
}

/// What nothing reads, in the order in which it is made.
void Builder::add_results() {
  for (std::size_t i = 0; i < net_.layers.size(); ++i)
    for (const auto& name : net_.layers[i].tops) {
      const auto it = tops_.find(name);
      if (it == tops_.end() || last_writer_.at(name) != i || it->second.is_read || it->second.is_input)
        continue;
      loaded_.graph.add_result(loaded_.graph.value(it->second.value).name, it->second.value);
    }
  if (loaded_.graph.results().empty()) fail(ErrorCode::bad_file, "{}: no layer makes a result", path_);
}

}  // namespace lamina::caffe
