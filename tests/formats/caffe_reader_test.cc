// Caffe networks as files: which layers count, what blobs and outputs are called, where weights come from,
// and how all of that may be spelled.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "tests/support/caffe_model.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing::caffe_reader_test {
namespace {

Strings outputs(const std::string& text, std::string_view weights = {}) {
  Strings names;
  const auto loaded = read_caffe_text(text, weights);
  for (const auto& r : loaded.graph.results()) names.push_back(r.name);
  return names;
}

Strings inputs(const std::string& text) {
  Strings names;
  const auto loaded = read_caffe_text(text);
  for (const auto v : loaded.graph.inputs())
    names.push_back(loaded.graph.value(v).name + to_string(loaded.graph.type(v).shape));
  return names;
}

std::string layer(const std::string& name, const std::string& type, const std::string& bottom,
                  const std::string& top, const std::string& rest = {}) {
  return "layer { name: '" + name + "' type: '" + type + "' bottom: '" + bottom + "' top: '" + top + "' " +
         rest + " }\n";
}

const std::string kRelu = layer("r", "ReLU", "x", "y");

TEST(CaffeNet, Inputs) {
  const Strings wanted{"x[1,3,8,8]"};
  EXPECT_EQ(inputs("input: 'x' input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8 " + kRelu), wanted);
  EXPECT_EQ(inputs("input: 'x' input_shape { dim: [1, 3, 8, 8] } " + kRelu), wanted);
  EXPECT_EQ(inputs("layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 3 dim: 8 "
                   "dim: 8 } } }" +
                   kRelu),
            wanted);
  EXPECT_EQ(inputs("layer { name: 'in' type: 'Input' top: 'x' top: 'z' input_param { shape: { dim: 2 } } }" +
                   kRelu),
            (Strings{"x[2]", "z[2]"}));
  EXPECT_EQ(inputs("input: 'x' input_shape { dim: -1 dim: 3 }" + kRelu), Strings{"x[?,3]"});
  EXPECT_EQ(inputs("input: 'x'" + kRelu), Strings{"x[...]"});
  EXPECT_NE(caffe_refusal("input: 'x' input_dim: 1 input_dim: 2" + kRelu), "");
  EXPECT_NE(caffe_refusal("input: 'x' input: 'x'" + kRelu), "");
}

TEST(CaffeNet, InputsThatNothingReadsStay) {
  EXPECT_EQ(inputs("input: 'x' input: 'z' input_shape { dim: 1 } input_shape { dim: 2 }" + kRelu),
            (Strings{"x[1]", "z[2]"}));
}

TEST(CaffeNet, OutputsAreWhatNothingReads) {
  EXPECT_EQ(outputs(caffe_net({1}, kRelu)), Strings{"y"});
  EXPECT_EQ(outputs(caffe_net({1}, kRelu + layer("s", "Sigmoid", "y", "z") + layer("t", "TanH", "x", "w"))),
            (Strings{"z", "w"}));
  EXPECT_EQ(outputs(caffe_net({1}, kRelu + layer("s", "Sigmoid", "y", "z") +
                                       "layer { name: 'q' type: 'Silence' bottom: 'z' }" +
                                       layer("t", "TanH", "x", "w"))),
            Strings{"w"});
  EXPECT_EQ(caffe_refusal(caffe_net({1}, kRelu + "layer { name: 'q' type: 'Silence' bottom: 'y' }")),
            " no layer makes a result");
}

TEST(CaffeNet, LayersInPlaceGoByTheOrderOfTheFile) {
  const auto text = caffe_net({2}, layer("c", "Power", "x", "c", "power_param { shift: -1 }") +
                                       layer("before", "Power", "c", "before", "power_param { scale: 2 }") +
                                       layer("r", "ReLU", "c", "c") +
                                       layer("after", "Power", "c", "after", "power_param { scale: 3 }"));
  EXPECT_EQ(outputs(text), (Strings{"before", "after"}));
  const auto y = run_caffe(text, {}, {floats({2}, {-4, 2})});
  EXPECT_EQ(values(y[0]), (std::vector<float>{-10, 2}));
  EXPECT_EQ(values(y[1]), (std::vector<float>{0, 3}));
  // Blob c and layer c: the name is that of the layer's own result, what comes behind has that of its layer.
  const auto g = read_caffe_text(text).graph;
  EXPECT_TRUE(g.node(g.producer(g.find_value("r"))).op.info().name == "Relu");
  EXPECT_TRUE(g.node(g.producer(g.find_value("c"))).op.info().name == "Add");
}

TEST(CaffeNet, OutputsInPlace) {
  EXPECT_EQ(outputs(caffe_net(
                {1}, layer("conv1", "Power", "x", "conv1") + layer("relu1", "ReLU", "conv1", "conv1"))),
            Strings{"relu1"});
  EXPECT_EQ(
      outputs(caffe_net({1}, layer("conv1", "Power", "x", "blob") + layer("relu1", "ReLU", "blob", "blob"))),
      Strings{"blob"});
  EXPECT_EQ(outputs(caffe_net({1}, layer("relu1", "ReLU", "x", "x"))), Strings{"relu1"});
}

TEST(CaffeNet, SourcesAreTheLayersOfTheFile) {
  const auto g =
      read_caffe_text(caffe_net({2}, layer("p", "Power", "x", "y", "power_param { scale: 2 shift: 1 }")))
          .graph;
  ASSERT_EQ(g.sources.size(), 1u);
  EXPECT_EQ(g.sources[0].name, "p");
  EXPECT_EQ(g.sources[0].type, "Power");
  for (std::uint32_t n = 0; n < g.node_slots(); ++n) EXPECT_EQ(g.node({n}).sources.size(), 1u);
}

TEST(CaffeNet, PhasesLevelsAndStages) {
  const auto with = [&](const std::string& rules) {
    return outputs(caffe_net({1}, kRelu + layer("s", "Sigmoid", "x", "z", rules))).size() == 2;
  };
  EXPECT_TRUE(with(""));
  EXPECT_TRUE(with("include { phase: TEST }"));
  EXPECT_FALSE(with("include { phase: TRAIN }"));
  EXPECT_FALSE(with("exclude { phase: TEST }"));
  EXPECT_TRUE(with("exclude { phase: TRAIN }"));
  EXPECT_TRUE(with("include { phase: TRAIN } include { phase: 1 }"));
  EXPECT_FALSE(with("include { stage: 'deploy' }"));
  EXPECT_TRUE(with("include { not_stage: 'deploy' }"));
  EXPECT_FALSE(with("include { min_level: 1 }"));
  EXPECT_TRUE(with("include { max_level: 1 min_level: 0 }"));
  EXPECT_FALSE(with("exclude { }"));
  EXPECT_TRUE(with("phase: TRAIN"));
  EXPECT_TRUE(outputs("state { stage: 'deploy' level: 2 }" +
                      caffe_net({1}, kRelu + layer("s", "Sigmoid", "x", "z",
                                                   "include { stage: 'deploy' min_level: 2 }")))
                  .size() == 2);
}

TEST(CaffeNet, TrainingFiles) {
  const std::string text =
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN } transform_param { "
      "crop_size: 6 } }"
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' include { phase: TEST } transform_param { "
      "crop_size: 8 } }"
      "layer { name: 'odd' type: 'Unheard' bottom: 'data' top: 'odd' include { phase: TRAIN } }" +
      layer("r", "ReLU", "data", "fc") + layer("f", "Flatten", "label", "flat_label") +
      "layer { name: 'acc' type: 'Accuracy' bottom: 'fc' bottom: 'flat_label' top: 'acc' include { phase: "
      "TEST } }"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc' bottom: 'label' top: 'loss' }";
  EXPECT_EQ(inputs(text), Strings{"data[?,?,8,8]"});
  EXPECT_EQ(outputs(text), Strings{"fc"});
  const auto with_probabilities =
      "layer { name: 'data' type: 'MemoryData' top: 'x' top: 'label' memory_data_param { batch_size: 2 "
      "channels: 3 height: 4 width: 5 } }"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'label' top: 'loss' top: 'prob' }";
  EXPECT_EQ(inputs(with_probabilities), Strings{"x[2,3,4,5]"});
  EXPECT_EQ(outputs(with_probabilities), Strings{"prob"});
}

TEST(CaffeNet, FilesForTrainingAlone) {
  const std::string text =
      "layer { name: 'd' type: 'Data' top: 'x' top: 'label' include { phase: TRAIN } transform_param { "
      "crop_size: 9 } }" +
      kRelu + "layer { name: 'l' type: 'MultiBoxLoss' bottom: 'y' bottom: 'label' top: 'l' }";
  EXPECT_EQ(inputs(text), Strings{"x[?,?,9,9]"});
  EXPECT_EQ(outputs(text), Strings{"y"});
}

TEST(CaffeNet, LayersThatMakeNothing) {
  const std::string data = "layer { name: 'd' type: 'ImageSegData' top: 'x' top: 'label' }";
  EXPECT_EQ(outputs(data + kRelu + "layer { name: 'w' type: 'MatWrite' bottom: 'y' }"), Strings{"y"});
  const auto loaded = read_caffe_text(
      data + kRelu + "layer { name: 'a' type: 'SegAccuracy' bottom: 'y' bottom: 'label' top: 'a' }");
  EXPECT_TRUE(loaded.unsupported.empty());
  EXPECT_EQ(loaded.graph.results().at(0).name, "y");
}

TEST(CaffeNet, LabelsThatOtherLayersRead) {
  EXPECT_EQ(inputs("layer { name: 'd' type: 'HDF5Data' top: 'x' top: 'z' }" +
                   layer("e", "Eltwise", "x", "y", "bottom: 'z'")),
            (Strings{"x[...]", "z[...]"}));
}

TEST(CaffeNet, OldLayers) {
  const std::string text =
      "input: 'x' input_dim: [1, 2, 3, 3]"
      "layers { name: 'c' type: CONVOLUTION bottom: 'x' top: 'c' blobs_lr: 1 convolution_param { "
      "num_output: 1 kernel_size: 3 } }"
      "layers { bottom: 'c' top: 'c' name: 'r' type: 18 }"
      "layers { bottom: 'c' top: 'p' name: 'p' type: SOFTMAX_LOSS }"
      "layers { bottom: 'c' top: 's' name: 's' type: SIGMOID }";
  const auto w = floats({1, 2, 3, 3}, std::vector<float>(18, 1)), b = floats({1}, {.5f});
  const auto x = floats({1, 2, 3, 3}, std::vector<float>(18, -.1f));
  EXPECT_EQ(read_caffe_text(text, CaffeWeights(true).layer("c", {w, b}).bytes()).version, "V1");
  for (const bool old : {false, true})
    for (const auto style : {BlobStyle::packed, BlobStyle::single, BlobStyle::doubles, BlobStyle::old_dims}) {
      const auto y = run_caffe(text, CaffeWeights(old).layer("c", {w, b}, style).bytes(), {x});
      ASSERT_EQ(y.size(), 1u);
      EXPECT_FLOAT_EQ(values(y[0])[0], .5f);
    }
}

TEST(CaffeNet, WeightsGoByName) {
  const auto text = caffe_net(
      {1, 2},
      layer("a", "InnerProduct", "x", "a", "inner_product_param { num_output: 1 bias_term: false }") +
          layer("b", "InnerProduct", "a", "b", "inner_product_param { num_output: 1 bias_term: false }"));
  CaffeWeights weights;
  weights.layer("b", {floats({1, 1}, {10})})
      .layer("lost", {floats({1}, {1})})
      .layer("a", {floats({1, 2}, {1, 2})});
  weights.layer("a", {floats({1, 2}, {5, 5})});  // the first of a name counts
  EXPECT_EQ(values(run_caffe(text, weights.bytes(), {floats({1, 2}, {1, 1})})[0])[0], 30);
}

TEST(CaffeNet, SaysWhichWeightsAreMissing) {
  const auto text =
      caffe_net({1, 2}, "\n" + layer("a", "InnerProduct", "x", "a", "inner_product_param { num_output: 1 }"));
  const std::string where = "3: layer \"a\" (InnerProduct): ";
  EXPECT_EQ(caffe_refusal(text), where + "needs weights, but none were given with the model in memory");
  EXPECT_EQ(caffe_refusal(text, CaffeWeights().layer("b", {}).bytes()),
            where + "needs weights, but weights has no layer of that name");
  EXPECT_EQ(caffe_refusal(text, CaffeWeights().layer("a", {floats({1, 2}, {1, 2})}).bytes()),
            where + "has 1 blobs in weights, wanted 2");
  EXPECT_EQ(caffe_refusal(
                text, CaffeWeights().layer("a", {floats({1, 2}, {1, 2}), floats({3}, {1, 2, 3})}).bytes()),
            where + "blob 1 has 3 values, wanted 1 for the shape [1]");
}

TEST(CaffeNet, TwoFilesAreOneModel) {
  const TemporaryFolder folder;
  const auto text = caffe_net(
      {1, 2}, layer("a", "InnerProduct", "x", "a", "inner_product_param { num_output: 1 bias_term: false }"));
  const auto weights = CaffeWeights().layer("a", {floats({1, 2}, {3, 4})}).bytes();
  const auto structure = folder.file("net.prototxt"), blobs = folder.file("net.caffemodel"),
             apart = folder.file("other.bin");
  write_file(structure, text);
  try {
    read_file(structure);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()),
              structure + ":2: layer \"a\" (InnerProduct): needs weights, but there is no " + blobs);
  }
  write_file(apart, weights);
  EXPECT_EQ(read(FileSource(structure, apart)).format, ModelFormat::caffe);
  write_file(blobs, weights);
  EXPECT_EQ(read_file(structure).graph.results().size(), 1u);
  EXPECT_EQ(read_file(blobs).graph.results().size(), 1u);
  EXPECT_EQ(read(FileSource(apart, structure)).format, ModelFormat::caffe);
  write_file(folder.file("alone.caffemodel"), weights);
  try {
    read_file(folder.file("alone.caffemodel"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), folder.file("alone.caffemodel") +
                                         ": has weights only, wanted the network's structure in " +
                                         folder.file("alone.prototxt"));
  }
  write_file(blobs, text);
  try {
    read_file(structure);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), blobs + ": is a text, wanted a caffemodel");
  }
}

TEST(CaffeNet, Spellings) {
  const std::vector<std::string> same{
      "input:\"x\"input_shape{dim:1 "
      "dim:4}layer{name:\"p\"type:\"Power\"bottom:\"x\"top:\"y\"power_param{scale:2}}",
      "# a comment\r\nname: 'n' # more\r\ninput: 'x'\r\ninput_shape: <dim: [1, 4]>;\r\nlayer <name: 'p', "
      "type: 'Po' 'wer'; bottom: "
      "\"x\" top: 'y' power_param: { scale: 2. }>\r\n",
      "input: 'x' input_shape { dim: 0x1 dim: 04 } unknown { a: [1, 2] b { c: 'd' } } force_backward: true "
      "layer { name: 'p' "
      "type: 'P\\x6fwer' bottom: 'x' top: 'y' propagate_down: t power_param { scale: 20e-1f odd: 1 } param { "
      "lr_mult: 0 } }"};
  for (const auto& text : same) {
    const auto y = run_caffe(text, {}, {floats({1, 4}, {1, 2, 3, 4})});
    EXPECT_EQ(values(y.at(0)), (std::vector<float>{2, 4, 6, 8})) << text;
  }
}

TEST(CaffeNet, UnknownAndForeignLayersAreListed) {
  const auto loaded = read_caffe_text(caffe_net(
      {1, 2, 4, 4}, layer("u", "Unheard", "x", "u") +
                        layer("p", "Pooling", "u", "p", "pooling_param { kernel_size: 2 }") +
                        layer("v", "Unheard", "p", "v") +
                        layer("s", "Pooling", "x", "s", "pooling_param { pool: STOCHASTIC kernel_size: 2 }") +
                        layer("y", "Python", "x", "z", "python_param { module: 'm' layer: 'L' }")));
  ASSERT_EQ(loaded.unsupported.size(), 3u);
  EXPECT_EQ(loaded.unsupported[0].type, "Unheard");
  EXPECT_EQ(loaded.unsupported[0].nodes, (Strings{"u", "v"}));
  EXPECT_EQ(loaded.unsupported[1].reason, "stochastic pooling");
  EXPECT_EQ(loaded.unsupported[2].reason, "it is Python code: layer L of module m");
  EXPECT_EQ(loaded.graph.results().size(), 3u);
}

TEST(CaffeNet, SaysWhatIsWrongWhere) {
  const auto at2 = [](const std::string& layers) { return caffe_refusal(caffe_net({1, 2}, "\n" + layers)); };
  EXPECT_EQ(caffe_refusal("name: 'n'"), " has no layer, wanted a Caffe network");
  EXPECT_EQ(at2(layer("r", "ReLU", "xx1", "y")),
            "3: layer \"r\" (ReLU): reads \"xx1\", which no layer makes");
  EXPECT_EQ(at2(layer("r", "ReLU", "later", "y") + layer("s", "ReLU", "x", "later")),
            "3: layer \"r\" (ReLU): reads \"later\", which no layer before it makes, but a later one");
  EXPECT_EQ(at2(kRelu + layer("s", "TanH", "x", "y")),
            "4: layer \"s\" (TanH): makes \"y\", which is there already");
  EXPECT_EQ(at2(layer("r", "ReLU", "x", "y", "top: 'z'")),
            "3: layer \"r\" (ReLU): has 2 tops, wanted at most 1");
  EXPECT_EQ(at2("layer { name: 'r' type: 'ReLU' top: 'y' }"),
            "3: layer \"r\" (ReLU): has 0 bottoms, wanted 1");
  EXPECT_EQ(at2("layer { name: 'r' bottom: 'x' top: 'y' }"), "3: layer \"r\" has no type");
  EXPECT_EQ(at2("layer { name: 'r' type: 'ReLU' bottom: 7 top: 'y' }"),
            "3: \"bottom\" is 7, wanted a string in quotes");
  EXPECT_EQ(
      at2("layer {\n name: 'r' type: 'ReLU'\nbottom: 'x' top: 'y' relu_param { negative_slope: much } }"),
      "5: \"negative_slope\" is much, wanted a number");
  EXPECT_EQ(at2("layers { layer { name: 'c' type: 'conv' } bottom: 'x' top: 'y' }"),
            "3: a layer in a layer: the format of before 2014 (V0), which is not supported");
}

}  // namespace
}  // namespace lamina::testing::caffe_reader_test
