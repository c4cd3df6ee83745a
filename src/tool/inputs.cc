#include "tool/inputs.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "api/inside.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/npz.h"
#include "base/numbers.h"
#include "base/random.h"
#include "base/shape_only.h"
#include "ops/eval.h"
#include "tool/named_lists.h"
#include "tool/wanted_sizes.h"

namespace lamina::tool {

void add_input_options(OptionSet& options, InputOptions& o) {
  options.list(
      "--input", o.input, "[NAME=]FILE",
      "A file for one input: .npy, .npz, raw .bin or a picture (PNG, JPEG, PPM, PGM; several fill a batch)");
  options.text("--inputs", o.inputs, "FILE.npz", "Inputs by name, or as in0, in1, ...");
  add_picture_options(options, o.picture);
  options.number("--seed", o.seed, 0u, ~0u, "N", "Of the values of inputs that were not given");
}

void add_picture_options(OptionSet& options, PictureOptions& p) {
  options.list("--mean", p.mean, "V[,V,V]",
               "Pictures: subtracted from the pixels (0 to 255), by channel of the model", ',');
  options.list("--scale", p.scale, "V[,V,V]",
               "Pictures: what is left is divided by it, by channel of the model", ',');
  options.list("--layout", p.layout, "[NAME=]LAYOUT",
               "Pictures: the input's dimensions, such as NCHW or NHWC; else found out from its shape");
  options.choice("--color", p.color, {"rgb", "bgr"}, "ORDER",
                 "Pictures: order of the channels, rgb (default) or bgr");
  options.choice(
      "--fit", p.fit, {"stretch", "letterbox"}, "HOW",
      "Pictures of another size: stretch (default), or letterbox: in proportion, between grey bars");
}

const Tensor* find_array(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& name,
                         const std::string& positional) {
  for (const auto* key : {&name, &positional})
    for (const auto& [n, t] : arrays)
      if (n == *key) return &t;
  return nullptr;
}

namespace {

const Dims* asked_shape(const Port& port, const AskedShapes& shapes) {
  for (const auto& [name, dims] : shapes)
    if (name == port.name) return &dims;
  return nullptr;
}

/// What --shape says of the port, else its own dimensions, -1 where unknown.
Dims shape_of(const Port& port, const AskedShapes& shapes) {
  const auto* asked = asked_shape(port, shapes);
  return asked ? *asked : port.shape;
}

/// Unknown dimensions as 1.
Dims with_ones(Dims dims) {
  for (auto& d : dims) d = d < 0 ? 1 : d;
  return dims;
}

Tensor raw(const std::string& path, const Port& port, const Dims& shape) {
  const auto file = MappedFile::open(path);
  const Tensor probe = shape_only(port.type, shape);
  if (file->size() != probe.bytes())
    fail(ErrorCode::bad_input, "{}: {} bytes, wanted {} for input \"{}\" of shape [{}]", path, file->size(),
         probe.bytes(), port.name, fmt::join(shape, ","));
  Tensor t(port.type, shape);
  if (t.bytes()) std::memcpy(t.raw(), file->data(), t.bytes());
  return t;
}

/// Before memory is taken for an array: no more elements than the input takes, where its sizes are known. The
/// batch may be another one; it is repeated or cut.
void require_room(const std::string& path, const std::string& name, ElementType type, const Dims& shape,
                  const Port& port, Dims dims, std::size_t batch) {
  const auto without_batch = [&](Dims sizes) {
    if (batch < sizes.size()) sizes[batch] = 1;
    return sizes;
  };
  dims = without_batch(dims);
  if (!port.ranked || std::any_of(dims.begin(), dims.end(), [](auto d) { return d < 0; })) return;
  if (element_count(without_batch(shape)) > element_count(dims))
    fail(ErrorCode::bad_input, "{}: \"{}\" is {}[{}], wanted {}", path, name, name_of(type),
         fmt::join(shape, ","), to_string(port));
}

Tensor from_file(const std::string& path, const Port& port, const Dims& shape, std::size_t batch) {
  if (path.ends_with(".npy")) return read_npy(path);
  if (path.ends_with(".npz")) {
    std::size_t count = 0;
    const auto arrays = read_npz(path, [&](const std::string& name, ElementType type, const Dims& dims) {
      require_room(path, name, type, dims, port, shape, batch);
      return ++count == 1;
    });
    if (count > 1)
      fail(ErrorCode::bad_input, "{}: {} arrays, wanted one for input \"{}\" (--inputs takes several)", path,
           count, port.name);
    if (arrays.size() != 1)
      fail(ErrorCode::bad_input, "{}: {} arrays, wanted one for input \"{}\" (--inputs takes several)", path,
           arrays.size(), port.name);
    return arrays[0].second;
  }
  if (path.ends_with(".bin") || path.ends_with(".raw")) return raw(path, port, with_ones(shape));
  fail(ErrorCode::bad_input, "{}: wanted .npy, .npz, .bin or a picture", path);
}

std::string port_names(const std::vector<Port>& ports) {
  std::string out;
  for (const auto& p : ports) out += (out.empty() ? "\"" : ", \"") + p.name + "\"";
  return out;
}

/// in0, in1, ... below the count; out0, out1, ... of any count.
bool is_position(std::string_view key, std::size_t inputs) {
  const bool in = key.starts_with("in"), out = key.starts_with("out");
  if (!in && !out) return false;
  const auto digits = key.substr(in ? 2 : 3);
  const auto number = parse_integer<std::size_t>(digits);
  return number && std::to_string(*number) == digits && (out || *number < inputs);
}

bool same(const Tensor& a, const Tensor& b) {
  return a.element_type() == b.element_type() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

/// The dimension that is the wanted batch, or may be; nothing where the model fixes another.
std::optional<std::size_t> free_batch(const Port& p, const InputOptions& o, const AskedShapes& shapes) {
  const auto axis = batch_axis(o, p.name);
  const auto dims = p.ranked ? p.shape : shape_of(p, shapes);
  if (o.batch == 0 || axis >= dims.size()) return {};
  return !p.ranked || dims[axis] < 0 || dims[axis] == o.batch ? std::optional(axis) : std::nullopt;
}

/// The arrays of a file that are inputs.
void take_arrays(const std::string& path, const std::vector<Port>& ports, const InputOptions& o,
                 const AskedShapes& shapes, std::vector<Tensor>& tensors) {
  const auto arrays = read_npz(path, [&](const std::string& key, ElementType type, const Dims& dims) {
    bool wanted = false;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (key != ports[i].name && key != "in" + std::to_string(i)) continue;
      const auto batch = free_batch(ports[i], o, shapes).value_or(std::string::npos);
      require_room(path, key, type, dims, ports[i], shape_of(ports[i], shapes), batch);
      wanted = true;
    }
    if (!wanted && !is_position(key, ports.size()))
      fail(ErrorCode::bad_input, "{}: there is no input \"{}\", there are: {}", path, key, port_names(ports));
    return wanted;
  });
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto positional = "in" + std::to_string(i);
    const auto *named = find_array(arrays, ports[i].name, ports[i].name),
               *placed = find_array(arrays, positional, positional);
    if (named && placed && !same(*named, *placed))
      fail(ErrorCode::bad_input, "{}: \"{}\" and \"{}\" are the same input and differ", path, ports[i].name,
           positional);
    if (named || placed) tensors[i] = named ? *named : *placed;
  }
}

/// What --input gives.
struct GivenFiles {
  std::vector<std::vector<std::string>> of;  ///< each input
  std::vector<std::string> arrays = {};      ///< files that hold several
};

/// Names may hold '=', and so may files.
GivenFiles files_of(const InputOptions& o, const std::vector<Port>& ports) {
  GivenFiles out{.of = std::vector<std::vector<std::string>>(ports.size())};
  std::size_t next = 0;
  for (const auto& text : o.input) {
    std::optional<std::size_t> found;
    std::string path = text;
    for (auto at = text.find('='); at != std::string::npos && !found; at = text.find('=', at + 1))
      for (std::size_t i = 0; i < ports.size() && !found; ++i)
        if (ports[i].name == text.substr(0, at)) found = i, path = text.substr(at + 1);
    std::error_code error;  // of names that no file can have
    const bool nameless = text.find('=') == std::string::npos || std::filesystem::exists(text, error);
    if (!found && nameless && ports.size() > 1 && o.files_in_order && text.ends_with(".npz")) {
      out.arrays.push_back(text);
      continue;
    }
    if (!found && nameless && !ports.empty() && (ports.size() == 1 || o.files_in_order))
      found = next++ % ports.size();
    if (!found)
      fail(ErrorCode::bad_input, "--input: there is no input \"{}\", there are: {}",
           nameless ? "" : text.substr(0, text.find('=')), port_names(ports));
    out.of[*found].push_back(path);
  }
  return out;
}

/// Those that the input takes: a batch of pictures, or one array.
std::vector<std::string> without_spare(const std::vector<std::string>& paths, const Port& port,
                                       const Dims& dims, std::size_t axis, std::vector<std::string>& notes) {
  const bool pictures = looks_like_image(paths[0]);
  if (pictures && (axis >= dims.size() || dims[axis] < 1)) return paths;
  const auto room = pictures ? static_cast<std::size_t>(dims[axis]) : 1;
  if (paths.size() <= room) return paths;
  notes.push_back(fmt::format("input \"{}\": the first {} of {} files", port.name, room, paths.size()));
  return {paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(room)};
}

Tensor from_files(const std::vector<std::string>& given, const Port& port, const InputOptions& o,
                  const Dims& dims, std::size_t batch, std::vector<std::string>& notes) {
  const auto paths =
      o.spare_files ? without_spare(given, port, dims, batch_axis(o, port.name), notes) : given;
  if (paths.size() == 1 && !looks_like_image(paths[0])) return from_file(paths[0], port, dims, batch);
  std::vector<Image> pictures;
  for (const auto& path : paths) {
    if (!looks_like_image(path))
      fail(ErrorCode::bad_input,
           "--input: {} files for input \"{}\", and {} is no picture: only pictures fill a batch",
           paths.size(), port.name, path);
    pictures.push_back(read_image(path));
  }
  return tensor_of(pictures, paths, port, dims, o.picture, notes);
}

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
  /// For a dimension that nothing else says; -1: it must be said. What is named as a dimension of batches is
  /// one: 1, or what --batch says.
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

/// Quantised numbers and pixels have their type's whole range. Wider integers are kept small: most are
/// indices.
Tensor seeded_values(ElementType type, const Dims& shape, std::uint64_t seed) {
  const bool whole = is_integer(type) && bits_of(type) <= 8 && type != ElementType::u1;
  if (!whole) return seeded_tensor(type, shape, seed);
  Tensor t(type, shape);
  SplitMix random(seed);
  for (std::size_t i = 0; i < t.bytes(); ++i) t.raw()[i] = static_cast<std::byte>(random.next());
  return t;
}

/// Of an input that is made up: its sizes as far as anything says them.
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
                              fmt::join(shape, ","), as_compiled ? ", which it was compiled for" : ""));
  if (o.only_shapes) return shape_only(port.type, shape);
  return seeded_values(port.type, shape, o.seed + 1000 * (index + 1));
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

/// Rows from a file, repeated or cut to the batch, which is said.
Tensor with_batch(const Tensor& t, int batch, std::size_t axis, const Port& port,
                  std::vector<std::string>& notes) {
  Dims shape = t.shape();
  if (axis >= shape.size() || shape[axis] == batch) return t;
  const auto rows = shape[axis];
  if (rows == 0)
    fail(ErrorCode::bad_input, "--batch {}: the file of input \"{}\" has no rows", batch, port.name);
  shape[axis] = batch;
  Tensor out(t.element_type(), shape);
  const auto blocks = element_count(Dims(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)));
  const auto row = blocks ? t.bytes() / blocks / static_cast<std::size_t>(rows) : 0;
  for (std::size_t k = 0; k < blocks; ++k)
    for (int b = 0; b < batch; ++b)
      std::copy_n(t.raw() + (k * static_cast<std::size_t>(rows) + static_cast<std::size_t>(b % rows)) * row,
                  row, out.raw() + (k * static_cast<std::size_t>(batch) + static_cast<std::size_t>(b)) * row);
  const auto of = fmt::format("{} row{}", rows, rows == 1 ? "" : "s");
  notes.push_back(fmt::format("input \"{}\": {}", port.name,
                              rows < batch ? fmt::format("{} repeated to a batch of {}", of, batch)
                                           : fmt::format("the first {} of {}", batch, of)));
  return out;
}

/// Every name is that of an input with a picture.
void check_layouts(const PictureOptions& o, const std::vector<Port>& ports,
                   const std::vector<std::vector<std::string>>& files) {
  for (const auto& text : o.layout)
    for (const auto& [name, letters] : named_lists("--layout", text)) {
      if (name.empty()) continue;
      std::size_t i = 0;
      while (i < ports.size() && ports[i].name != name) ++i;
      if (i == ports.size())
        fail(ErrorCode::bad_input, "--layout: there is no input \"{}\", there are: {}", name,
             port_names(ports));
      if (files[i].empty() || !looks_like_image(files[i][0]))
        throw UsageError(fmt::format("--layout {}: input \"{}\" is given no picture", text, name));
    }
}

/// Each size is the one that is asked for, where one is.
bool fits(const Dims& dims, const Dims& asked) {
  return std::equal(dims.begin(), dims.end(), asked.begin(), asked.end(),
                    [](auto d, auto wanted) { return wanted < 0 || d == wanted; });
}

/// From --input and --inputs; those that are given nothing stay empty.
std::vector<Tensor> given_inputs(const std::vector<Port>& ports, const InputOptions& o,
                                 const AskedShapes& shapes, std::vector<std::string>& notes) {
  std::vector<Tensor> tensors(ports.size());
  const auto files = files_of(o, ports);
  if (!o.inputs.empty()) take_arrays(o.inputs, ports, o, shapes, tensors);
  for (const auto& path : files.arrays) take_arrays(path, ports, o, shapes, tensors);
  if (!o.layouts_of_any) check_layouts(o.picture, ports, files.of);
  bool pictures = false;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto axis = free_batch(ports[i], o, shapes);
    if (!files.of[i].empty()) {
      if (tensors[i].valid())
        throw UsageError(
            fmt::format("--input and --inputs: both have a value for input \"{}\"", ports[i].name));
      const bool picture = looks_like_image(files.of[i][0]);
      pictures = pictures || picture;
      auto dims = shape_of(ports[i], shapes);
      if (axis && picture && *axis < dims.size()) dims[*axis] = o.batch;
      tensors[i] = from_files(files.of[i], ports[i], o, dims, axis.value_or(std::string::npos), notes);
    }
    if (axis && tensors[i].valid()) tensors[i] = with_batch(tensors[i], o.batch, *axis, ports[i], notes);
  }
  auto asked = o.picture;
  if (o.layouts_of_any) asked.layout.clear();
  if (asked.any() && !pictures)
    throw UsageError("--mean, --scale, --layout, --color and --fit are for pictures: no --input is one");
  return tensors;
}

bool has_open_sizes(const Port& port) {
  return !port.ranked || std::any_of(port.shape.begin(), port.shape.end(), [](auto d) { return d < 0; });
}

/// What a compiled model was compiled for, where the command line says nothing of sizes and there is one
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
  o.model = &Inside::of(model);
  std::vector<std::string> names;
  for (const auto& p : model.inputs()) names.push_back(p.name);
  return gather_inputs(model.inputs(), o, common.shapes(names), notes);
}

}  // namespace lamina::tool
