#pragma once
/// A graph of oneDNN Graph as its JSON says it: operations and the logical tensors between them.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/op.h"

namespace lamina::onednn_graph {

/// A logical tensor at one operation. Strides and layouts say how memory was laid out there: no part of the
/// meaning.
struct TensorDef {
  std::uint64_t id = 0;
  std::string dtype;                             ///< the file's name of the type
  ElementType element = ElementType::undefined;  ///< undefined for types that lamina has not
  Shape shape;
};

/// string, bool, s64, s64[], f32, f32[].
using Attribute = std::variant<std::string, bool, std::int64_t, Ints, double, Floats>;

struct OpDef {
  std::uint64_t id = 0;
  std::string name;  ///< not necessarily unique
  std::string kind;
  std::map<std::string, Attribute, std::less<>> attributes;
  std::vector<TensorDef> inputs, outputs;
};

struct GraphDef {
  std::string version;
  std::map<std::string, std::string> settings;  ///< the other texts: engine_kind, fpmath_mode
  std::vector<std::uint64_t> input_ports, output_ports;
  std::vector<OpDef> ops;
};

/// op 13 "q" (Quantize)
std::string label(const OpDef& op);

/// Whether a file begins as JSON does.
bool looks_like_json(std::string_view text);

/// Throws Error(bad_file) without the file's name.
GraphDef parse_graph(std::string_view text);

}  // namespace lamina::onednn_graph
