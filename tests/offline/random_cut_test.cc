/// Random graphs, cut at random places: what is left computes the same from the values at the cut.
#include <algorithm>
#include <map>
#include <random>

#include "interpreter/interpreter.h"
#include "offline/cut.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

class RandomCut {
 public:
  explicit RandomCut(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i)
      values_.push_back(graph_.add_input(fmt::format("in{}", i), {ElementType::f32, Shape{2, 3}}));
    for (int i = 0; i < 12; ++i) add_layer(fmt::format("layer{}", i));
    graph_.add_result("out", values_.back());
    graph_.erase_unused();
    evaluate(seed);
  }

  /// The parts of a request, and what the new inputs and the outputs are to be.
  void choose() {
    for (const auto* name : {"in0", "in1", "in2"}) add_input(name, name, graph_.find_value(name));
    for (int k = 0; k < 4; ++k) {
      const auto& [layer, out] = any_layer();
      const auto& node = graph_.node(graph_.producer(out));
      if (below(2)) {
        add_input(layer + ":0", layer + "/placeholder_out_port_0", out);
      } else if (below(2)) {
        if (std::count(request_.outputs.begin(), request_.outputs.end(), layer)) continue;
        request_.outputs.push_back(layer);
        wanted_.push_back(all_.at(out));
      } else if (node.sources.size() == 1 && nodes_of(layer) == 1) {
        const auto port = below(node.inputs.size());
        add_input(fmt::format("{}:{}", port, layer), fmt::format("{}/placeholder_port_{}", layer, port),
                  node.inputs[port]);
      }
    }
    if (wanted_.empty()) wanted_.push_back(all_.at(graph_.results()[0].value));
  }

  void check() const {
    const auto made = cut(graph_, request_);
    std::vector<Tensor> inputs;
    for (const auto v : made.graph.inputs()) inputs.push_back(fed_.at(made.graph.value(v).name));
    const auto got = interpret(made.graph, inputs);
    ASSERT_EQ(got.size(), wanted_.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].same_as(wanted_[i])) << i;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  /// One node, or two of which the second reads the first.
  void add_layer(const std::string& name) {
    const auto source = graph_.add_source(name, "Layer");
    const auto a = values_[below(values_.size())], b = values_[below(values_.size())];
    const std::vector<Op> binary{Add{}, Subtract{}, Maximum{}};
    auto node =
        below(3) ? graph_.add_node(binary[below(3)], {a, b}, name) : graph_.add_node(Relu{}, {a}, name);
    graph_.set_sources(node, {source});
    if (below(3) == 0) {
      node = graph_.add_node(Abs{}, {graph_.node(node).outputs[0]}, name);
      graph_.set_sources(node, {source});
    }
    values_.push_back(graph_.node(node).outputs[0]);
    layers_.emplace(name, values_.back());
  }

  void evaluate(unsigned seed) {
    std::erase_if(layers_, [&](const auto& l) { return graph_.value(l.second).kind == ValueKind::none; });
    auto every = graph_;
    std::vector<ValueId> order(graph_.inputs());
    for (const auto& [name, v] : layers_) order.push_back(v);
    for (const auto v : order) every.add_result("all", v);
    const auto out = interpret(every, testing::random_inputs(graph_, seed));
    for (std::size_t i = 0; i < order.size(); ++i) all_[order[i]] = out[i + 1];
  }

  const std::pair<const std::string, ValueId>& any_layer() {
    return *std::next(layers_.begin(), static_cast<std::ptrdiff_t>(below(layers_.size())));
  }

  std::size_t nodes_of(const std::string& layer) const {
    std::size_t n = 0;
    for (std::uint32_t i = 0; i < graph_.node_slots(); ++i) n += graph_.node({i}).name == layer;
    return n;
  }

  /// Inside of a layer nothing has a value of its own here.
  void add_input(const std::string& place, const std::string& name, ValueId v) {
    if (!all_.contains(v) || fed_.contains(name)) return;
    request_.inputs.push_back({.place = place});
    fed_[name] = all_.at(v);
  }

  std::mt19937 random_;
  Graph graph_;
  std::vector<ValueId> values_;
  std::map<std::string, ValueId> layers_;
  std::map<ValueId, Tensor> all_;
  CutRequest request_;
  std::map<std::string, Tensor> fed_;
  std::vector<Tensor> wanted_;
};

TEST(RandomCut, ComputesTheSame) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomCut graph(seed);
    graph.choose();
    graph.check();
  }
}

}  // namespace
}  // namespace lamina
