#include "formats/ir/pre_process.h"

#include <cmath>
#include <cstring>
#include <iterator>

#include "formats/ir/text.h"
#include "ops/elementwise.h"
#include "ops/eval.h"

namespace lamina::ir {
namespace {

/// The input that <pre-process> means: by name, else the first of rank 4.
std::uint32_t find_input(const Reading& reading, const std::vector<std::uint32_t>& parameters,
                         pugi::xml_node node, const Network& net) {
  const std::string_view wanted = node.attribute("reference-layer-name").value();
  for (const auto index : parameters) {
    const auto type = parameter_type(reading, net.layers[index]);
    if (wanted.empty() ? type.shape.ranked() && type.shape.rank() == 4 : net.layers[index].name == wanted)
      return index;
  }
  reading.xml.fail(node, "<pre-process> names no parameter");
}

double channel_mean(const Reading& reading, pugi::xml_node channel) {
  if (const auto scale = channel.child("scale")) {
    const auto value = parse_number(reading.xml.attribute(scale, "value"));
    if (!value || *value != 1)
      reading.xml.fail(scale, "<pre-process> with a scale other than 1 is not supported");
  }
  const auto mean = channel.child("mean");
  if (!mean) return 0;
  const auto value = parse_number(reading.xml.attribute(mean, "value"));
  if (!value || !std::isfinite(*value)) reading.xml.fail(mean, "the mean is no number");
  return *value;
}

/// The channels by id, if they have ids.
std::vector<pugi::xml_node> channels_of(const Reading& reading, pugi::xml_node node) {
  const auto children = node.children("channel");
  std::vector<pugi::xml_node> out(static_cast<std::size_t>(std::distance(children.begin(), children.end())));
  std::int64_t next = 0;
  for (const auto channel : children) {
    const std::int64_t id = reading.xml.integer(channel, "id", next++);
    if (id < 0 || id >= std::ssize(out) || out[static_cast<std::size_t>(id)])
      reading.xml.fail(channel, "channel id {} of {} channels, wanted each once", id, out.size());
    out[static_cast<std::size_t>(id)] = channel;
  }
  return out;
}

/// Mean images: one plane [H, W] a channel, in the .bin.
Tensor mean_image(Reading& reading, pugi::xml_node node, const Dims& plane,
                  const std::vector<pugi::xml_node>& channels) {
  const std::string_view precision = node.attribute("mean-precision").value();
  const bool half = same_word(precision, "FP16");
  if (!precision.empty() && !half && !same_word(precision, "FP32"))
    reading.xml.fail(node, "mean-precision is '{}', wanted FP32 or FP16", precision.substr(0, 80));
  const std::size_t bytes = element_count(plane) * (half ? 2 : sizeof(float));
  std::vector<const std::byte*> planes;
  for (const auto channel : channels) {
    const auto mean = channel.child("mean");
    const auto offset = reading.xml.integer(mean, "offset"), size = reading.xml.integer(mean, "size");
    if (offset < 0 || size < 0 || static_cast<std::size_t>(size) != bytes)
      reading.xml.fail(mean, "a mean image at {} of {} bytes, wanted {}", offset, size, bytes);
    planes.push_back(
        reading.blobs.slice(reading.xml, mean, "a mean image", static_cast<std::uint64_t>(offset), bytes));
  }
  if (bytes > 0 && planes.size() > reading.blobs.size() / bytes)
    reading.xml.fail(node, "the mean images overlap");
  Tensor image(half ? ElementType::f16 : ElementType::f32, {std::ssize(channels), plane[0], plane[1]});
  for (std::size_t i = 0; bytes > 0 && i < planes.size(); ++i)
    std::memcpy(image.raw() + i * bytes, planes[i], bytes);
  return half ? convert(image, ElementType::f32) : image;
}

}  // namespace

void add_pre_process(Reading& reading, GraphBuilder& builder, const std::vector<std::uint32_t>& parameters) {
  const auto node = reading.xml.root().child("pre-process");
  if (!node) return;
  const std::vector<pugi::xml_node> channels = channels_of(reading, node);
  if (channels.empty()) return;
  const auto index = find_input(reading, parameters, node, builder.network());
  const ValueId input = builder.value({index, 0});
  const TensorType type = builder.graph().type(input);
  if (!type.shape.ranked() || type.shape.rank() != 4 || !type.shape[1].fits(std::ssize(channels)))
    reading.xml.fail(node, "<pre-process> has {} channels for an input of {}", channels.size(),
                     to_string(type));
  if (type.element != ElementType::f32)
    reading.xml.fail(node, "<pre-process> of an input of {}, wanted f32", to_string(type));
  const bool image = !channels[0].child("mean").attribute("offset").empty();
  for (const auto channel : channels)
    if (image == channel.child("mean").attribute("offset").empty())
      reading.xml.fail(channel, "<pre-process> mixes values and images");
  Tensor means;
  if (image) {
    if (!type.shape[2].known() || !type.shape[3].known())
      reading.xml.fail(node, "a mean image for an input of {}", to_string(type));
    means = mean_image(reading, node, {type.shape[2].size(), type.shape[3].size()}, channels);
  } else {
    std::vector<float> values;
    for (const auto channel : channels) values.push_back(static_cast<float>(channel_mean(reading, channel)));
    means = Tensor::of({std::ssize(values), 1, 1}, values);
  }
  const ValueId constant = builder.graph().add_constant(std::move(means), "mean");
  builder.replace_output(index, 0, builder.graph().add(Subtract{}, {input, constant}, "minus_mean"));
}

}  // namespace lamina::ir
