// TensorIterator, Loop and If with their port maps, and variables. ops/control.h says what lamina's Loop and
// If look like.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "formats/building.h"
#include "formats/ir/converters.h"
#include "formats/ir/loop_body.h"
#include "formats/ir/text.h"
#include "ops/control.h"

namespace lamina::ir {
namespace {

class BodyReader {
 public:
  explicit BodyReader(LayerContext& c) : c_(c), xml_(c.reading().xml) {}

  Body read(const char* body_tag, const char* map_tag) {
    const auto node = c_.layer().xml.child(body_tag);
    c_.require(!node.empty(), "has no <{}>", body_tag);
    body_.net = read_network(xml_, node);
    c_.require(!body_.net.all("Result").empty(), "the <{}> has no Result", body_tag);
    const auto map = c_.layer().xml.child(map_tag);
    std::set<std::uint32_t> mapped;
    for (const auto line : map.children("input")) {
      body_.inputs.push_back(read_mapping(line, "Parameter"));
      if (!mapped.insert(body_.inputs.back().internal).second)
        xml_.fail(line, "layer {} of the body is mapped twice", xml_.integer(line, "internal_layer_id"));
    }
    for (const auto line : map.children("output")) body_.outputs.push_back(read_mapping(line, "Result"));
    return std::move(body_);
  }

  void read_back_edges(Body& body) {
    for (const auto edge : c_.layer().xml.child("back_edges").children("edge")) {
      const auto from = find(body, edge, "from-layer", "Result"),
                 to = find(body, edge, "to-layer", "Parameter");
      if (!body.back.emplace(to, from).second) xml_.fail(edge, "two back edges lead to one layer");
    }
  }

 private:
  Mapping read_mapping(pugi::xml_node line, std::string_view kind) {
    Mapping out;
    out.purpose = lower(line.attribute("purpose").value());
    out.external = xml_.integer(line, "external_port_id", kNoPort);
    out.internal = find(body_, line, "internal_layer_id", kind);
    out.sliced = !line.attribute("axis").empty();
    if (!out.sliced) return out;
    out.axis = xml_.integer(line, "axis");
    read_slicing(xml_, line, out);
    return out;
  }

  std::uint32_t find(const Body& body, pugi::xml_node node, const char* attribute, std::string_view kind) {
    const auto id = xml_.integer(node, attribute);
    const auto it = body.net.by_id.find(id);
    if (it == body.net.by_id.end())
      xml_.fail(node, "{}=\"{}\", but the body has no such layer", attribute, id);
    const Layer& layer = body.net.layers[it->second];
    if (!layer.is(kind)) xml_.fail(node, "{}=\"{}\" is a {}, wanted a {}", attribute, id, layer.type, kind);
    return it->second;
  }

  LayerContext& c_;
  const XmlFile& xml_;
  Body body_;
};

/// Ids count up from the first one's in most files: then there is nothing to be looked for.
std::vector<Port>::const_iterator port_with_id(const std::vector<Port>& ports, std::int64_t id) {
  if (!ports.empty() && id >= ports[0].id && id - ports[0].id < std::ssize(ports))
    if (const auto it = ports.begin() + (id - ports[0].id); it->id == id) return it;
  return std::find_if(ports.begin(), ports.end(), [&](const Port& port) { return port.id == id; });
}

std::size_t input_port(LayerContext& c, std::int64_t external) {
  const auto& ports = c.layer().inputs;
  const auto it = port_with_id(ports, external);
  c.require(it != ports.end(), "the port map names input port {}, which the layer does not have", external);
  return static_cast<std::size_t>(it - ports.begin());
}

/// Output ports are named by id; files that count them from 0 exist too.
std::size_t output_port(LayerContext& c, std::int64_t external) {
  const auto& ports = c.layer().outputs;
  const auto it = port_with_id(ports, external);
  if (it != ports.end()) return static_cast<std::size_t>(it - ports.begin());
  c.require(external >= 0 && external < std::ssize(ports),
            "the port map names output port {}, which the layer does not have", external);
  return static_cast<std::size_t>(external);
}

void add_results(Graph& graph, const std::vector<std::pair<std::string, ValueId>>& results) {
  std::set<std::string> names;
  auto next = results.size();
  for (const auto& [name, value] : results) {
    std::string unique = name;
    while (!names.insert(unique).second) unique = fmt::format("{}_{}", name, next++);
    graph.add_result(unique, value);
  }
}

/// The type of what enters a body by the line of the port map. As in OpenVINO, a Parameter of a body has this
/// type whatever the file declares: the sizes of the model's inputs may be others than the file's.
TensorType entering_type(LayerContext& c, const Mapping& m) {
  auto type = c.type(input_port(c, m.external));
  if (!m.sliced || !type.shape.ranked()) return type;
  const auto rank = static_cast<std::int64_t>(type.shape.rank());
  if (m.axis < -rank || m.axis >= rank) return {};  // an error when the Loop is added
  type.shape[static_cast<std::size_t>(m.axis < 0 ? m.axis + rank : m.axis)] = Dim(m.part_size);
  return type;
}

/// The type of a Parameter of a body whose value a back edge replaces in each iteration. A size that
/// `declared` leaves open may change.
TensorType carried_type(LayerContext& c, const Mapping& m, const TensorType& declared) {
  auto type = entering_type(c, m);
  const auto& said = declared.shape;
  if (!said.ranked()) return {type.element, {}};
  if (!type.shape.ranked() || type.shape.rank() != said.rank()) return type;
  for (std::size_t i = 0; i < said.rank(); ++i)
    if (!said[i].known()) type.shape[i] = said[i].fits(type.shape[i]) ? said[i] : Dim();
  return type;
}

/// TensorIterator and Loop. The order of the lists is that of the node's inputs, outputs and body.
class LoopConverter {
 public:
  LoopConverter(LayerContext& c, Body body, bool has_condition)
      : c_(c), has_condition_(has_condition), body_(std::move(body)) {}

  void convert() {
    sort_inputs();
    sort_outputs();
    std::vector<ValueId> inputs = {trip_count(), has_condition_ ? c_.in(1) : ValueId()};
    for (const auto* group : {&carried_, &slices_, &captured_})
      for (const Mapping* m : *group) inputs.push_back(c_.in(input_port(c_, m->external)));
    Loop loop = describe();
    std::vector<Graph> bodies;
    bodies.push_back(build_body());
    const std::size_t outputs = carried_.size() + last_.size() + concats_.size();
    c_.require(outputs > 0, "nothing comes out of the body");
    const NodeId node = c_.graph().add_node(loop, inputs, c_.layer().name, static_cast<int>(outputs),
                                            std::move(bodies), output_names(outputs));
    const std::vector<ValueId> made = c_.graph().node(node).outputs;
    for (const auto& [port, index] : ports_) c_.set_output(port, made[index]);
  }

 private:
  void sort_inputs() {
    for (const Mapping& m : body_.inputs) {
      if (m.purpose == "current_iteration") {
        c_.require(!iteration_, "two parameters are the current iteration");
        iteration_ = &m;
        continue;
      }
      c_.require(m.external != kNoPort, "a parameter of the body has no external port");
      input_port(c_, m.external);
      if (body_.back.contains(m.internal)) {
        c_.require(!m.sliced, "a parameter of the body is both sliced and fed by a back edge");
        carried_.push_back(&m);
      } else {
        (m.sliced ? slices_ : captured_).push_back(&m);
      }
    }
    // Each parameter is mapped once.
    c_.require(carried_.size() == body_.back.size(),
               "a back edge leads to a parameter that no input is mapped to");
  }

  void sort_outputs() {
    std::vector<const Mapping*> by_kind[2];
    for (const Mapping& m : body_.outputs) {
      if (m.purpose == "execution_condition") {
        c_.require(!condition_, "two results are the condition");
        condition_ = &m;
      }
      if (m.external == kNoPort) continue;
      by_kind[m.sliced].push_back(&m);
    }
    std::map<std::uint32_t, std::size_t> carried;  // by the result that goes around; the first
    for (std::size_t i = 0; i < carried_.size(); ++i)
      carried.emplace(body_.back.at(carried_[i]->internal), i);
    for (const Mapping* m : by_kind[0]) {
      const auto it = carried.find(m->internal);
      claim(m->external, it != carried.end() ? it->second : carried_.size() + last_.size());
      if (it == carried.end()) last_.push_back(m);
    }
    for (const Mapping* m : by_kind[1]) {
      claim(m->external, carried_.size() + last_.size() + concats_.size());
      concats_.push_back(m);
    }
  }

  void claim(std::int64_t external, std::size_t index) {
    c_.require(ports_.emplace(output_port(c_, external), index).second,
               "two results are mapped to output port {}", external);
  }

  // A TensorIterator without slices runs once.
  ValueId trip_count() {
    if (has_condition_) return c_.in(0);
    if (!slices_.empty()) return {};
    return c_.constant(Tensor::scalar<std::int64_t>(1), "trip_count");
  }

  Loop describe() {
    Loop loop;
    loop.carried = std::ssize(carried_);
    loop.last = std::ssize(last_);
    for (const Mapping* m : slices_) {
      if (std::abs(m->stride) != m->part_size) throw NotSupported{"slices that overlap or leave gaps"};
      loop.slice_axes.push_back(m->axis);
      loop.slice_starts.push_back(m->start);
      loop.slice_ends.push_back(m->end);
      loop.slice_strides.push_back(m->stride);
      loop.slice_part_sizes.push_back(m->part_size);
    }
    for (const Mapping* m : concats_) {
      loop.concat_axes.push_back(m->axis);
      loop.concat_strides.push_back(m->stride);
    }
    return loop;
  }

  Graph build_body() {
    Graph body;
    GraphBuilder builder(c_.reading(), body, body_.net);
    if (iteration_) {
      builder.add_parameter(iteration_->internal);
      body.add_input("condition", {ElementType::boolean, Shape::of({})});
    } else {
      add_counters(body);
    }
    for (const Mapping* m : carried_)
      builder.add_parameter(m->internal, carried_type(c_, *m, declared_type(*m)));
    for (const auto* group : {&slices_, &captured_})
      for (const Mapping* m : *group) builder.add_parameter(m->internal, entering_type(c_, *m));
    std::vector<std::uint32_t> wanted;
    if (condition_) wanted.push_back(condition_->internal);
    for (const Mapping* m : carried_) wanted.push_back(body_.back.at(m->internal));
    for (const auto* group : {&last_, &concats_})
      for (const Mapping* m : *group) wanted.push_back(m->internal);
    builder.build(wanted);
    std::vector<std::pair<std::string, ValueId>> results;
    if (!condition_) results.emplace_back("goes_on", body.add_constant(Tensor::scalar(true), "true"));
    for (const auto index : wanted) results.emplace_back(body_.net.layers[index].name, builder.result(index));
    add_results(body, results);
    return body;
  }

  /// The type that the file declares for a carried value. A size that the file gives otherwise at the port
  /// from which the back edge takes the next value may change, and is left open here.
  TensorType declared_type(const Mapping& m) {
    auto type = parameter_type(c_.reading(), body_.net.layers[m.internal]);
    const auto& feeds = body_.net.layers[body_.back.at(m.internal)].feeds;
    if (feeds.size() != 1) return type;  // an error when the Result is read
    const Shape& next = body_.net.layers[feeds[0].layer].outputs[feeds[0].port].shape;
    if (!type.shape.ranked() || next.rank() != type.shape.rank()) return type;
    for (std::size_t i = 0; i < next.rank(); ++i)
      if (type.shape[i].known() && !type.shape[i].same(next[i])) type.shape[i] = Dim();
    return type;
  }

  Strings output_names(std::size_t count) {
    Strings names(count);
    for (std::size_t i = 0; i < count; ++i) names[i] = fmt::format("{}/out{}", c_.layer().name, i);
    for (const auto& [port, index] : ports_) names[index] = output_name(c_.layer(), port);
    return names;
  }

  LayerContext& c_;
  bool has_condition_;
  Body body_;
  const Mapping* iteration_ = nullptr;
  const Mapping* condition_ = nullptr;
  std::vector<const Mapping*> carried_, slices_, captured_, last_, concats_;
  std::map<std::size_t, std::size_t> ports_;  // output port -> output of the node
};

Body read_loop_body(LayerContext& c) {
  BodyReader reader(c);
  Body body = reader.read("body", "port_map");
  reader.read_back_edges(body);
  return body;
}

void tensor_iterator(LayerContext& c) { convert_tensor_iterator(c, read_loop_body(c)); }

void loop(LayerContext& c) {
  c.want_inputs(2, kMany);
  LoopConverter(c, read_loop_body(c), true).convert();
}

/// Parameters of each branch are all inputs but the condition, in order; those a branch does not map stay
/// unread.
Graph build_branch(LayerContext& c, const Body& body) {
  Graph graph;
  GraphBuilder builder(c.reading(), graph, body.net);
  std::map<std::size_t, std::uint32_t> parameters;
  for (const Mapping& m : body.inputs) {
    const std::size_t port = input_port(c, m.external);
    c.require(port != 0, "the port map gives the condition to a body");
    c.require(!m.sliced, "the port map of an If slices");
    c.require(parameters.emplace(port, m.internal).second,
              "two parameters of a body are mapped to input port {}", m.external);
  }
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    if (const auto it = parameters.find(i); it != parameters.end())
      builder.add_parameter(it->second, c.type(i));
    else
      graph.add_input(fmt::format("unread_{}", i), c.type(i));
  }
  std::vector<const Mapping*> by_port(c.layer().outputs.size());
  for (const Mapping& m : body.outputs) {
    const Mapping*& place = by_port[output_port(c, m.external)];
    c.require(!place, "two results of a body are mapped to output port {}", m.external);
    place = &m;
  }
  std::vector<std::uint32_t> wanted;
  for (const Mapping* m : by_port) {
    c.require(m, "an output has no result in a body");
    wanted.push_back(m->internal);
  }
  builder.build(wanted);
  std::vector<std::pair<std::string, ValueId>> results;
  for (const auto index : wanted) results.emplace_back(body.net.layers[index].name, builder.result(index));
  add_results(graph, results);
  return graph;
}

void if_else(LayerContext& c) {
  c.want_inputs(1, kMany);
  const Body then_body = BodyReader(c).read("then_body", "then_port_map");
  const Body else_body = BodyReader(c).read("else_body", "else_port_map");
  std::vector<Graph> bodies;
  bodies.push_back(build_branch(c, then_body));
  bodies.push_back(build_branch(c, else_body));
  c.finish(If{}, c.all_inputs(), std::move(bodies));
}

/// The variable of a layer of the network itself: each iteration of a body would have its own.
std::string variable_of(LayerContext& c) {
  if (&c.graph() != &c.reading().loaded.graph) throw NotSupported{"a variable in a body"};
  std::string variable = c.text("variable_id");
  c.require(!variable.empty(), "variable_id is missing");
  return variable;
}

void read_value(LayerContext& c) {
  c.want_inputs(0, 1);
  c.reading().reads.emplace(variable_of(c), c.layer().xml);
  c.finish(c.op("ReadValue"), c.all_inputs());
}

void assign(LayerContext& c) {
  c.want_inputs(1, 1);
  const std::string variable = variable_of(c);
  c.require(c.reading().assigns.emplace(variable, c.layer().xml).second, "variable '{}' is assigned twice",
            variable);
  Op op = c.op("Assign");
  if (c.layer().outputs.empty())
    c.add(std::move(op), c.all_inputs(), "assigned");
  else
    c.finish(std::move(op), c.all_inputs());
}

}  // namespace

void read_slicing(const XmlFile& xml, pugi::xml_node line, Mapping& mapping) {
  mapping.stride = xml.integer(line, "stride", 1);
  mapping.part_size = xml.integer(line, "part_size", 1);
  // backwards, everything is from the last element to the first
  mapping.start = xml.integer(line, "start", mapping.stride < 0 ? -1 : 0);
  mapping.end = xml.integer(line, "end", mapping.stride < 0 ? 0 : -1);
  if (mapping.stride == 0 || mapping.stride == INT64_MIN || mapping.part_size <= 0)
    xml.fail(line, "stride {} and part_size {}, wanted other than 0 and at least 1", mapping.stride,
             mapping.part_size);
}

void convert_tensor_iterator(LayerContext& c, Body body) {
  LoopConverter(c, std::move(body), false).convert();
}

void register_control(ConverterTable& t) {
  t.add("TensorIterator", tensor_iterator);
  t.add("Loop", loop);
  t.add("If", if_else);
  t.add("ReadValue", read_value);
  t.add("Assign", assign);
}

}  // namespace lamina::ir
