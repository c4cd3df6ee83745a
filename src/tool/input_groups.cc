#include "tool/input_groups.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "tool/layouts.h"
#include "tool/named_lists.h"
#include "tool/open_inputs.h"
#include "tool/shape_option.h"

namespace lamina::tool {
namespace {

/// "x[1,3][2,3],y[4]" or "[1,3][2,3]": each input's shapes.
std::map<std::string, std::vector<Dims>> data_shapes(const BenchmarkCommand& o,
                                                     const std::vector<Port>& ports) {
  std::map<std::string, std::vector<Dims>> out;
  for (const auto& text : o.data_shape) {
    const auto option = "--data-shape " + text;
    std::string name;
    bool named = false;
    for (std::size_t at = 0; at < text.size();) {
      const auto open = text.find('[', at), close = text.find(']', at);
      if (open == std::string::npos || close == std::string::npos || close < open)
        throw UsageError(fmt::format("{}: wanted NAME[...][...],NAME[...]", option));
      auto before = text.substr(at, open - at);
      if (before.starts_with(',')) before.erase(0, 1);
      if (!before.empty() || !named) name = input_named(option, before, ports), named = true;
      Dims dims;
      for (const auto& s : sizes_of(option, text.substr(open + 1, close - open - 1))) {
        if (is_open(s))
          throw UsageError(fmt::format("{}: the shape of data must have numbers for all sizes", option));
        dims.push_back(s.least);
      }
      out[name].push_back(std::move(dims));
      at = close + 1;
    }
  }
  return out;
}

class Grouping {
 public:
  Grouping(const BenchmarkCommand& o, const Model& model, const Steps& steps)
      : o_(o),
        ports_(model.inputs()),
        steps_(steps),
        data_(data_shapes(o, ports_)),
        shapes_(asked_sizes(o, ports_)),
        options_(o.inputs) {
    options_.model = &model;
    options_.batch_axes = Layouts(o.inputs.image.layout, ports_).batch_axes();
    drop_idle_data();
    for (const auto* names : {&o.image_info, &o.made_up})
      for (const auto& name : *names)
        if (name != "*") input_named("-i " + name, name, ports_);
  }

  std::vector<InputGroup> made(std::vector<std::string>& notes) {
    std::size_t count = 1;
    for (const auto& [name, shapes] : data_) count = std::max(count, shapes.size());
    std::vector<InputGroup> out;
    for (std::size_t n = 0; n < count; ++n) {
      std::vector<std::string> said;
      InputGroup g;
      g.inputs = gather_inputs(ports_, options_, shapes_of(n), said);
      check_ranges(g.inputs);
      fill_image_info(g.inputs, said);
      for (auto& line : said)
        if (std::find(notes.begin(), notes.end(), line) == notes.end()) notes.push_back(line);
      for (std::size_t i = 0; i < ports_.size(); ++i)
        g.name +=
            fmt::format("{}{}: [{}]", i ? " " : "", ports_[i].name, fmt::join(g.inputs[i].shape(), ","));
      g.batch = batch_of(g.inputs, notes);
      out.push_back(std::move(g));
    }
    return out;
  }

 private:
  /// Where the shape is fixed there is nothing that data could say.
  void drop_idle_data() {
    for (const auto& p : ports_) {
      const auto data = data_.find(p.name);
      if (data == data_.end()) continue;
      const auto shape = shapes_.find(p.name);
      const bool fixed = shape != shapes_.end() ? !any_open(shape->second)
                                                : p.ranked && std::none_of(p.shape.begin(), p.shape.end(),
                                                                           [](auto d) { return d < 0; });
      if (!fixed) continue;
      steps_.warn(fmt::format("{} has no effect on input \"{}\": its shape is fixed already",
                              o_.typed("--data-shape", "-data_shape"), p.name));
      data_.erase(data);
    }
  }

  bool has_file(const Port& p) const {
    if (!o_.inputs.inputs.empty()) return true;
    return std::any_of(o_.inputs.input.begin(), o_.inputs.input.end(), [&](const std::string& text) {
      return text.find('=') == std::string::npos || text.starts_with(p.name + "=");
    });
  }

  /// What is asked of the group's inputs.
  AskedShapes shapes_of(std::size_t n) const {
    AskedShapes out;
    for (const auto& p : ports_) {
      auto dims = dims_of(p, n);
      check_known(p, dims ? &*dims : p.ranked ? &p.shape : nullptr);
      if (dims) out.emplace_back(p.name, std::move(*dims));
    }
    return out;
  }

  /// -1 for what --shape leaves open; nothing: the model alone says it.
  std::optional<Dims> dims_of(const Port& p, std::size_t n) const {
    if (const auto data = data_.find(p.name); data != data_.end()) {
      const auto& given = data->second[n % data->second.size()];
      if (p.ranked && given.size() != p.shape.size())
        throw UsageError(fmt::format("--data-shape [{}]: input \"{}\" is {}", fmt::join(given, ","), p.name,
                                     to_string(p)));
      return given;
    }
    const auto shape = shapes_.find(p.name);
    if (shape == shapes_.end()) return {};
    Dims dims;
    for (const auto& s : shape->second) dims.push_back(is_open(s) ? -1 : s.least);
    return dims;
  }

  /// -shape holds for all data; but --batch goes before a number there.
  void check_ranges(const std::vector<Tensor>& inputs) const {
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      const auto shape = shapes_.find(ports_[i].name);
      if (shape == shapes_.end()) continue;
      const auto& sizes = shape->second;
      const auto& dims = inputs[i].shape();
      const auto batch = options_.batch > 0 ? batch_axis(options_, ports_[i].name) : std::string::npos;
      bool fits = sizes.size() == dims.size();
      for (std::size_t k = 0; fits && k < dims.size(); ++k)
        fits = (k == batch && !is_open(sizes[k])) || (dims[k] >= sizes[k].least && dims[k] <= sizes[k].most);
      if (!fits)
        fail(ErrorCode::bad_input, "input \"{}\": [{}] is not a shape that --shape allows: [{}]",
             ports_[i].name, fmt::join(dims, ","), to_string(sizes));
    }
  }

  /// A compiled model says it, where nothing else is said.
  bool as_compiled() const {
    return options_.model->compiled_for().size() == 1 && o_.inputs.batch == 0 && shapes_.empty() &&
           data_.empty() && o_.inputs.input.empty() && o_.inputs.inputs.empty();
  }

  /// lamina's own form finds more by itself: batches of 1, sizes of the same name.
  void check_known(const Port& p, const Dims* dims) const {
    const auto shape = shapes_.find(p.name);
    const bool asked = shape != shapes_.end() && any_open(shape->second);
    if ((!o_.app && !asked) || has_file(p) || p.value.valid() || as_compiled()) return;
    const auto batch = options_.batch > 0 ? batch_axis(options_, p.name) : std::string::npos;
    bool open = !dims;
    for (std::size_t i = 0; dims && i < dims->size(); ++i) open |= (*dims)[i] < 0 && i != batch;
    if (!open) return;
    const auto shape_like = proposed_shapes({{&p, dims ? *dims : Dims(), dims != nullptr}}, options_.model);
    fail(ErrorCode::bad_input, "input \"{}\" is dynamic: give {} {}[{}]", p.name,
         o_.app ? "-data_shape" : "--data-shape", p.name, fmt::join(shape_like[0], ","));
  }

  std::int64_t batch_of(const std::vector<Tensor>& inputs, std::vector<std::string>& notes) const;
  void fill_image_info(std::vector<Tensor>& inputs, std::vector<std::string>& notes) const;

  const BenchmarkCommand& o_;
  const std::vector<Port>& ports_;
  const Steps& steps_;
  std::map<std::string, std::vector<Dims>> data_;
  std::map<std::string, PartialShape> shapes_;
  InputOptions options_;  ///< with what layouts say of batches
};

/// As benchmark_app takes it: 4 dimensions with few channels before or behind the others.
bool looks_like_images(const Dims& d) {
  constexpr std::int64_t kMostChannels = 4;
  return d.size() == 4 && (d[1] <= kMostChannels) != (d[3] <= kMostChannels);
}

/// Height and width are open, too: one image without a batch.
bool looks_like_one_image(const Port& port) {
  return port.shape.size() == 3 && port.shape[1] < 0 && (port.shape[2] == 3 || port.shape[2] == 1);
}

/// Frames of one inference: what --batch says; else the size where a layout says N, else the first dimension
/// of the inputs that leave it open, else of those that look like images; 1 when there is none, or when
/// they differ, which is said.
std::int64_t Grouping::batch_of(const std::vector<Tensor>& inputs, std::vector<std::string>& notes) const {
  if (options_.batch > 0) return options_.batch;
  std::set<std::int64_t> said, open, guessed;
  // Where that is none, others may be weights that are given.
  const auto first = std::find_if(inputs.begin(), inputs.end(), [](const auto& t) { return t.rank() == 4; });
  const bool images = first != inputs.end() && looks_like_images(first->shape());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const auto& dims = inputs[i].shape();
    const auto at = batch_axis(options_, ports_[i].name);
    if (at >= dims.size()) continue;
    if (options_.batch_axes.count(ports_[i].name))
      said.insert(dims[at]);
    else if (at < ports_[i].shape.size() && ports_[i].shape[at] < 0 && !looks_like_one_image(ports_[i]))
      open.insert(dims[at]);
    else if (images && looks_like_images(dims))
      guessed.insert(dims[at]);
  }
  const auto& sizes = !said.empty() ? said : !open.empty() ? open : guessed;
  if (sizes.size() == 1) return std::max<std::int64_t>(*sizes.begin(), 1);
  if (!sizes.empty()) notes.emplace_back("inputs have different batches: throughput counts inferences");
  return 1;
}

/// Height and width of the images in each row, then ones: what detectors want to know.
void Grouping::fill_image_info(std::vector<Tensor>& inputs, std::vector<std::string>& notes) const {
  Dims image;
  bool found = false;
  for (const auto& t : inputs)
    if (looks_like_images(t.shape())) image = t.shape();
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (std::none_of(o_.image_info.begin(), o_.image_info.end(), [&](const auto& name) {
          return name == ports_[i].name || (name == "*" && ports_[i].shape.size() == 2);
        }))
      continue;
    const auto& dims = inputs[i].shape();
    if (image.empty() || ports_[i].type != ElementType::f32 || dims.size() != 2 || dims[1] < 2)
      fail(ErrorCode::bad_input, "input \"{}\": image_info wants f32[N,2 or more] beside an input of images",
           ports_[i].name);
    Tensor filled(ElementType::f32, dims);
    const bool last = image[3] < image[1];  // where the channels are
    for (std::int64_t k = 0; k < dims[0] * dims[1]; ++k) {
      const auto column = k % dims[1];
      filled.data<float>()[k] = column == 0   ? static_cast<float>(image[last ? 1 : 2])
                                : column == 1 ? static_cast<float>(image[last ? 2 : 3])
                                              : 1.0F;
    }
    inputs[i] = filled;
    found = true;
    const auto made_up = fmt::format("input \"{}\": seeded", ports_[i].name);
    std::erase_if(notes, [&](const auto& note) { return note.starts_with(made_up); });
    notes.push_back(fmt::format("input \"{}\": the size of the images", ports_[i].name));
  }
  if (!o_.image_info.empty() && !found)
    fail(ErrorCode::bad_input, "image_info: no input takes it, wanted f32[N,2 or more]");
}

}  // namespace

std::vector<InputGroup> gather_groups(const BenchmarkCommand& o, const Model& model, const Steps& steps,
                                      std::vector<std::string>& notes) {
  return Grouping(o, model, steps).made(notes);
}

}  // namespace lamina::tool
