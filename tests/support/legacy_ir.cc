#include "tests/support/legacy_ir.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "tests/support/kept_models.h"

namespace lamina::testing {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

Blob blob(const std::string& name, const std::vector<float>& values) {
  return {name, bytes_of(values), "FP32"};
}

Blob half_blob(const std::string& name, const std::vector<float>& values) {
  const Tensor halves = convert(Tensor::of({std::ssize(values)}, values), ElementType::f16);
  return {name, {reinterpret_cast<const char*>(halves.raw()), halves.bytes()}, "FP16"};
}

std::string LegacyIr::port(std::size_t id, const Dims& dims, bool output) const {
  std::string text = fmt::format("<port id=\"{}\"", id);
  if (output && version >= 7 && !precision.empty()) text += fmt::format(" precision=\"{}\"", precision);
  text += ">";
  for (const auto dim : dims) text += fmt::format("<dim>{}</dim>", dim);
  return text + "</port>";
}

std::string LegacyIr::stored(const Blob& blob) {
  const std::string own = version >= 7 ? fmt::format(" precision=\"{}\"", blob.precision) : "";
  const std::string text =
      fmt::format("<{} offset=\"{}\" size=\"{}\"{}/>", blob.name, bin.size(), blob.bytes.size(), own);
  bin += blob.bytes;
  return text;
}

int LegacyIr::add(const std::string& name, const std::string& type, const std::string& inside,
                  const std::vector<Dims>& outputs, std::size_t first_output) {
  const std::string own =
      version < 7 && !precision.empty() ? fmt::format(" precision=\"{}\"", precision) : "";
  layers_ +=
      fmt::format("<layer id=\"{}\" name=\"{}\" type=\"{}\"{}>{}", names_.size(), name, type, own, inside);
  if (!outputs.empty()) layers_ += "<output>";
  for (std::size_t i = 0; i < outputs.size(); ++i) layers_ += port(first_output + i, outputs[i], true);
  if (!outputs.empty()) layers_ += "</output>";
  layers_ += "</layer>\n";
  names_.push_back(name);
  outputs_.push_back(outputs);
  first_output_.push_back(first_output);
  return static_cast<int>(names_.size()) - 1;
}

int LegacyIr::input(const std::string& name, const Dims& dims, const std::string& own) {
  const std::string usual = precision;
  if (!own.empty()) precision = own;
  const int id = add(name, "Input", "", {dims}, 0);
  precision = usual;
  return id;
}

int LegacyIr::constant(const Dims& dims, const std::vector<float>& values) {
  const std::string blobs = "<blobs>" + stored({"custom", bytes_of(values), "FP32"}) + "</blobs>";
  const std::string usual = precision;
  precision = "FP32";
  const int id = add(fmt::format("const_{}", names_.size()), "Const", blobs, {dims}, 1);
  precision = usual;
  return id;
}

int LegacyIr::constant(const Dims& dims, const std::vector<std::int32_t>& values) {
  const std::string blobs = "<blobs>" + stored({"custom", bytes_of(values), "I32"}) + "</blobs>";
  const std::string usual = precision;
  precision = "I32";
  const int id = add(fmt::format("const_{}", names_.size()), "Const", blobs, {dims}, 1);
  precision = usual;
  return id;
}

int LegacyIr::layer(const std::string& type, const std::string& data, const std::vector<From>& inputs,
                    const std::vector<Dims>& outputs, const std::vector<Blob>& blobs,
                    const std::string& inside) {
  std::string text = data.empty() ? "" : "<data " + data + "/>";
  if (!inputs.empty()) text += "<input>";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].layer < 0) {
      text += port(i, free_dims.at(next_free_++), false);
      continue;
    }
    const auto from = static_cast<std::size_t>(inputs[i].layer);
    const std::size_t output =
        inputs[i].port < 0 ? 0 : static_cast<std::size_t>(inputs[i].port) - first_output_.at(from);
    text += port(i, outputs_.at(from).at(output), false);
    edges_ += fmt::format("<edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>\n", from,
                          first_output_[from] + output, names_.size(), i);
  }
  if (!inputs.empty()) text += "</input>";
  if (!blobs.empty()) text += "<blobs>";
  for (const Blob& b : blobs) text += stored(b);
  if (!blobs.empty()) text += "</blobs>";
  // as the Model Optimizer numbers them: weights and biases count as inputs
  return add(fmt::format("{}_{}", type, names_.size()), type, text + inside, outputs,
             inputs.size() + blobs.size());
}

std::string LegacyIr::text() const {
  return fmt::format("<?xml version=\"1.0\" ?>\n<net {} name=\"test\" version=\"{}\">\n{}{}\n</net>\n",
                     net_attributes, version, body(), sections);
}

std::string LegacyIr::write(const TemporaryFolder& folder) const {
  write_file(folder.file("model.xml"), text());
  write_file(folder.file("model.bin"), bin);
  return folder.file("model.xml");
}

Loaded read(const LegacyIr& ir, const ReadSettings& settings) {
  const TemporaryFolder folder;
  auto loaded = read_ir(FileSource(ir.write(folder)), settings);
  keep_model("xml", ir.text(), "bin", ir.bin);
  return loaded;
}

std::vector<Tensor> run(const LegacyIr& ir, const std::vector<Tensor>& inputs) {
  return interpret(read(ir).graph, inputs);
}

std::string refusal(const LegacyIr& ir) { return refusal(ir.text(), ir.bin); }

LegacyIr OneLayer::ir(int version) const {
  LegacyIr ir(version);
  const int x = ir.input("x", in);
  ir.layer(type, data, {{x}}, {out}, blobs);
  return ir;
}

Tensor OneLayer::run(int version) const { return testing::run(ir(version), {floats(in, x)}).at(0); }

Tensor OneLayer::reshaped(int version, const Tensor& input) const {
  ReadSettings settings;
  settings.shapes["x"] = Shape::of(input.shape());
  return interpret(testing::read(ir(version), settings).graph, {input}).at(0);
}

std::string OneLayer::refusal(int version) const { return testing::refusal(ir(version)); }

Tensor of_inputs(int version, const std::string& type, const std::string& data,
                 const std::vector<Tensor>& inputs, const Dims& out, const std::vector<Blob>& blobs) {
  LegacyIr ir(version);
  std::vector<From> from;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    from.push_back({ir.input(fmt::format("x{}", i), inputs[i].shape())});
  ir.layer(type, data, from, {out}, blobs);
  return run(ir, inputs).at(0);
}

std::vector<float> counted(std::size_t n, float first) {
  std::vector<float> out(n);
  std::iota(out.begin(), out.end(), first);
  return out;
}

void expect_part(const std::string& what, const std::string& part) {
  EXPECT_NE(what.find(part), std::string::npos) << "wanted \"" << part << "\", got \"" << what << "\"";
}

}  // namespace lamina::testing
