#include "tool/inputs.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/seeded_input.h"
#include "base/shape_only.h"
#include "tool/input_files.h"
#include "tool/open_inputs.h"

namespace lamina::tool {

void add_input_options(OptionSet& options, InputOptions& o) {
  options.list(
      "--input", o.input, "[NAME=]FILE",
      "A file for one input: .npy, .npz, raw .bin or an image (PNG, JPEG, PPM, PGM; several fill a batch)");
  options.text("--inputs", o.inputs, "FILE.npz", "Inputs by name, or as in0, in1, ...");
  add_image_options(options, o.image);
  options.number("--seed", o.seed, 0u, ~0u, "N", "Seed of the random values of inputs that are not given");
}

void add_image_options(OptionSet& options, ImageOptions& p) {
  options.list("--mean", p.mean, "V[,V,V]",
               "Images: subtracted from the pixels (0 to 255), by channel of the model", ',');
  options.list("--scale", p.scale, "V[,V,V]",
               "Images: the pixels minus the mean are divided by it, by channel of the model", ',');
  options.list("--layout", p.layout, "[NAME=]LAYOUT",
               "Images: the input's dimensions, such as NCHW or NHWC; by default guessed from its shape");
  options.choice("--color", p.color, {"rgb", "bgr"}, "ORDER",
                 "Images: order of the channels, rgb (default) or bgr");
  options.choice("--fit", p.fit, {"stretch", "letterbox"}, "HOW",
                 "Images of another size: stretch (default), or letterbox: in proportion, between grey bars");
}

namespace {

/// Sizes of dimensions that the model only names, as the inputs that were given have them.
class NamedSizes {
 public:
  NamedSizes(const std::vector<Port>& ports, const InputOptions& o) : o_(o) {
    for (const auto& p : ports)
      if (const auto& name = name_of_dimension(p, batch_axis(o, p.name)); !name.empty())
        batches_.insert(name);
  }
  void learn(const Port& port, const Dims& dims) {
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (const auto& name = name_of_dimension(port, i); !name.empty() && dims[i] >= 0)
        known_.emplace(name, dims[i]);
  }
  /// The size of a dimension that neither model nor file gives; -1: the user must give it. A dimension that
  /// is named like a batch is 1, or the value of --batch.
  std::int64_t of(const Port& port, std::size_t i) const {
    const auto& name = name_of_dimension(port, i);
    if (const auto it = known_.find(name); it != known_.end()) return it->second;
    return i == batch_axis(o_, port.name) || batches_.count(name) ? std::max(o_.batch, 1) : -1;
  }

 private:
  static const std::string& name_of_dimension(const Port& port, std::size_t i) {
    static const std::string none;
    return i < port.dimension_names.size() ? port.dimension_names[i] : none;
  }
  std::map<std::string, std::int64_t> known_;
  std::set<std::string> batches_;
  const InputOptions& o_;
};

/// Sizes of an input that is filled with random values, as far as they are given.
OpenInput sizes_to_make(const Port& port, const AskedShapes& shapes, const NamedSizes& sizes) {
  OpenInput out{.port = &port, .shape = shape_of(port, shapes)};
  out.ranked = port.ranked || asked_shape(port, shapes);
  for (std::size_t i = 0; i < out.shape.size(); ++i)
    if (out.shape[i] < 0) out.shape[i] = sizes.of(port, i);
  return out;
}

bool is_open(const OpenInput& input) {
  return !input.ranked || std::any_of(input.shape.begin(), input.shape.end(), [](auto d) { return d < 0; });
}

Tensor made_up(const Port& port, const Dims& shape, const InputOptions& o, std::size_t index,
               bool as_compiled, std::vector<std::string>& notes) {
  notes.push_back(fmt::format("input \"{}\": seeded random values, {}[{}]{}", port.name, name_of(port.type),
                              fmt::join(shape, ","),
                              as_compiled ? ", the shape that it was compiled for" : ""));
  if (o.only_shapes) return shape_only(port.type, shape);
  return seeded_input(port.type, shape, o.seed + 1000 * (index + 1));
}

/// The batch goes before what --shape says, which is told.
void set_batch(AskedShapes& shapes, const std::vector<Port>& ports, const InputOptions& o,
               std::vector<std::string>& notes) {
  if (ports.empty()) throw UsageError(fmt::format("--batch {}: the model has no inputs", o.batch));
  bool any = false;
  for (const auto& p : ports) {
    const auto axis = free_batch(p, o, shapes);
    any |= axis.has_value();
    if (!axis && batch_axis(o, p.name) < p.shape.size() && o.batch_axes.count(p.name))
      throw UsageError(fmt::format("--batch {}: the batch of input \"{}\" is fixed in the model ({})",
                                   o.batch, p.name, to_string(p)));
    for (auto& [name, dims] : shapes) {
      if (!axis || name != p.name || *axis >= dims.size() || dims[*axis] == o.batch) continue;
      if (dims[*axis] >= 0)
        notes.push_back(
            fmt::format("input \"{}\": --batch makes the {} of --shape {}", name, dims[*axis], o.batch));
      dims[*axis] = o.batch;
    }
  }
  if (!any)
    throw UsageError(fmt::format("--batch {}: no input has a batch that is not fixed in the model ({} is {})",
                                 o.batch, ports[0].name, to_string(ports[0])));
}

/// True if each size is the one that is asked for, or none is asked for.
bool fits(const Dims& dims, const Dims& asked) {
  return std::equal(dims.begin(), dims.end(), asked.begin(), asked.end(),
                    [](auto d, auto wanted) { return wanted < 0 || d == wanted; });
}

bool has_open_sizes(const Port& port) {
  return !port.ranked || std::any_of(port.shape.begin(), port.shape.end(), [](auto d) { return d < 0; });
}

/// The shapes that a compiled model was compiled for, if the command line gives no sizes and there is one
/// choice.
AskedShapes as_compiled(const std::vector<Port>& ports, const InputOptions& o, const AskedShapes& asked,
                        const std::vector<Tensor>& given) {
  const bool said = !asked.empty() || o.batch > 0 ||
                    std::any_of(given.begin(), given.end(), [](const Tensor& t) { return t.valid(); });
  AskedShapes out;
  if (said || !o.model || o.model->compiled_for().size() != 1) return out;
  const auto& shapes = o.model->compiled_for()[0];
  for (std::size_t i = 0; i < std::min(shapes.size(), ports.size()); ++i)
    if (has_open_sizes(ports[i])) out.emplace_back(ports[i].name, shapes[i]);
  return out;
}

/// Inputs that have no tensor yet, with seeded random values.
void make_up(const std::vector<Port>& ports, const InputOptions& o, const AskedShapes& shapes,
             const AskedShapes& compiled, std::vector<Tensor>& tensors, std::vector<std::string>& notes) {
  NamedSizes sizes(ports, o);
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (tensors[i].valid() || asked_shape(ports[i], shapes))
      sizes.learn(ports[i], tensors[i].valid() ? tensors[i].shape() : *asked_shape(ports[i], shapes));
  std::vector<OpenInput> open;
  std::vector<std::pair<std::size_t, Dims>> missing;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (tensors[i].valid()) continue;
    auto one = sizes_to_make(ports[i], shapes, sizes);
    if (is_open(one))
      open.push_back(std::move(one));
    else
      missing.emplace_back(i, std::move(one.shape));
  }
  if (!open.empty()) ask_for_sizes(open, o.model, !o.no_files);
  for (const auto& [i, shape] : missing)
    tensors[i] = made_up(ports[i], shape, o, i, asked_shape(ports[i], compiled) != nullptr, notes);
}

}  // namespace

std::string inputs_text(const std::vector<Port>& ports, const std::vector<Dims>& shapes) {
  std::string out;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    out += fmt::format("{}{}[{}]", i == 0 ? "" : ", ", ports[i].name, fmt::join(shapes[i], ","));
  return out;
}

std::size_t batch_axis(const InputOptions& o, const std::string& input) {
  const auto it = o.batch_axes.find(input);
  return it == o.batch_axes.end() ? 0 : it->second;
}

std::vector<Tensor> gather_inputs(const std::vector<Port>& ports, const InputOptions& o, AskedShapes shapes,
                                  std::vector<std::string>& notes) {
  if (o.batch > 0) set_batch(shapes, ports, o, notes);
  auto tensors = given_inputs(ports, o, shapes, notes);
  const auto compiled = as_compiled(ports, o, shapes, tensors);
  shapes.insert(shapes.end(), compiled.begin(), compiled.end());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!tensors[i].valid() && ports[i].value.valid() && !asked_shape(ports[i], shapes))
      tensors[i] = ports[i].value;
    if (!tensors[i].valid() && o.only_given)
      fail(ErrorCode::bad_input, "no file for input \"{}\", wanted {}", ports[i].name, to_string(ports[i]));
  }
  make_up(ports, o, shapes, compiled, tensors, notes);
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (const auto* asked = asked_shape(ports[i], shapes); asked && !fits(tensors[i].shape(), *asked))
      fail(ErrorCode::bad_input, "input \"{}\": its file has shape [{}], --shape says [{}]", ports[i].name,
           fmt::join(tensors[i].shape(), ","), fmt::join(*asked, ","));
  for (auto& note : notes) note = printable(note);
  return tensors;
}

std::vector<Tensor> gather_inputs(const Model& model, InputOptions o, const Common& common,
                                  std::vector<std::string>& notes) {
  o.model = &model;
  std::vector<std::string> names;
  for (const auto& p : model.inputs()) names.push_back(p.name);
  return gather_inputs(model.inputs(), o, common.shapes(names), notes);
}

}  // namespace lamina::tool
