#include "tool/reshape.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "tool/layouts.h"
#include "tool/session.h"
#include "tool/shape_option.h"

namespace lamina::tool {
namespace {

/// The sizes of each input, by its index, where others than the model's are wanted.
class Wanted {
 public:
  Wanted(const std::vector<Port>& ports, const BenchmarkCommand& o) : ports_(ports) {
    const auto asked = asked_sizes(o, ports);
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (const auto it = asked.find(ports[i].name); it != asked.end() && !admits(ports[i], it->second))
        shapes_[i] = it->second;
    if (o.inputs.batch > 0) place(o.inputs.batch, Layouts(o.inputs.image.layout, ports).batch_axes());
  }
  const std::map<std::size_t, PartialShape>& shapes() const { return shapes_; }

 private:
  /// The model takes data of these sizes as it is.
  static bool admits(const Port& p, const PartialShape& sizes) {
    if (!p.ranked) return true;
    bool fits = p.shape.size() == sizes.size();
    for (std::size_t i = 0; fits && i < sizes.size(); ++i)
      fits = p.shape[i] < 0 || (p.shape[i] == sizes[i].least && !is_open(sizes[i]));
    return fits;
  }

  PartialShape sizes(std::size_t i) const {
    if (const auto it = shapes_.find(i); it != shapes_.end()) return it->second;
    return PartialShape(ports_[i].shape.begin(), ports_[i].shape.end());
  }

  void put(std::size_t i, std::size_t axis, std::int64_t batch) {
    auto all = sizes(i);
    if (axis >= all.size() || is_open(all[axis]) || all[axis].least == batch) return;
    all[axis] = {batch, batch};
    shapes_[i] = all;
  }

  /// Where a layout says so; else in front of all inputs, when these agree.
  void place(std::int64_t batch, const std::map<std::string, std::size_t>& axes) {
    std::vector<std::int64_t> first;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (const auto it = axes.find(ports_[i].name); it != axes.end()) put(i, it->second, batch);
      const auto all = sizes(i);
      if (ports_[i].ranked && !all.empty() && !ports_[i].value.valid())
        first.push_back(is_open(all[0]) ? -1 : all[0].least);
    }
    const bool open = std::find(first.begin(), first.end(), -1) != first.end();
    if (!axes.empty() || first.empty() || open) return;
    if (std::adjacent_find(first.begin(), first.end(), std::not_equal_to<>()) != first.end())
      throw UsageError(
          fmt::format("--batch {}: the first dimensions of inputs differ, which are batches? "
                      "--layout says it by N ({} is {})",
                      batch, ports_[0].name, to_string(ports_[0])));
    for (std::size_t i = 0; i < ports_.size(); ++i)
      if (ports_[i].ranked && !ports_[i].value.valid()) put(i, 0, batch);
  }

  const std::vector<Port>& ports_;
  std::map<std::size_t, PartialShape> shapes_;
};

}  // namespace

Model reshaped(const Model& model, const BenchmarkCommand& o, std::vector<std::string>* said) {
  if (o.common.shape.empty() && o.inputs.batch == 0) return model;
  if (!model.unsupported().empty() && !is_made_for_sizes(model)) return model;
  const auto& ports = model.inputs();
  const Wanted wanted(ports, o);
  if (wanted.shapes().empty()) return model;
  // Anew: readers make constants of sizes that the file says.
  auto reading = o.common.reading();
  for (const auto& [i, sizes] : wanted.shapes()) {
    reading.input_shapes[ports[i].name] = sizes;
    if (said) said->push_back(fmt::format("Reshaping model: '{}': [{}]", ports[i].name, to_string(sizes)));
  }
  return Model(o.common.model, reading);
}

}  // namespace lamina::tool
