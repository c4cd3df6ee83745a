/// The formats' trees, put together.
#include <functional>
#include <stdexcept>

#include "tests/mutation/protobuf_tree.h"
#include "tests/mutation/text_tree.h"

namespace lamina::testing {
namespace {

/// The tree of a Caffe model, with both files as parts.
Tree caffe_tree(const ModelFiles& files) {
  Tree out{"caffe"};
  out.children.push_back(prototext_tree(files.model));
  if (!files.weights.empty()) {
    out.children.push_back(caffemodel_tree(files.weights));
    out.children.back().name = "weights";
  }
  return out;
}

void each_message(Tree& tree, const std::function<void(Tree&, std::string_view)>& call) {
  if (tree.kind == Tree::Kind::group && !tree.text.empty()) call(tree, tree.text);
  for (auto& c : tree.children)
    if (!c.is_leaf()) each_message(c, call);
}

}  // namespace

TreeModel tree_of(TreeFormat format, const ModelFiles& files) {
  TreeModel out;
  out.format = format;
  switch (format) {
    case TreeFormat::onnx:
      out.tree = onnx_tree(files.model);
      break;
    case TreeFormat::ir:
    case TreeFormat::legacy_ir:
      out.tree = xml_tree(files.model, files.weights);
      out.blob = files.weights;
      break;
    case TreeFormat::caffe:
      out.tree = caffe_tree(files);
      break;
    case TreeFormat::tensorflow:
      out.tree = tensorflow_tree(files.model);
      break;
    case TreeFormat::onednn_graph:
      out.tree = json_tree(files.model);
      break;
  }
  set_roles(out.tree);
  return out;
}

ModelFiles files_of(const TreeModel& model) {
  switch (model.format) {
    case TreeFormat::ir:
    case TreeFormat::legacy_ir: {
      ModelFiles out{{}, model.blob};
      out.model = xml_text(model.tree, out.weights);
      return out;
    }
    case TreeFormat::caffe: {
      ModelFiles out;
      if (const auto* net = model.tree.find("net")) out.model = prototext(*net);
      if (const auto* weights = model.tree.find("weights")) out.weights = protobuf_bytes(*weights);
      return out;
    }
    case TreeFormat::onednn_graph:
      return {json_text(model.tree)};
    default:
      return {protobuf_bytes(model.tree)};
  }
}

void repair_tensors(TreeModel& model) {
  if (model.format == TreeFormat::ir || model.format == TreeFormat::legacy_ir) return repair_xml(model.tree);
  each_message(model.tree, [](Tree& t, std::string_view message) { repair_tensor(t, message); });
}

}  // namespace lamina::testing
