#include "tests/support/ir_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>

#include "interpreter/interpreter.h"
#include "lamina/error.h"
#include "ops/eval.h"
#include "tests/support/kept_models.h"

namespace lamina::testing {

TemporaryFolder::TemporaryFolder() {
  static std::atomic<int> count = 0;
  const bool has_memory =
      std::filesystem::is_directory("/dev/shm");  // thousands of small files are slow on disks
  path_ = (has_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
          fmt::format("lamina_ir_{}_{}", getpid(), count++);
  std::filesystem::create_directories(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

int IrText::parameter(const std::string& name, const std::string& shape, const std::string& type) {
  layers_ += fmt::format(
      R"(<layer id="{}" name="{}" type="Parameter" version="opset1"><data shape="{}" element_type="{}"/>)"
      R"(<output><port id="0"/></output></layer>)",
      next_, name, shape, type);
  first_output_.push_back(0);
  return next_++;
}

int IrText::constant(const std::string& type, const std::string& shape, std::string_view data) {
  layers_ += fmt::format(
      R"(<layer id="{0}" name="const_{0}" type="Const" version="opset1">)"
      R"(<data element_type="{1}" shape="{2}" offset="{3}" size="{4}"/><output><port id="0"/></output></layer>)",
      next_, type, shape, bin.size(), data.size());
  bin += data;
  first_output_.push_back(0);
  return next_++;
}

int IrText::constant(const std::string& shape, const std::vector<float>& values) {
  return constant("f32", shape,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

int IrText::constant(const std::string& shape, const std::vector<std::int64_t>& values) {
  return constant("i64", shape,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t)});
}

int IrText::layer(const std::string& type, const std::string& version, const std::string& data,
                  const std::vector<From>& inputs, int outputs, const std::string& inside) {
  std::string ports;
  if (!inputs.empty()) ports += "<input>";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ports += fmt::format(R"(<port id="{}"/>)", i);
    const int port =
        inputs[i].port >= 0 ? inputs[i].port : first_output_.at(static_cast<std::size_t>(inputs[i].layer));
    edges_ += fmt::format(R"(<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>)",
                          inputs[i].layer, port, next_, i);
  }
  if (!inputs.empty()) ports += "</input>";
  if (outputs > 0) ports += "<output>";
  for (int i = 0; i < outputs; ++i)
    ports += fmt::format(R"(<port id="{}"/>)", inputs.size() + static_cast<std::size_t>(i));
  if (outputs > 0) ports += "</output>";
  layers_ +=
      fmt::format(R"(<layer id="{0}" name="{1}_{0}" type="{1}" version="{2}"><data {3}/>{4}{5}</layer>)",
                  next_, type, version, data, ports, inside);
  first_output_.push_back(static_cast<int>(inputs.size()));
  return next_++;
}

int IrText::result(From from) { return layer("Result", "opset1", "", {from}, 0); }

std::string IrText::text() const {
  return fmt::format("<?xml version=\"1.0\"?>\n<net name=\"test\" version=\"{}\">\n{}\n</net>\n", version,
                     body());
}

std::string IrText::write(const TemporaryFolder& folder) const {
  write_file(folder.file("model.xml"), text());
  write_file(folder.file("model.bin"), bin);
  return folder.file("model.xml");
}

IrText IrText::body_of_this() const {
  IrText out;
  out.version = version;
  out.bin = bin;
  return out;
}

Loaded read(const IrText& ir, const ReadSettings& settings) {
  const TemporaryFolder folder;
  auto loaded = read_ir(FileSource(ir.write(folder)), settings);
  keep_model("xml", ir.text(), "bin", ir.bin);
  return loaded;
}

std::vector<Tensor> run(const IrText& ir, const std::vector<Tensor>& inputs, const ReadSettings& settings) {
  return interpret(read(ir, settings).graph, inputs);
}

std::vector<Tensor> run_text(const std::string& xml, const std::vector<Tensor>& inputs) {
  const TemporaryFolder folder;
  write_file(folder.file("model.xml"), xml);
  return interpret(read_ir(folder.file("model.xml")).graph, inputs);
}

std::string refusal(const std::string& xml, std::string_view bin) {
  const TemporaryFolder folder;
  write_file(folder.file("model.xml"), xml);
  write_file(folder.file("model.bin"), bin);
  try {
    (void)read_ir(folder.file("model.xml"));
  } catch (const Error& error) {
    std::string what = error.what();
    for (std::size_t at; (at = what.find(folder.file(""))) != std::string::npos;)
      what.erase(at, folder.file("").size());
    return what;
  }
  return {};
}

Tensor floats(Dims shape, std::vector<float> values) { return Tensor::of(std::move(shape), values); }
Tensor integers(Dims shape, std::vector<std::int64_t> values) { return Tensor::of(std::move(shape), values); }
std::vector<float> values(const Tensor& tensor) { return to_floats(tensor); }

}  // namespace lamina::testing
