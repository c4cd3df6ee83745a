#pragma once
/// The contents of a drawing of a graph, without coordinates: made from a Graph or from plans, drawn as SVG
/// or written as DOT.
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "rewrite/ledger.h"

namespace lamina {

/// A colour for each family of operators, and for nodes that are no operators.
using Hue = OpFamily;
inline constexpr Hue kPort{0};                                    ///< input or output of the model
inline constexpr Hue kLayout{std::uint8_t(OpFamily::other) + 1};  ///< reorders and copies of the plan
std::string_view name_of(Hue hue);
std::string_view colour_of(Hue hue);

struct Drawing;

struct DrawingNode {
  enum class Form : std::uint8_t { box, pill, small };
  Form form = Form::box;
  Hue hue = Hue::other;
  std::string title;                ///< the operator
  std::string name;                 ///< what the model calls it
  std::string corner;               ///< right of the title: a number, a time
  std::vector<std::string> rows;    ///< a line each: kernel, layout
  std::vector<std::string> lines;   ///< what matters most of its attributes, as many to a line as fit
  std::vector<std::string> stages;  ///< operators fused into it
  std::string tooltip;              ///< everything
  std::vector<std::string> ports;   ///< type of each output
  double heat = -1;                 ///< share of the time, 0 to 1, relative to the hottest; < 0: none
  int group = -1;               ///< nodes of one group have the same colour in both halves of a comparison
  bool faded = false;           ///< has no counterpart there
  std::vector<Drawing> bodies;  ///< drawn inside
};

struct DrawingEdge {
  std::size_t from = 0, port = 0, to = 0;
  std::string tooltip;
  bool light = false;  ///< small integers: shapes, indices
};

struct Drawing {
  std::string title;               ///< of the whole file, in its first drawing; of a body
  std::vector<std::string> notes;  ///< lines under the title, likewise
  std::string heading;             ///< above this drawing, when there are several
  std::vector<DrawingNode> nodes;
  std::vector<DrawingEdge> edges;
  double hottest = 0;  ///< share of the time of the hottest node, 0 to 1; 0: no times
};

/// "f32 1×64×56×56"
std::string short_type(const TensorType& type);
std::string short_dims(const Shape& shape);

/// The node as it stands in its graph: operator, name, attributes, stages, tooltip, bodies. `file`: layers of
/// the file, as which nodes of bodies are drawn; null: as they are in the graph.
DrawingNode drawing_of(const Graph& graph, NodeId id, const std::vector<Source>* file = nullptr);
/// Constants are left out. `nodes`, when given: which node of the drawing each node of the graph is.
Drawing drawing_of(const Graph& graph, std::map<NodeId, std::size_t>* nodes = nullptr);
/// The drawing of the file, by its operators and names: a node for each layer.
Drawing drawing_of_file(const Graph& graph, const std::vector<Source>& file,
                        std::map<NodeId, std::size_t>* nodes = nullptr);
/// A drawing of the graph with its nodes put together to layers of the file; `nodes` is brought along.
Drawing as_in_file(const Drawing& drawing, const Graph& graph, const std::vector<Source>& file,
                   std::map<NodeId, std::size_t>& nodes);

/// Colours two drawings so that what became one node has one colour and one number: nodes of `after` are
/// numbered, those of `before` get the number of the node that stands for them now. What is gone fades; the
/// ledger says why.
struct DrawingOf {
  Drawing& drawing;
  const Graph& graph;
  const std::map<NodeId, std::size_t>& nodes;
};
void match(DrawingOf before, DrawingOf after, const Ledger& ledger);

}  // namespace lamina
