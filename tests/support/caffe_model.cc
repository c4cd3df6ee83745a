#include "tests/support/caffe_model.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "interpreter/interpreter.h"
#include "lamina/error.h"
#include "ops/eval.h"
#include "tests/support/kept_models.h"

namespace lamina::testing {
namespace {

using protozero::pbf_writer;

std::shared_ptr<const MappedFile> in_memory(const std::string& name, std::string_view bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return MappedFile::in_memory(name, std::as_bytes(std::span(*owner)), owner);
}

}  // namespace

std::string caffe_blob(const Tensor& tensor, BlobStyle style) {
  std::string bytes;
  pbf_writer out(bytes);
  const auto values = to_floats(tensor);
  if (style == BlobStyle::old_dims) {
    for (std::size_t i = 0; i < 4; ++i) {  // ones in front
      const auto missing = 4 - tensor.rank();
      out.add_int32(static_cast<std::uint32_t>(i + 1),
                    i < missing ? 1 : static_cast<std::int32_t>(tensor.shape()[i - missing]));
    }
  }
  if (style == BlobStyle::single)
    for (const float v : values) out.add_float(5, v);
  else if (style == BlobStyle::doubles)
    out.add_packed_double(8, values.begin(), values.end());
  else
    out.add_packed_float(5, values.begin(), values.end());
  if (style != BlobStyle::old_dims) {
    pbf_writer shape(out, 7);
    shape.add_packed_int64(1, tensor.shape().begin(), tensor.shape().end());
  }
  return bytes;
}

CaffeWeights& CaffeWeights::layer(std::string_view name, const std::vector<Tensor>& blobs, BlobStyle style) {
  std::vector<std::string> all;
  for (const auto& b : blobs) all.push_back(caffe_blob(b, style));
  return raw_layer(name, all);
}

CaffeWeights& CaffeWeights::raw_layer(std::string_view name, const std::vector<std::string>& blobs) {
  pbf_writer net(bytes_);
  pbf_writer layer(net, old_ ? 2 : 100);
  for (const auto& b : blobs) layer.add_message(old_ ? 6 : 7, b);
  layer.add_string(old_ ? 4 : 1, name.data(), name.size());
  return *this;
}

std::string caffe_net(const std::vector<std::int64_t>& shape, std::string_view layers) {
  std::string text = "input: 'x' input_shape {";
  for (const auto size : shape) text += fmt::format(" dim: {}", size);
  return text + " }\n" + std::string(layers);
}

Loaded read_caffe_text(std::string_view text, std::string_view weights) {
  auto loaded = read(
      MemorySource(in_memory("net", text), weights.empty() ? nullptr : in_memory("weights", weights), {}));
  keep_model("prototxt", text, "caffemodel", weights);
  return loaded;
}

std::vector<Tensor> run_caffe(std::string_view text, std::string_view weights,
                              const std::vector<Tensor>& inputs) {
  const auto loaded = read_caffe_text(text, weights);
  for (const auto& u : loaded.unsupported) ADD_FAILURE() << u.type << ": " << u.reason;
  return interpret(loaded.graph, inputs);
}

std::string caffe_refusal(std::string_view text, std::string_view weights) {
  try {
    read_caffe_text(text, weights);
    return {};
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file) << e.what();
    const std::string_view what = e.what();
    return std::string(what.starts_with("net:") ? what.substr(4) : what);
  }
}

}  // namespace lamina::testing
