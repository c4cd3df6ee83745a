/// A depthwise convolution joins the convolution before it, so that a kernel can keep the tensor between in
/// the cache. Whether that is faster is for the plan to say.
#include <algorithm>

#include "ops/convolution_depthwise.h"
#include "rules/bf16.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// One output channel of each input channel.
bool is_depthwise(const Graph& g, const Node& n) {
  const auto& w = g.type(n.inputs[1]).shape;
  const auto& op = *n.op.as<Convolution>();
  return w.ranked() && w.rank() >= 3 && w[0].is(op.groups) && w[1].is(1);
}

bool has_one_group(const Graph&, const Node& n) {
  const auto* op = n.op.as<Convolution>();
  return op ? op->groups == 1 : n.op.as<BinaryConvolution>()->groups == 1;
}

/// True if all inputs of the node but its first are constant, those of its epilogue included.
Verdict reads_constants(const Match& m, const Node& n, std::size_t from, std::size_t end,
                        const std::string& why) {
  for (std::size_t i = from; i < end; ++i)
    if (n.inputs[i].valid() && !m.graph().constant(n.inputs[i]))
      return Verdict::no("{} {}", m.label(n.inputs[i]), why);
  return Verdict::yes();
}

/// The first convolution as a graph of its own.
Graph body_of(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  Graph body;
  std::vector<ValueId> in;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const auto v = n.inputs[i];
    if (!v.valid())
      in.emplace_back();
    else if (i == 0)
      in.push_back(body.add_input(g.value(v).name, g.type(v)));
    else
      in.push_back(body.add_constant(*g.constant(v), g.value(v).name));
  }
  const auto copy = body.add_node(n.op, std::move(in), n.name, -1, n.bodies);
  body.set_sources(copy, n.sources);
  body.add_result(g.value(n.outputs[0]).name, body.node(copy).outputs[0]);
  return body;
}

Graph epilogue_of(const Graph& g, const Node& n) {
  if (const auto* old = epilogue(n)) return *old;
  Graph body;
  body.add_result("y", body.add_input("result", g.type(n.outputs[0])));
  return body;
}

}  // namespace

void add_fuse_conv_depthwise(Rules& rules) {
  const auto parent = is<Convolution, BinaryConvolution>(variable()).that(has_one_group).used_once();
  const auto child = is<Convolution>(parent, constant()).that(is_depthwise);
  rules.push_back(
      rule("fuse-conv-depthwise", "A depthwise convolution joins the convolution before it", RuleSet::chains,
           child)
          .when([=](const Match& m) -> Verdict {
            const Graph& g = m.graph();
            const Node &first = m.node(parent), &second = m.root_node();
            const auto x = first.inputs[0];
            if (m.bf16 && bf16::is_product(first) && bf16::may_multiply(bf16::Context(m), m.id(parent)))
              return Verdict::no("{} is going to be bf16, by itself", m.label(parent));
            const bool signs = first.op.is<BinaryConvolution>() && g.type(x).element == ElementType::boolean;
            for (const auto v : {x, first.outputs[0], second.outputs[0]})
              if (g.type(v).element != ElementType::f32 && !(signs && v == x))
                return Verdict::no("{} is {}, wanted f32", m.label(v), name_of(g.type(v).element));
            if (auto verdict = reads_constants(m, first, 1, first.inputs.size(),
                                               "is no constant: only the last of the two may read more");
                !verdict)
              return verdict;
            return reads_constants(m, second, 1, std::min(second.inputs.size(), base_inputs(second)),
                                   "is no constant");
          })
          .make([=](Rewrite& r) {
            const Graph& g = r.graph();
            const Node &first = r.match().node(parent), &second = r.match().root_node();
            ConvolutionDepthwise op;
            static_cast<Window&>(op) = *second.op.as<Convolution>();
            std::vector<ValueId> in{first.inputs[0], second.inputs[1]};
            if (has_input(second, 2)) in.push_back(second.inputs[2]);
            if (const auto extras = base_inputs(second); second.inputs.size() > extras) {
              in.resize(ConvolutionDepthwise::info.max_inputs);
              in.insert(in.end(), second.inputs.begin() + static_cast<std::ptrdiff_t>(extras),
                        second.inputs.end());
            }
            std::vector<Graph> bodies;
            bodies.push_back(epilogue_of(g, second));
            bodies.push_back(body_of(g, r.match().id(parent)));
            r.replace(r.add(op, std::move(in), std::move(bodies)));
          }));
}

}  // namespace lamina
