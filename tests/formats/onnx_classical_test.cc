// ai.onnx.ml: what cannot be read says why in one line.
#include <gtest/gtest.h>

#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using Numbers = std::vector<std::int64_t>;
using List = std::vector<float>;

constexpr std::string_view kMl = "ai.onnx.ml";

/// Reads a model of one node of rows [?, 2]: what is unsupported, else the error.
std::string refused(std::string_view type, const Texts& attributes, int outputs = 1) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"?", "2"});
  const Texts names = outputs == 1 ? Texts{"y"} : Texts{"y", "z"};
  g.node(type, {"x"}, names, attributes, "the node", kMl);
  for (const auto& name : names) g.output(name);
  try {
    std::string text;
    for (const auto& u : read_onnx_bytes(onnx_model(g, 17)).unsupported) text += u.reason;
    return text;
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
}

void expect_says(const std::string& text, std::string_view wanted) {
  EXPECT_NE(text.find(wanted), std::string::npos) << text << "\nwanted: " << wanted;
}

/// x0 <= 0.5 ? 1 : 2, with some of its lists changed.
struct Tree {
  Numbers trees{0, 0, 0}, nodes{0, 1, 2}, features{1, 0, 0}, yes{1, 0, 0}, no{2, 0, 0}, ids{0, 0},
      voters{1, 2};
  Texts modes{"BRANCH_LEQ", "LEAF", "LEAF"};
  List values{0.5f, 0, 0}, weights{1, 2};

  Texts attributes(const std::string& of) const {
    return {attribute("nodes_treeids", trees),       attribute("nodes_nodeids", nodes),
            attribute("nodes_featureids", features), attribute("nodes_truenodeids", yes),
            attribute("nodes_falsenodeids", no),     attribute("nodes_modes", modes),
            attribute("nodes_values", values),       attribute(of + "_ids", ids),
            attribute(of + "_nodeids", voters),      attribute(of + "_treeids", Numbers(voters.size(), 0)),
            attribute(of + "_weights", weights)};
  }
};

std::string regressor(const Tree& tree, const Texts& more = {}) {
  auto all = tree.attributes("target");
  all.insert(all.end(), more.begin(), more.end());
  return refused("TreeEnsembleRegressor", all);
}

TEST(OnnxClassical, TreesThatAreRefused) {
  EXPECT_EQ(regressor({}), "");
  const auto with = [](auto change) {
    Tree t;
    change(t);
    return regressor(t);
  };
  expect_says(with([](Tree& t) { t.yes[0] = 0; }), "go in a circle");
  expect_says(with([](Tree& t) { t.yes[0] = 7; }), "a child is node 7 of tree 0, which there is not");
  expect_says(with([](Tree& t) { t.nodes[2] = 1; }), "node 1 of tree 0 occurs twice");
  expect_says(with([](Tree& t) { t.features[0] = 2; }), "asks for feature 2");
  expect_says(with([](Tree& t) { t.features[0] = -1; }), "asks for feature -1");
  expect_says(with([](Tree& t) { t.features[0] = INT64_MAX; }), "asks for feature");
  expect_says(with([](Tree& t) { t.values.pop_back(); }), "nodes_values has 2 elements, wanted 3");
  expect_says(with([](Tree& t) { t.trees.push_back(0); }), "nodes_treeids has 4 elements, wanted 3");
  expect_says(with([](Tree& t) { t.modes[0] = "BRANCH"; }), "the mode \"BRANCH\"");
  expect_says(with([](Tree& t) { t.modes.clear(); }), "has no nodes_modes");
  expect_says(with([](Tree& t) { t.ids[0] = 1; }), "votes for target 1, wanted 0..0");
  expect_says(with([](Tree& t) { t.ids[0] = -1; }), "votes for target -1");
  expect_says(with([](Tree& t) { t.voters[1] = 5; }), "what votes is node 5 of tree 0");
  expect_says(with([](Tree& t) { t.weights.push_back(1); }), "target_weights has 3 elements, wanted 2");
  expect_says(regressor({}, {attribute("n_targets", std::int64_t{1} << 40)}), "targets, wanted 1..");
  expect_says(regressor({}, {attribute("n_targets", 0)}), "has 0 targets");
  expect_says(regressor({}, {attribute("base_values", List{1, 2})}), "2 base values for 1 targets");
  expect_says(regressor({}, {attribute("aggregate_function", "MEAN")}), "aggregate_function is \"MEAN\"");
  expect_says(regressor({}, {attribute("post_transform", "EXP")}), "post_transform is \"EXP\"");
}

TEST(OnnxClassical, TreesOfOpset5ThatAreRefused) {
  const auto with = [](std::uint8_t mode, Numbers yes, Numbers leafs, Numbers roots, Numbers targets,
                       List members = {}) {
    Texts all{attribute("nodes_featureids", Numbers{0}),
              attribute("nodes_modes", Tensor::of<std::uint8_t>({1}, std::vector<std::uint8_t>{mode})),
              attribute("nodes_splits", Tensor::of<float>({1}, List{0})),
              attribute("nodes_truenodeids", yes),
              attribute("nodes_trueleafs", leafs),
              attribute("nodes_falsenodeids", Numbers{1}),
              attribute("nodes_falseleafs", Numbers{1}),
              attribute("tree_roots", roots),
              attribute("leaf_targetids", targets),
              attribute("leaf_weights", Tensor::of<float>({2}, List{1, 2}))};
    if (!members.empty())
      all.push_back(attribute("membership_values", Tensor::of<float>({std::ssize(members)}, members)));
    return refused("TreeEnsemble", all);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(with(0, {0}, {1}, {0}, {0, 0}), "");
  EXPECT_EQ(with(6, {0}, {1}, {0}, {0, 0}, {1, 2, nan}), "");
  expect_says(with(7, {0}, {1}, {0}, {0, 0}), "nodes_modes[0] is 7");
  expect_says(with(0, {0}, {0}, {0}, {0, 0}), "go in a circle");
  expect_says(with(0, {2}, {1}, {0}, {0, 0}), "a node's child is leaf 2, there are 2");
  expect_says(with(0, {-1}, {1}, {0}, {0, 0}), "has a child below 0");
  expect_says(with(0, {0}, {1}, {1}, {0, 0}), "a root is node 1");
  expect_says(with(0, {0}, {1}, {0}, {0, 1}), "votes for target 1");
  expect_says(with(0, {0}, {1}, {0}, {0}), "leaf_weights has 2 elements, wanted 1");
  expect_says(with(6, {0}, {1}, {0}, {0, 0}, {1, 2}), "fewer sets");
  expect_says(with(0, {0}, {1}, {0}, {0, 0}, {1, nan}), "more sets");
}

TEST(OnnxClassical, TextsAndMapsAreRefusedWithARemedy) {
  auto all = Tree{}.attributes("class");
  all.push_back(attribute("classlabels_strings", Texts{"cat", "dog"}));
  expect_says(refused("TreeEnsembleClassifier", all, 2), "export integer labels");
  expect_says(refused("LabelEncoder",
                      {attribute("keys_strings", Texts{"a"}), attribute("values_int64s", Numbers{1})}),
              "integer labels");
  expect_says(refused("OneHotEncoder", {attribute("cats_strings", Texts{"a"})}), "encode them as integers");
  expect_says(refused("CategoryMapper", {}), "integer labels");
  expect_says(refused("DictVectorizer", {}), "give the model rows of numbers");
}

TEST(OnnxClassical, ZipMapIsItsTensorAndSaysSo) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"?", "2"});
  g.node("ZipMap", {"x"}, {"y"}, {attribute("classlabels_int64s", Numbers{0, 1})}, "the node", kMl)
      .output("y");
  const auto loaded = read_onnx_bytes(onnx_model(g, 17));
  ASSERT_EQ(loaded.warnings.size(), 1u);
  expect_says(loaded.warnings[0], "'zipmap': False");
  EXPECT_TRUE(loaded.unsupported.empty());
}

TEST(OnnxClassical, ModelsWhoseNumbersDoNotFit) {
  const auto labels = attribute("classlabels_ints", Numbers{0, 1, 2});
  const auto coefficients = attribute("coefficients", List(6, 1));
  expect_says(refused("LinearRegressor", {attribute("coefficients", List(3, 1))}),
              "3 coefficients for 1 targets");
  expect_says(refused("LinearRegressor", {coefficients, attribute("targets", 4)}),
              "6 coefficients for 4 targets");
  expect_says(
      refused("LinearRegressor", {coefficients, attribute("targets", 3), attribute("intercepts", List{1})}),
      "1 intercepts for 3 targets");
  expect_says(refused("LinearClassifier", {coefficients, attribute("intercepts", List(3, 1))}, 2),
              "0 labels for 3");
  expect_says(refused("SVMRegressor", {attribute("n_supports", std::int64_t{1} << 40), coefficients,
                                       attribute("rho", List{1})}),
              "6 coefficients for");
  expect_says(refused("SVMClassifier",
                      {labels, attribute("vectors_per_class", Numbers{1, INT64_MAX, 1}), coefficients}, 2),
              "vectors_per_class has");
  expect_says(refused("SVMClassifier",
                      {labels, attribute("vectors_per_class", Numbers{1, 1, 1}), coefficients,
                       attribute("support_vectors", List(6, 1)), attribute("rho", List{1})},
                      2),
              "rho has 1 numbers for 3 pairs");
  expect_says(refused("Scaler", {attribute("offset", List(3, 1))}), "offset has 3 numbers for features of");
  expect_says(refused("Normalizer", {attribute("norm", "L3")}), "norm is \"L3\"");
  expect_says(refused("Imputer", {}), "is empty");
  expect_says(refused("FeatureVectorizer", {attribute("inputdimensions", Numbers{1, 2})}),
              "2 numbers for 1 inputs");
  expect_says(refused("FeatureVectorizer", {attribute("inputdimensions", Numbers{std::int64_t{1} << 50})}),
              "of such a size");
  expect_says(
      refused("LabelEncoder", {attribute("keys_floats", List{1, 2}), attribute("values_floats", List{1})}),
      "2 keys for 1 values");
}

}  // namespace
}  // namespace lamina::testing
