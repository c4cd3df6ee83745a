#include "tool/inputs.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/npz.h"
#include "base/random.h"
#include "base/shape_only.h"
#include "ops/eval.h"
#include "tool/image.h"

namespace lamina::tool {

void add_input_options(OptionSet& options, InputOptions& o) {
  options.list("--input", o.input, "[NAME=]FILE", "A file for one input: .npy, .npz, raw .bin or a picture");
  options.text("--inputs", o.inputs, "FILE.npz", "Inputs by name, or as in0, in1, ...");
  options.list("--mean", o.mean, "R[,G,B]", "Subtracted from the pixels of pictures", ',');
  options.list("--scale", o.scale, "R[,G,B]", "Pixels of pictures are divided by it", ',');
  options.choice("--layout", o.layout, {"auto", "nchw", "nhwc"}, "LAYOUT",
                 "Where pictures have their channels");
  options.number("--seed", o.seed, 0u, ~0u, "N", "Of the values of inputs that were not given");
}

const Tensor* find_array(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& name,
                         const std::string& positional) {
  for (const auto* key : {&name, &positional})
    for (const auto& [n, t] : arrays)
      if (n == *key) return &t;
  return nullptr;
}

namespace {

/// Unknown dimensions: what --shape says, else 1.
Dims shape_for(const Port& port, const std::vector<std::pair<std::string, Dims>>& shapes) {
  for (const auto& [name, dims] : shapes)
    if (name == port.name) return dims;
  Dims out = port.shape;
  for (auto& d : out) d = std::max<std::int64_t>(d, d < 0 ? 1 : d);
  return out;
}

double channel_value(const std::vector<double>& values, std::size_t c, double fallback) {
  if (values.empty()) return fallback;
  return values.size() == 1 ? values[0] : values.at(c);
}

/// A picture as a tensor of the port's type, resized to its shape.
Tensor picture(const std::string& path, const Port& port, const InputOptions& o, Dims shape) {
  if (shape.size() != 4 && shape.size() != 3)
    fail(ErrorCode::bad_input, "input \"{}\": a picture for a tensor of rank {}, wanted 3 or 4", port.name,
         shape.size());
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  const bool last = o.layout == "nhwc" || (o.layout == "auto" && (shape[3] == 3 || shape[3] == 1) &&
                                           shape[1] != 3 && shape[1] != 1);
  const auto channels = shape[last ? 3 : 1], height = shape[last ? 1 : 2], width = shape[last ? 2 : 3];
  if ((channels != 3 && channels != 1) || height < 1 || width < 1 || height > 65535 || width > 65535 ||
      shape[0] != 1)
    fail(ErrorCode::bad_input, "input \"{}\": a picture for shape [{}], wanted 1 or 3 channels", port.name,
         fmt::join(shape, ","));
  for (const auto* v : {&o.mean, &o.scale})
    if (v->size() > 1 && v->size() != static_cast<std::size_t>(channels))
      throw UsageError(fmt::format("--mean and --scale: {} values for {} channels", v->size(), channels));
  const auto image = resized(read_image(path), static_cast<int>(width), static_cast<int>(height));
  std::vector<double> values(element_count(shape));
  const auto pixels = static_cast<std::size_t>(width * height), n = static_cast<std::size_t>(channels);
  for (std::size_t p = 0; p < pixels; ++p)
    for (std::size_t c = 0; c < n; ++c) {
      const auto* rgb = &image.rgb[p * 3];
      const double v = n == 3 ? rgb[c] : 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
      values[last ? p * n + c : c * pixels + p] =
          (v - channel_value(o.mean, c, 0)) / channel_value(o.scale, c, 1);
    }
  if (port.shape.size() == 3) shape.erase(shape.begin());
  return from_doubles(port.type, shape, values);
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

Tensor from_file(const std::string& path, const Port& port, const InputOptions& o, const Dims& shape) {
  if (looks_like_image(path)) return picture(path, port, o, shape);
  if (path.ends_with(".npy")) return read_npy(path);
  if (path.ends_with(".npz")) {
    const auto arrays = read_npz(path);
    if (arrays.size() != 1)
      fail(ErrorCode::bad_input, "{}: {} arrays, wanted one for input \"{}\" (--inputs takes several)", path,
           arrays.size(), port.name);
    return arrays[0].second;
  }
  if (path.ends_with(".bin") || path.ends_with(".raw")) return raw(path, port, shape);
  fail(ErrorCode::bad_input, "{}: wanted .npy, .npz, .bin or a picture", path);
}

std::string port_names(const std::vector<Port>& ports) {
  std::string out;
  for (const auto& p : ports) out += (out.empty() ? "\"" : ", \"") + p.name + "\"";
  return out;
}

bool is_position(const std::string& key, std::size_t count) {
  if (key.size() < 3 || key.compare(0, 2, "in") != 0) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (key == "in" + std::to_string(i)) return true;
  return false;
}

/// Integers are kept small: most are indices or flags.
Tensor made_up(const Port& port, const Dims& shape, unsigned seed, std::size_t index) {
  return seeded_tensor(port.type, shape, seed + 1000 * (index + 1));
}

}  // namespace

std::vector<Tensor> gather_inputs(const std::vector<Port>& ports, const InputOptions& o, const Common& common,
                                  std::vector<std::string>& notes) {
  std::vector<Tensor> tensors(ports.size());
  const auto shapes = common.shapes();
  for (const auto& [name, dims] : shapes)
    if (std::none_of(ports.begin(), ports.end(), [&](const Port& p) { return p.name == name; }))
      fail(ErrorCode::bad_input, "--shape: there is no input \"{}\", there are: {}", name, port_names(ports));
  if (!o.inputs.empty()) {
    const auto arrays = read_npz(o.inputs);
    for (const auto& [key, tensor] : arrays) {
      const bool named =
          std::any_of(ports.begin(), ports.end(), [&](const Port& p) { return p.name == key; });
      if (!named && !is_position(key, ports.size()) && key.compare(0, 3, "out") != 0)
        fail(ErrorCode::bad_input, "{}: there is no input \"{}\", there are: {}", o.inputs, key,
             port_names(ports));
    }
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (const auto* t = find_array(arrays, ports[i].name, "in" + std::to_string(i))) tensors[i] = *t;
  }
  for (const auto& text : o.input) {
    const auto equals = text.find('=');
    const std::string name =
        equals == std::string::npos ? (ports.size() == 1 ? ports[0].name : "") : text.substr(0, equals);
    const std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    const auto it = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == name; });
    if (it == ports.end())
      fail(ErrorCode::bad_input, "--input: there is no input \"{}\", there are: {}", name, port_names(ports));
    const auto i = static_cast<std::size_t>(it - ports.begin());
    tensors[i] = from_file(path, *it, o, shape_for(*it, shapes));
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (tensors[i].valid()) continue;
    if (!ports[i].ranked && shapes.empty())
      fail(ErrorCode::bad_input, "input \"{}\" has no known rank: give it a file, or --shape {}=...",
           ports[i].name, ports[i].name);
    const auto shape = shape_for(ports[i], shapes);
    tensors[i] = o.only_shapes ? shape_only(ports[i].type, shape) : made_up(ports[i], shape, o.seed, i);
    notes.push_back(fmt::format("input \"{}\": seeded random values, {}[{}]", ports[i].name,
                                name_of(ports[i].type), fmt::join(shape, ",")));
  }
  return tensors;
}

}  // namespace lamina::tool
