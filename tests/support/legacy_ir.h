#pragma once
/// Small IR files of the versions 2 to 7, as text: layers with sizes at their ports, and weights in blobs.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/ir_text.h"

namespace lamina::testing {

/// What lies in a layer's <blobs>; `precision` is that of the bytes.
struct Blob {
  std::string name;
  std::string bytes;
  std::string precision = "FP32";
};
Blob blob(const std::string& name, const std::vector<float>& values);
Blob half_blob(const std::string& name, const std::vector<float>& values);

class LegacyIr {
 public:
  explicit LegacyIr(int version) : version(version) {}

  int version;
  std::string bin;
  std::string precision = "FP32";  ///< of layers, or from version 7 on of their ports
  std::string net_attributes = "batch=\"1\"";
  std::string sections;  ///< behind the edges

  int input(const std::string& name, const Dims& dims, const std::string& precision = {});
  int constant(const Dims& dims, const std::vector<float>& values);
  int constant(const Dims& dims, const std::vector<std::int32_t>& values);
  /// `data` is what <data> says; `inside` is more XML below <layer>.
  int layer(const std::string& type, const std::string& data, const std::vector<From>& inputs,
            const std::vector<Dims>& outputs, const std::vector<Blob>& blobs = {},
            const std::string& inside = {});
  /// An input port of the layer that no edge leads to.
  static constexpr From kFree{-1, -1};
  std::vector<Dims> free_dims;  ///< sizes of such ports, in order

  std::string body() const { return "<layers>" + layers_ + "</layers><edges>" + edges_ + "</edges>"; }
  std::string text() const;
  std::string write(const TemporaryFolder& folder) const;
  const std::string& name(int layer) const { return names_.at(static_cast<std::size_t>(layer)); }

 private:
  std::string port(std::size_t id, const Dims& dims, bool output) const;
  std::string stored(const Blob& blob);
  int add(const std::string& name, const std::string& type, const std::string& inside,
          const std::vector<Dims>& outputs, std::size_t first_output);

  std::size_t next_free_ = 0;
  std::vector<std::string> names_;
  std::vector<std::vector<Dims>> outputs_;
  std::vector<std::size_t> first_output_;
  std::string layers_, edges_;
};

Loaded read(const LegacyIr& ir, const ReadSettings& settings = {});
std::vector<Tensor> run(const LegacyIr& ir, const std::vector<Tensor>& inputs);
std::string refusal(const LegacyIr& ir);

/// A network of one input and one layer with one output; its output on these values.
struct OneLayer {
  std::string type, data;
  Dims in;
  std::vector<float> x;
  Dims out;
  std::vector<Blob> blobs = {};
  Tensor run(int version) const;
  std::vector<float> values(int version) const { return testing::values(run(version)); }
  std::string refusal(int version) const;
  /// Its output when it is read with another shape of the input.
  Tensor reshaped(int version, const Tensor& input) const;
  LegacyIr ir(int version) const;
};

/// The first output of a layer of several f32 inputs.
Tensor of_inputs(int version, const std::string& type, const std::string& data,
                 const std::vector<Tensor>& inputs, const Dims& out, const std::vector<Blob>& blobs = {});

/// first, first + 1, ...
std::vector<float> counted(std::size_t n, float first = 1);
/// That an error's text has this part.
void expect_part(const std::string& what, const std::string& part);

}  // namespace lamina::testing
