/// The functions that list what is there.
#include "lamina/listings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lamina/lamina.h"
#include "tests/support/onnx_model.h"

namespace lamina {
namespace {

using nlohmann::json;
using testing::OnnxGraph;
using testing::TemporaryFolder;

/// y = x + 1, of which z is not used.
std::string small_model() {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n", "3"}).input("z", ElementType::f32, {"2"}).output("y");
  Tensor one(ElementType::f32, {1});
  one.data<float>()[0] = 1;
  g.initializer("one", one).node("Add", {"x", "one"}, {"y"});
  return onnx_model(g);
}

const json* named(const json& list, const std::string& name) {
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const json& row) { return row.at("name") == name; });
  return at == list.end() ? nullptr : &*at;
}

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::internal;
}

TEST(Listings, the_build) {
  const auto j = json::parse(describe_build());
  EXPECT_EQ("lamina " + j.at("lamina").get<std::string>(), version());
  EXPECT_GE(j.at("threads").get<int>(), 1);
  EXPECT_LE(j.at("threads"), j.at("processors"));
  EXPECT_TRUE(j.at("machine").contains("caches_kib"));
}

TEST(Listings, operators) {
  const auto j = json::parse(list_operators());
  const auto* convolution = named(j.at("operators"), "Convolution");
  ASSERT_TRUE(convolution);
  EXPECT_NE(convolution->at("kernels").get<std::string>().find("onednn"), std::string::npos);
  const auto& onnx = j.at("onnx");
  EXPECT_NE(std::find(onnx.begin(), onnx.end(), "Conv"), onnx.end());
  EXPECT_TRUE(j.at("extensions").empty());
  EXPECT_EQ(code_of([] { (void)list_operators({"none.so"}); }), ErrorCode::bad_file);
}

TEST(Listings, rules) {
  const auto j = json::parse(list_rules());
  EXPECT_TRUE(named(j.at("rules"), "fuse-elementwise") || j.at("rules").size() > 50);
  for (const auto& rule : j.at("rules")) EXPECT_NE(rule.at("doc"), "");
  EXPECT_EQ(code_of([] { (void)list_rules({"none.so"}); }), ErrorCode::bad_file);
}

TEST(Listings, settings) {
  Options options;
  options.threads = 1;
  const auto text = list_settings(options);
  const auto j = json::parse(text);
  EXPECT_EQ(j.at("properties").at("INFERENCE_NUM_THREADS").at("value"), "1");
  EXPECT_EQ(j.at("streams").size(), 1u);
  std::vector<std::string> keys, order;
  for (const auto& p : properties(options)) keys.push_back(p.key);
  const auto listing = nlohmann::ordered_json::parse(text);
  for (const auto& [key, value] : listing.at("properties").items()) order.push_back(key);
  EXPECT_EQ(order, keys);
  EXPECT_EQ(code_of([] { (void)list_settings({}, "/no/such/folder"); }), ErrorCode::bad_file);
}

TEST(Listings, a_model) {
  const auto bytes = small_model();
  const auto model = Model::from_memory({.model = std::as_bytes(std::span(bytes)), .name = "net"});
  const auto j = json::parse(describe_model(model));
  EXPECT_EQ(j.at("model"), "net");
  EXPECT_EQ(j.at("format"), "ONNX");
  EXPECT_EQ(j.at("inputs").at(0).at("text"), "f32[n,3]");
  EXPECT_EQ(j.at("operators"), json::parse(R"({"Add": 1})"));
  EXPECT_EQ(j.at("unused"), json::parse(R"(["input \"z\" is not used"])"));
}

TEST(Listings, a_folder_of_compiled_models) {
  const TemporaryFolder folder;
  const auto cache = folder.file("cache"), path = folder.file("net.onnx");
  testing::write_file(path, small_model());
  Options options;
  options.set("CACHE_DIR", cache);
  const CompiledModel compiled(Model(path), options);
  const auto entries = json::parse(list_cache(cache)).at("entries");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].at("state"), "");
  EXPECT_EQ(json::parse(verify_cache(cache)),
            json::parse(R"({"entries": 1, "damaged": [], "unusable": []})"));
  const auto entry = std::filesystem::path(cache) / entries[0].at("name").get<std::string>();
  std::filesystem::resize_file(entry, std::filesystem::file_size(entry) - 8);
  const auto verified = json::parse(verify_cache(cache));
  EXPECT_EQ(verified.at("damaged").size(), 1u);
  EXPECT_EQ(verified.at("damaged"), verified.at("unusable"));
  const auto pruned = json::parse(prune_cache(cache, 0));
  EXPECT_EQ(pruned.at("removed").size(), 1u);
  EXPECT_EQ(pruned.at("trouble"), "");
  EXPECT_TRUE(json::parse(list_cache(cache)).at("entries").empty());
  EXPECT_EQ(code_of([&] { (void)list_cache(folder.file("none")); }), ErrorCode::bad_file);
}

}  // namespace
}  // namespace lamina
