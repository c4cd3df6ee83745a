#include "api/limit_checks.h"

#include "base/error.h"
#include "base/limits.h"
#include "graph/limits.h"

namespace lamina {
namespace {

class Check {
 public:
  Check(const LoadedModel& model, const ModelLimits& limits) : model_(model), limits_(limits) {}

  void run() {
    const auto& loaded = model_.described();
    look_at(loaded.graph);
    if (nodes_ > limits_.nodes) refuse("{} nodes, LIMIT_NODES is {}", nodes_, limits_.nodes);
    const OperatorGate gate(limits_);
    for (const auto& op : loaded.operators)
      if (const auto verdict = gate.allows(op); !verdict)
        refuse("node \"{}\" ({}): {}", op.node, name_of(op), verdict.reason());
    look_at_files();
  }

 private:
  template <class... A>
  [[noreturn]] void refuse(fmt::format_string<A...> text, A&&... args) const {
    fail(ErrorCode::over_limit, "{}: {}", model_.path(), fmt::format(text, std::forward<A>(args)...));
  }

  void look_at(const Graph& g) {
    if (g.results().size() > limits_.outputs)
      refuse("{} outputs, LIMIT_OUTPUTS is {}", g.results().size(), limits_.outputs);
    for (std::uint32_t v = 0; v < g.value_slots(); ++v) look_at(g.value({v}));
    for (std::uint32_t n = 0; n < g.node_slots(); ++n) {
      const auto& node = g.node({n});
      if (node.erased()) continue;
      ++nodes_;
      if (node.outputs.size() > limits_.outputs)
        refuse("node \"{}\" ({}): {} outputs, LIMIT_OUTPUTS is {}", g.label({n}), node.op.name(),
               node.outputs.size(), limits_.outputs);
      for (const auto& body : node.bodies) look_at(body);
    }
  }

  void look_at(const Value& value) const {
    const auto& shape = value.type.shape;
    if (value.kind == ValueKind::none || !shape.ranked()) return;
    Dims least;
    for (const auto& d : shape.dims()) least.push_back(d.low());
    const auto count = extent_of(least);
    if (!count || static_cast<std::uint64_t>(*count) > limits_.elements)
      refuse("\"{}\" has shape {}, LIMIT_ELEMENTS is {}", value.name, to_string(shape), limits_.elements);
  }

  void look_at_files() const {
    std::uint64_t sum = model_.compiled() ? model_.compiled()->size() : 0;
    if (limits_.memory != 0 && sum > limits_.memory)
      refuse("a file of {} bytes, LIMIT_MEMORY is {}", sum, limits_.memory);
    for (const auto& part : model_.parts()) {
      const auto& file = *part.file;
      sum += file.size();
      if (limits_.memory != 0 && sum > limits_.memory)
        refuse("files of {} bytes, LIMIT_MEMORY is {}", sum, limits_.memory);
      if (part.named_by_model && limits_.external_files == ExternalFiles::none)
        refuse("\"{}\" is a file beside the model, EXTERNAL_FILES is none", file.path());
    }
  }

  const LoadedModel& model_;
  const ModelLimits& limits_;
  std::size_t nodes_ = 0;
};

}  // namespace

ReadingWithin::ReadingWithin(const WorkBounds& bounds, const ModelLimits& limits, const std::string& path)
    : parsed_(path + ": what its text says"), bounds_(bounds), here_(&bounds_) {
  bounds_.nodes = limits.nodes;
  bounds_.nodes_made = &nodes_;
  bounds_.outputs = limits.outputs;
  bounds_.parsed = &parsed_;
}

void require_within(const LoadedModel& model, const ModelLimits& limits) { Check(model, limits).run(); }

WorkBounds bounds_of(const ModelLimits& limits, std::uint64_t given,
                     std::shared_ptr<const MemoryAccount> below) {
  WorkBounds bounds;
  bounds.elements = limits.elements;
  bounds.given = given;
  if (limits.memory != 0) bounds.memory = std::make_shared<MemoryAccount>(limits.memory, std::move(below));
  return bounds;
}

}  // namespace lamina
