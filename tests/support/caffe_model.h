#pragma once
/// Small Caffe networks written by tests: the structure is text, weights are messages made here.
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"
#include "lamina/tensor.h"
#include "tests/support/ir_text.h"

namespace lamina::testing {

/// How a BlobProto says its values and their shape: both Caffe's ages have.
enum class BlobStyle { packed, single, doubles, old_dims };
/// Bytes of a BlobProto.
std::string caffe_blob(const Tensor& tensor, BlobStyle style = BlobStyle::packed);

/// A caffemodel that grows.
class CaffeWeights {
 public:
  explicit CaffeWeights(bool old = false) : old_(old) {}  ///< `layers` of V1
  CaffeWeights& layer(std::string_view name, const std::vector<Tensor>& blobs,
                      BlobStyle style = BlobStyle::packed);
  CaffeWeights& raw_layer(std::string_view name, const std::vector<std::string>& blobs);
  const std::string& bytes() const { return bytes_; }

 private:
  bool old_;
  std::string bytes_;
};

/// `input: "x"` of that shape, then the text.
std::string caffe_net(const std::vector<std::int64_t>& shape, std::string_view layers);

Loaded read_caffe_text(std::string_view text, std::string_view weights = {});
/// Reads and interprets; one tensor per output.
std::vector<Tensor> run_caffe(std::string_view text, std::string_view weights,
                              const std::vector<Tensor>& inputs);
/// What reading throws; "" when it does not throw. Without the path of the structure, "net".
std::string caffe_refusal(std::string_view text, std::string_view weights = {});

}  // namespace lamina::testing
