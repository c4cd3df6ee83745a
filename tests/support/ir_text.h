#pragma once
/// Small IR files written by tests: layers are added by calls, the .xml and .bin end up in a folder of the
/// test's own.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"
#include "lamina/tensor.h"

namespace lamina::testing {

/// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void write_file(const std::string& path, std::string_view bytes);

/// An output of a layer: layer id and port id.
struct From {
  int layer = 0;
  int port = -1;  ///< -1: the layer's first output
};

/// The layers and edges of a network or a body.
class IrText {
 public:
  int version = 11;
  std::string bin;

  int parameter(const std::string& name, const std::string& shape, const std::string& type = "f32");
  /// `type` in its two spellings is written as given; the data go to the .bin.
  int constant(const std::string& type, const std::string& shape, std::string_view data);
  int constant(const std::string& shape, const std::vector<float>& values);
  int constant(const std::string& shape, const std::vector<std::int64_t>& values);
  /// A layer with `outputs` outputs; `inside` is more XML below <layer> (bodies and port maps).
  int layer(const std::string& type, const std::string& version, const std::string& data,
            const std::vector<From>& inputs, int outputs = 1, const std::string& inside = {});
  int result(From from);

  std::string body() const { return "<layers>" + layers_ + "</layers><edges>" + edges_ + "</edges>"; }
  std::string text() const;
  /// Writes model.xml and model.bin; returns the path of the former.
  std::string write(const TemporaryFolder& folder) const;
  /// The constants of a body go to the same .bin: begin with what is there.
  IrText body_of_this() const;

 private:
  int next_ = 0;
  std::vector<int> first_output_;  // port id by layer
  std::string layers_, edges_;
};

Loaded read(const IrText& ir, const ReadSettings& settings = {});
/// Reads and interprets.
std::vector<Tensor> run(const IrText& ir, const std::vector<Tensor>& inputs,
                        const ReadSettings& settings = {});
std::vector<Tensor> run_text(const std::string& xml, const std::vector<Tensor>& inputs);
/// What reading the text (and .bin) throws, without the path; "" when it does not throw.
std::string refusal(const std::string& xml, std::string_view bin = {});

Tensor floats(Dims shape, std::vector<float> values);
Tensor integers(Dims shape, std::vector<std::int64_t> values);
std::vector<float> values(const Tensor& tensor);

}  // namespace lamina::testing
