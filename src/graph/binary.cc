#include "graph/binary.h"

#include <algorithm>

#include "base/limits.h"
#include "base/shape_only.h"
#include "graph/saved_name.h"
#include "graph/verify.h"

namespace lamina {

namespace {

constexpr int kDepth = 32;  // of bodies in bodies

void write_shape(ByteWriter& to, const Shape& shape) {
  to.put(shape.ranked());
  if (!shape.ranked()) return;
  to.list(shape.dims(), [&](const Dim& d) {
    to.put(d.low());
    to.put(d.high());
    to.text(d.name());
  });
}

Shape read_shape(ByteReader& from) {
  if (!from.flag()) return {};
  const auto dims = from.list([&] {
    const auto low = from.get<std::int64_t>(), high = from.get<std::int64_t>();
    const auto name = from.text();
    if (low < 0 || high < low) from.wrong("a dimension");
    return name.empty() ? Dim(low, high) : Dim::named(name, low, high);
  });
  if (dims.size() > Limits::kRank) from.wrong("fewer dimensions");
  return Shape(dims);
}

/// Tensors of attributes stay with the graph, however its constants are kept: inference may look at them.
void write_tensor(ByteWriter& to, const Tensor& tensor) {
  to.put(tensor.valid());
  if (!tensor.valid()) return;
  to.put(tensor.element_type());
  to.list(tensor.shape(), [&](std::int64_t d) { to.put(d); });
  to.append(tensor.raw(), tensor.bytes());
}

Tensor read_tensor(ByteReader& from) {
  if (!from.flag()) return {};
  const auto type = from.choice(ElementType::undefined);
  const auto dims = from.list([&] { return from.get<std::int64_t>(); }, sizeof(std::int64_t));
  const bool fits = dims.size() <= Limits::kRank && type != ElementType::undefined &&
                    std::all_of(dims.begin(), dims.end(), [](auto d) { return d >= 0; }) && extent_of(dims);
  if (!fits) from.wrong("a tensor's type and shape");
  const auto bytes = from.take(shape_only(type, dims).bytes());
  Tensor out(type, dims);
  if (!bytes.empty()) std::memcpy(out.raw(), bytes.data(), bytes.size());
  return out;
}

void write_attribute(ByteWriter& to, const Attribute& value) {
  to.put(static_cast<std::uint8_t>(value.index()));
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>)
          to.text(v);
        else if constexpr (std::is_same_v<T, Ints> || std::is_same_v<T, Floats>)
          to.list(v, [&](auto item) { to.put(item); });
        else if constexpr (std::is_same_v<T, Strings>)
          to.list(v, [&](const auto& item) { to.text(item); });
        else if constexpr (std::is_same_v<T, Shape>)
          write_shape(to, v);
        else if constexpr (std::is_same_v<T, Tensor>)
          write_tensor(to, v);
        else
          to.put(v);
      },
      value);
}

Attribute read_attribute(ByteReader& from) {
  switch (from.get<std::uint8_t>()) {
    case 0:
      return from.flag();
    case 1:
      return from.get<std::int64_t>();
    case 2:
      return from.get<double>();
    case 3:
      return from.text();
    case 4:
      return from.list([&] { return from.get<std::int64_t>(); }, sizeof(std::int64_t));
    case 5:
      return from.list([&] { return from.get<double>(); }, sizeof(double));
    case 6:
      return from.list([&] { return from.text(); });
    case 7:
      return from.choice(ElementType::undefined);
    case 8:
      return read_shape(from);
    case 9:
      return read_tensor(from);
    default:
      from.wrong("a kind of attribute");
  }
}

Op read_op(ByteReader& from, const FindOp& find) {
  const auto name = from.text();
  const auto* prototype = find(name);
  if (!prototype) from.wrong("an operator that exists");
  std::shared_ptr<AnyOp> op = prototype->copy();
  for (auto left = from.count(); left > 0; --left) {
    const auto attribute = from.text();
    op->set(attribute, read_attribute(from));
  }
  return Op(std::move(op));
}

template <class Tag>
void write_ids(ByteWriter& to, const std::vector<Id<Tag>>& ids) {
  to.list(ids, [&](Id<Tag> id) { to.put(id.index); });
}

template <class Tag>
std::vector<Id<Tag>> read_ids(ByteReader& from) {
  return from.list([&] { return Id<Tag>{from.get<std::uint32_t>()}; }, sizeof(std::uint32_t));
}

}  // namespace

void write_op(ByteWriter& to, const Op& op) {
  const auto* named = dynamic_cast<const HasSavedName*>(&*op);
  to.text(named ? named->saved_name() : std::string(op.info().name));
  to.list(op->changed_attributes(), [&](const NamedAttribute& a) {
    to.text(a.name);
    write_attribute(to, a.value);
  });
}

void write_type(ByteWriter& to, const TensorType& type) {
  to.put(type.element);
  write_shape(to, type.shape);
}

TensorType read_type(ByteReader& from) {
  const auto element = from.choice(ElementType::undefined);
  return {element, read_shape(from)};
}

/// A graph from the inside.
struct GraphParts {
  static void write(ByteWriter& to, const Graph& g, const WriteTensor& tensor) {
    to.text(g.name);
    to.list(g.sources, [&](const Source& s) {
      to.text(s.name);
      to.text(s.type);
    });
    to.count(g.values_.size());
    g.values_.for_each([&](const Value& v) { write_value(to, v, tensor); });
    to.count(g.nodes_.size());
    g.nodes_.for_each([&](const Node& n) { write_node(to, n, tensor); });
    write_ids(to, g.inputs_);
    to.list(g.results_, [&](const Result& r) {
      to.text(r.name);
      to.put(r.value.index);
    });
    std::vector<std::string_view> taken;  // of values that are gone
    for (const auto& [name, value] : g.by_name_)
      if (!value.valid()) taken.push_back(name);
    to.list(taken, [&](std::string_view name) { to.text(name); });
  }

  static Graph read(ByteReader& from, const FindOp& find, const ReadTensor& tensor, int depth) {
    if (depth > kDepth) from.wrong("fewer bodies in bodies");
    Graph g;
    g.name = from.text();
    g.sources = from.list([&] {
      auto name = from.text();
      return Source{std::move(name), from.text()};
    });
    g.values_ = StableVector(from.list([&] { return read_value(from, tensor); }));
    g.nodes_ = StableVector(from.list([&] { return read_node(from, find, tensor, depth); }));
    g.inputs_ = read_ids<ValueTag>(from);
    g.results_ = from.list([&] {
      auto name = from.text();
      return Result{std::move(name), {from.get<std::uint32_t>()}};
    });
    g.index_results();
    for (auto left = from.count(); left > 0; --left) g.by_name_[from.text()] = ValueId{};
    for (std::uint32_t v = 0; v < g.values_.size(); ++v)
      if (g.values_[v].kind != ValueKind::none) g.by_name_[g.values_[v].name] = {v};
    return g;
  }

 private:
  static void write_value(ByteWriter& to, const Value& v, const WriteTensor& tensor) {
    to.put(v.kind);
    if (v.kind == ValueKind::none) return;
    to.text(v.name);
    write_type(to, v.type);
    to.put(v.producer.index);
    to.put(v.output);
    if (v.kind == ValueKind::constant) tensor(to, v.constant);
    to.list(v.uses, [&](const Use& use) {
      to.put(use.node.index);
      to.put(use.input);
    });
  }

  static Value read_value(ByteReader& from, const ReadTensor& tensor) {
    Value v;
    v.kind = from.choice(ValueKind::output_of_node);
    if (v.kind == ValueKind::none) return v;
    v.name = from.text();
    v.type = read_type(from);
    v.producer.index = from.get<std::uint32_t>();
    v.output = from.get<std::uint32_t>();
    if (v.kind == ValueKind::constant) v.constant = tensor(from);
    v.uses = from.list(
        [&] {
          const NodeId node{from.get<std::uint32_t>()};
          return Use{node, from.get<std::uint32_t>()};
        },
        2 * sizeof(std::uint32_t));
    return v;
  }

  static void write_node(ByteWriter& to, const Node& n, const WriteTensor& tensor) {
    to.put(!n.erased());
    if (n.erased()) return;
    write_op(to, n.op);
    to.text(n.name);
    write_ids(to, n.inputs);
    write_ids(to, n.outputs);
    write_ids(to, n.sources);
    to.list(n.bodies, [&](const Graph& body) { write(to, body, tensor); });
  }

  static Node read_node(ByteReader& from, const FindOp& find, const ReadTensor& tensor, int depth) {
    Node n;
    if (!from.flag()) return n;
    n.op = read_op(from, find);
    n.name = from.text();
    n.inputs = read_ids<ValueTag>(from);
    n.outputs = read_ids<ValueTag>(from);
    n.sources = read_ids<SourceTag>(from);
    n.bodies = from.list([&] { return read(from, find, tensor, depth + 1); });
    return n;
  }
};

void write_graph(ByteWriter& to, const Graph& graph, const WriteTensor& tensor) {
  GraphParts::write(to, graph, tensor);
}

Graph read_graph(ByteReader& from, const FindOp& find, const ReadTensor& tensor) {
  Graph g = GraphParts::read(from, find, tensor, 0);
  if (const auto wrong = verify(g, Types::may_lag); !wrong.empty()) from.wrong("a sound graph: " + wrong[0]);
  return g;
}

}  // namespace lamina
