#include "tool/input_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/npz.h"
#include "base/numbers.h"
#include "base/shape_only.h"
#include "tool/named_lists.h"

namespace lamina::tool {

const Tensor* find_array(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& name,
                         const std::string& positional) {
  for (const auto* key : {&name, &positional})
    for (const auto& [n, t] : arrays)
      if (n == *key) return &t;
  return nullptr;
}

const Dims* asked_shape(const Port& port, const AskedShapes& shapes) {
  for (const auto& [name, dims] : shapes)
    if (name == port.name) return &dims;
  return nullptr;
}

Dims shape_of(const Port& port, const AskedShapes& shapes) {
  const auto* asked = asked_shape(port, shapes);
  return asked ? *asked : port.shape;
}

std::optional<std::size_t> free_batch(const Port& p, const InputOptions& o, const AskedShapes& shapes) {
  const auto axis = batch_axis(o, p.name);
  const auto dims = p.ranked ? p.shape : shape_of(p, shapes);
  if (o.batch == 0 || axis >= dims.size()) return {};
  return !p.ranked || dims[axis] < 0 || dims[axis] == o.batch ? std::optional(axis) : std::nullopt;
}

namespace {

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
  fail(ErrorCode::bad_input, "{}: wanted .npy, .npz, .bin or an image", path);
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

/// The files that the input takes: a batch of images, or one array.
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
           "--input: {} files for input \"{}\", and {} is not an image: only images fill a batch",
           paths.size(), port.name, path);
    pictures.push_back(read_image(path));
  }
  return tensor_of(pictures, paths, port, dims, o.picture, notes);
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

/// Codes of a type that numpy lacks.
Tensor stored_for(const Port& port, const Tensor& array) try {
  return as_stored(array, port.type);
} catch (const Error& e) {
  if (e.code() != ErrorCode::bad_input) throw;
  fail(ErrorCode::bad_input, "input \"{}\" of {}: {}", port.name, name_of(port.type), e.what());
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
        throw UsageError(fmt::format("--layout {}: input \"{}\" is given no image", text, name));
    }
}

}  // namespace

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
    if (tensors[i].valid()) tensors[i] = stored_for(ports[i], tensors[i]);
  }
  auto asked = o.picture;
  if (o.layouts_of_any) asked.layout.clear();
  if (asked.any() && !pictures)
    throw UsageError("--mean, --scale, --layout, --color and --fit are for images: no --input is one");
  return tensors;
}

}  // namespace lamina::tool
