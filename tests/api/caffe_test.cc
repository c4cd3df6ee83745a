/// Models of two files, of which either may be asked for, through the public interface.
#include "tests/api/saved.h"
#include "tests/support/caffe_model.h"

namespace lamina {
namespace {

using namespace testing;

const std::string kText = caffe_net({1, 2},
                                    "layer { name: 'f' type: 'InnerProduct' bottom: 'x' top: 'y' "
                                    "inner_product_param { num_output: 1 bias_term: false } }");

std::string weights(float a, float b) { return CaffeWeights().layer("f", {floats({1, 2}, {a, b})}).bytes(); }

float result(const Model& model, const Options& options = {}) {
  return values(CompiledModel(model, options)(floats({1, 2}, {1, 1}))).at(0);
}

TEST_F(Saved, either_file_of_a_caffe_network_is_the_model) {
  const auto text = put("net.prototxt", kText), blobs = put("net.caffemodel", weights(3, 4));
  for (const auto& file : {text, blobs}) {
    const Model model(file);
    EXPECT_EQ(model.format(), "Caffe");
    EXPECT_EQ(result(model), 7);
  }
  const auto other = put("other", weights(5, 6));
  EXPECT_EQ(result(Model(text, {.weights = other})), 11);
  EXPECT_EQ(result(Model(other, {.weights = text})), 11);
}

TEST_F(Saved, a_caffe_network_in_memory) {
  const auto blobs = weights(3, 4);
  const auto bytes_of = [](const std::string& s) { return std::as_bytes(std::span(s)); };
  EXPECT_EQ(result(Model::from_memory({.model = bytes_of(kText), .weights = bytes_of(blobs)})), 7);
  EXPECT_EQ(result(Model::from_memory({.model = bytes_of(blobs), .weights = bytes_of(kText)})), 7);
}

TEST_F(Saved, weights_that_nobody_asks_for_are_noted) {
  const auto other = put("other", "");
  const Model model(put("m.onnx", network("2")), {.weights = other});
  EXPECT_EQ(model.warnings(),
            std::vector<std::string>{other + ": has no effect: the model asks for no such file"});
}

TEST_F(Saved, a_caffe_network_is_found_again_by_both_files) {
  const auto text = put("net.prototxt", kText);
  put("net.caffemodel", weights(3, 4));
  EXPECT_EQ(result(Model(text), cached()), 7);
  const auto is_loaded = [&] { return loaded(CompiledModel(Model(text), cached())); };
  EXPECT_TRUE(is_loaded());
  put("net.caffemodel", weights(5, 4));
  EXPECT_FALSE(is_loaded());
  EXPECT_EQ(result(Model(text), cached()), 9);
  EXPECT_TRUE(is_loaded());
}

}  // namespace
}  // namespace lamina
