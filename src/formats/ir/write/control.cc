// If, Loop and TensorIterator: bodies are networks of their own, port maps say what goes in and comes out.
#include "ops/control.h"
#include "formats/ir/write/net_writer.h"
#include "formats/ir/write/text_out.h"

namespace lamina::ir {
namespace {

/// Parameters of a body that nothing in it reads.
std::vector<bool> unread_inputs(const Graph& body) {
  std::vector<bool> read(body.value_slots());
  for (const auto& result : body.results()) read[result.value.index] = true;
  std::vector<bool> out;
  for (const auto v : body.inputs()) out.push_back(body.value(v).uses.empty() && !read[v.index]);
  return out;
}

/// The value is a constant true.
bool is_true(const Graph& graph, ValueId value) {
  const Tensor* tensor = graph.constant(value);
  if (!tensor || tensor->element_type() != ElementType::boolean) return false;
  for (std::size_t i = 0; i < tensor->size(); ++i)
    if (tensor->raw()[i] == std::byte{0}) return false;
  return true;
}

pugi::xml_node line(pugi::xml_node map, const char* side, std::int64_t external, std::uint32_t internal) {
  auto node = map.append_child(side);
  node.append_attribute("external_port_id").set_value(static_cast<long long>(external));
  node.append_attribute("internal_layer_id").set_value(internal);
  return node;
}

struct SliceText {
  std::int64_t axis, start, end, stride, part_size;
};
void add_slice(pugi::xml_node node, const SliceText& slice) {
  node.append_attribute("axis").set_value(static_cast<long long>(slice.axis));
  node.append_attribute("start").set_value(static_cast<long long>(slice.start));
  node.append_attribute("end").set_value(static_cast<long long>(slice.end));
  node.append_attribute("stride").set_value(static_cast<long long>(slice.stride));
  node.append_attribute("part_size").set_value(static_cast<long long>(slice.part_size));
}

std::string layer_name(const NetWriter& net, const Node& node) {
  return node.name.empty() ? net.graph().value(node.outputs[0]).name : node.name;
}

/// Loop, or TensorIterator where slices alone decide how often it runs.
class LoopText {
 public:
  LoopText(NetWriter& net, const Node& node)
      : net_(net),
        node_(node),
        op_(*node.op.as<Loop>()),
        body_{node.bodies.at(0), {}},
        iterator_(is_tensor_iterator(net.graph(), op_, node.inputs, body_.graph)),
        counts_(!unread_inputs(body_.graph)[0]) {}

  void write(const std::vector<OutPort>& outputs, const std::string& rt_info) {
    LayerText text;
    text.name = layer_name(net_, node_);
    text.type = iterator_ ? "TensorIterator" : "Loop";
    text.version = iterator_ ? "opset1" : "opset5";
    for (std::size_t i = iterator_ ? 2 : 0; i < node_.inputs.size(); ++i)
      text.inputs.push_back(net_.value(node_.inputs[i]));
    const auto inputs = static_cast<std::int64_t>(text.inputs.size());
    auto layer = net_.add(std::move(text), outputs, rt_info);
    auto map = layer.append_child("port_map"), back = layer.append_child("back_edges");
    NetWriter body(net_.writing(), body_, layer.append_child("body"), true);
    if (!counts_) body.leave_out(0);
    body.leave_out(1);
    body.write();
    map_inputs(map, body);
    map_outputs(map, body, inputs);
    for (std::int64_t i = 0; i < op_.carried; ++i) {
      auto edge = back.append_child("edge");
      edge.append_attribute("from-layer").set_value(body.result_id(static_cast<std::size_t>(1 + i)));
      edge.append_attribute("to-layer").set_value(body.parameter_id(static_cast<std::size_t>(2 + i)));
    }
  }

 private:
  static std::int64_t at(const Ints& list, std::size_t i, std::int64_t fallback) {
    return i < list.size() ? list[i] : fallback;
  }

  void map_inputs(pugi::xml_node map, const NetWriter& body) {
    if (counts_)
      line(map, "input", -1, body.parameter_id(0)).append_attribute("purpose").set_value("current_iteration");
    const std::int64_t first = iterator_ ? 0 : 2;
    const auto carried = static_cast<std::size_t>(op_.carried);
    for (std::size_t i = 2; i < node_.inputs.size(); ++i) {
      auto node = line(map, "input", first + static_cast<std::int64_t>(i) - 2, body.parameter_id(i));
      if (i - 2 < carried || i - 2 - carried >= op_.slice_axes.size()) continue;
      const std::size_t k = i - 2 - carried;
      const std::int64_t stride = at(op_.slice_strides, k, 1);
      add_slice(node, {op_.slice_axes[k], at(op_.slice_starts, k, stride < 0 ? -1 : 0),
                       at(op_.slice_ends, k, stride < 0 ? 0 : -1), stride, at(op_.slice_part_sizes, k, 1)});
    }
  }

  void map_outputs(pugi::xml_node map, const NetWriter& body, std::int64_t inputs) {
    if (!iterator_)
      line(map, "output", -1, body.result_id(0)).append_attribute("purpose").set_value("execution_condition");
    const auto whole = static_cast<std::size_t>(op_.carried + op_.last);
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      auto node = line(map, "output", inputs + static_cast<std::int64_t>(i), body.result_id(1 + i));
      if (i < whole) continue;
      const std::int64_t axis = at(op_.concat_axes, i - whole, 0);
      const std::int64_t stride = at(op_.concat_strides, i - whole, 1) < 0 ? -1 : 1;
      const std::int64_t size = part_size(body_.graph.type(body_.graph.results()[1 + i].value).shape, axis);
      add_slice(node, {axis, stride < 0 ? -1 : 0, stride < 0 ? 0 : -1, stride * size, size});
    }
  }
  static std::int64_t part_size(const Shape& shape, std::int64_t axis) {
    if (!shape.ranked()) return 1;
    const Dim& dim = shape[normalize_axis(axis, shape.rank(), "axis")];
    return dim.known() && dim.size() > 0 ? dim.size() : 1;
  }

  NetWriter& net_;
  const Node& node_;
  const Loop& op_;
  LegalGraph body_;
  bool iterator_, counts_;  // counts_: the body reads which iteration it is
};

void write_branch(NetWriter& net, pugi::xml_node layer, pugi::xml_node map, const char* tag,
                  const Graph& graph, std::int64_t inputs) {
  const LegalGraph legal{graph, {}};
  NetWriter body(net.writing(), legal, layer.append_child(tag), true);
  const auto unread = unread_inputs(graph);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    if (unread[i]) body.leave_out(i);
  body.write();
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    if (!unread[i]) line(map, "input", static_cast<std::int64_t>(i) + 1, body.parameter_id(i));
  for (std::size_t i = 0; i < graph.results().size(); ++i)
    line(map, "output", inputs + static_cast<std::int64_t>(i), body.result_id(i));
}

void write_if(NetWriter& net, const Node& node, const std::vector<OutPort>& outputs,
              const std::string& rt_info) {
  LayerText text;
  text.name = layer_name(net, node);
  text.type = "If";
  text.version = "opset8";
  for (const auto v : node.inputs) text.inputs.push_back(net.value(v));
  const auto inputs = static_cast<std::int64_t>(text.inputs.size());
  auto layer = net.add(std::move(text), outputs, rt_info);
  auto then_map = layer.append_child("then_port_map"), else_map = layer.append_child("else_port_map");
  write_branch(net, layer, then_map, "then_body", node.bodies.at(0), inputs);
  write_branch(net, layer, else_map, "else_body", node.bodies.at(1), inputs);
}

}  // namespace

bool is_tensor_iterator(const Graph& graph, const Loop& op, const std::vector<ValueId>& inputs,
                        const Graph& body) {
  const auto has = [&](std::size_t i) { return i < inputs.size() && inputs[i].valid(); };
  return !op.slice_axes.empty() && !has(0) && (!has(1) || is_true(graph, inputs[1])) &&
         is_true(body, body.results()[0].value) && unread_inputs(body)[0];
}

bool write_control(NetWriter& net, const Node& node, const std::vector<OutPort>& outputs,
                   const std::string& rt_info) {
  if (node.op.is<If>())
    write_if(net, node, outputs, rt_info);
  else if (node.op.is<Loop>())
    LoopText(net, node).write(outputs, rt_info);
  else
    return false;
  return true;
}

}  // namespace lamina::ir
