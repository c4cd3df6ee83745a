#include "formats/onednn_graph/call.h"

#include <algorithm>

#include "base/limits.h"
#include "base/no_destructor.h"
#include "base/words.h"

namespace lamina::onednn_graph {

ValueId Call::in(std::size_t i) const {
  if (i >= inputs_.size()) fail("has {} inputs, wanted {}", inputs_.size(), i + 1);
  return inputs_[i];
}

const TensorDef& Call::out(std::size_t i) const {
  if (i >= op_.outputs.size()) fail("has {} outputs, wanted {}", op_.outputs.size(), i + 1);
  return op_.outputs[i];
}

template <class T>
const T& Call::attribute(std::string_view name, std::string_view wanted) const {
  const auto it = op_.attributes.find(name);
  if (it == op_.attributes.end()) fail("has no attribute \"{}\"", name);
  if (const auto* value = std::get_if<T>(&it->second)) return *value;
  fail("attribute \"{}\" has another type, wanted {}", name, wanted);
}

std::int64_t Call::i(std::string_view name) const { return attribute<std::int64_t>(name, "s64"); }
double Call::f(std::string_view name) const { return attribute<double>(name, "f32"); }
bool Call::flag(std::string_view name, bool fallback) const {
  return has(name) ? attribute<bool>(name, "bool") : fallback;
}
std::string Call::s(std::string_view name, std::string_view fallback) const {
  return has(name) ? lower_case(attribute<std::string>(name, "string")) : std::string(fallback);
}
Ints Call::ints(std::string_view name) const { return attribute<Ints>(name, "s64[]"); }
Floats Call::floats(std::string_view name) const { return attribute<Floats>(name, "f32[]"); }

std::size_t Call::choice(std::string_view name, std::string_view fallback,
                         std::initializer_list<std::string_view> words) const {
  const auto word = s(name, fallback);
  const auto* const found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) fail("attribute \"{}\" is \"{}\", wanted {}", name, word, fmt::join(words, ", "));
  return static_cast<std::size_t>(found - words.begin());
}

std::int64_t Call::axis(std::string_view name, std::int64_t fallback, ValueId v) const {
  return static_cast<std::int64_t>(
      normalize_axis(i(name, fallback), known_rank(v), fmt::format("attribute \"{}\"", name)));
}

ValueId Call::to_channels_first(ValueId v) const {
  const auto rank = known_rank(v);
  return channels_last() && rank > 2 ? Building::to_channels_first(v, rank) : v;
}

ValueId Call::to_framework(ValueId v) const {
  const auto rank = known_rank(v);
  return channels_last() && rank > 2 ? to_channels_last(v, rank) : v;
}

ValueId Call::along_channels(ValueId vector, ValueId v) const {
  const auto n = known_rank(vector), rank = known_rank(v);
  if (n != 1) fail("a tensor of shape {}, wanted an element for each channel", to_string(shape(vector)));
  if (rank < 2) return vector;
  if (!shape(vector)[0].fits(shape(v)[1]) && !shape(vector)[0].is(1))
    fail("a tensor of {} elements for {} channels", to_string(shape(vector)[0]), to_string(shape(v)[1]));
  Ints axes;
  for (std::size_t a = 2; a < rank; ++a) axes.push_back(static_cast<std::int64_t>(a - 1));
  return unsqueeze(vector, axes);
}

std::size_t Call::spatial_axes(ValueId v) const {
  const auto rank = known_rank(v);
  if (rank < 3) fail("input 0 has shape {}, wanted rank 3 or more", to_string(shape(v)));
  return rank - 2;
}

Ints Call::spatial_list(std::string_view name, std::size_t spatial, std::int64_t least) const {
  constexpr std::size_t kOneDnnAxes = 12;
  auto list = ints(name);
  if (list.size() == kOneDnnAxes) list.resize(std::min(spatial, kOneDnnAxes));
  if (list.size() != spatial) fail("attribute \"{}\" has {} numbers, wanted {}", name, list.size(), spatial);
  for (const auto n : list)
    if (n < least) fail("attribute \"{}\" has {}, wanted {} or more", name, n, least);
  return list;
}

Window Call::window(std::size_t spatial) const {
  constexpr AutoPad kPads[] = {AutoPad::explicit_, AutoPad::same_upper, AutoPad::same_lower, AutoPad::valid};
  Window w;
  w.auto_pad = kPads[choice("auto_pad", "none", {"none", "same_upper", "same_lower", "valid"})];
  w.strides = spatial_list("strides", spatial, 1);
  w.dilations = has("dilations") ? spatial_list("dilations", spatial, 1) : Ints(spatial, 1);
  if (w.auto_pad == AutoPad::explicit_) {
    w.pads_begin = spatial_list("pads_begin", spatial, -Limits::kElements);
    w.pads_end = spatial_list("pads_end", spatial, -Limits::kElements);
  }
  return w;
}

ValueId Call::without_negative_pads(ValueId v, Window& w) const {
  for (std::size_t i = 0; i < w.pads_begin.size(); ++i) {
    const auto begin = std::max<std::int64_t>(-w.pads_begin[i], 0),
               end = std::max<std::int64_t>(-w.pads_end[i], 0);
    if (begin == 0 && end == 0) continue;
    const auto& size = shape(v)[i + 2];
    if (!size.known()) unsupported("negative pads of an axis of unknown size");
    if (size.size() - begin - end < 1)
      fail("pads of {} and {} leave nothing of {}", -begin, -end, size.size());
    v = slice(v, static_cast<std::int64_t>(i + 2), begin, size.size() - end);
    w.pads_begin[i] = std::max<std::int64_t>(w.pads_begin[i], 0);
    w.pads_end[i] = std::max<std::int64_t>(w.pads_end[i], 0);
  }
  return v;
}

const ConverterTable& converters() {
  static const ProcessLifetime all([] {
    ConverterTable t;
    for (auto* add : {register_activation, register_convolution, register_elementwise, register_matmul,
                      register_normalization, register_pooling, register_quantization, register_reduction,
                      register_shape})
      add(t);
    return t;
  });
  return *all;
}

}  // namespace lamina::onednn_graph
