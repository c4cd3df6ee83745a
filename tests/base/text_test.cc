#include "base/text.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"

namespace lamina {
namespace {

std::string what(std::string_view text) { return Error(ErrorCode::bad_file, text).what(); }

TEST(OneLine, short_texts_stay) {
  const std::string text = "m.onnx: node \"a\" (Add): shapes [1,2] and [3], wanted equal ones";
  EXPECT_EQ(what(text), text);
  EXPECT_EQ(what(""), "");
}

TEST(OneLine, no_control_characters) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(what("a\nb\r\tc\x1b[31m"), "a b  c" + r + "[31m");
  EXPECT_EQ(what("\xc2\x9b[31m"), r + r + "[31m");  // a control character beyond ASCII
  EXPECT_EQ(what("abc\xe2\x80\xae"
                 "cba"),
            "abc" + r + r + r + "cba");  // would turn the rest of the line
  EXPECT_EQ(what("caf\xc3\xa9"), "caf\xc3\xa9");
}

TEST(OneLine, long_names_lose_their_middle) {
  const auto name = "conv_" + std::string(1 << 20, 'x') + "_end";
  const auto text = what("m.onnx: node \"" + name + "\" (Conv): 3 inputs, wanted 2");
  EXPECT_LE(text_length(text), 300u);
  EXPECT_TRUE(text.starts_with("m.onnx: node \"conv_xx")) << text;
  EXPECT_NE(text.find("(1048585 characters)"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("xx_end\" (Conv): 3 inputs, wanted 2")) << text;
}

TEST(OneLine, names_with_spaces_and_long_shapes) {
  std::string name, shape = "f32[1";
  for (int i = 0; i < 500; ++i) name += "word ", shape += ",123456";
  const auto text = what("input \"" + name + "\": " + shape + "], wanted f32[1,2]");
  EXPECT_LE(text_length(text), 300u);
  EXPECT_NE(text.find("(2500 characters)"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("wanted f32[1,2]")) << text;
}

TEST(OneLine, what_has_no_names_loses_its_middle) {
  std::string text = "begins";
  for (int i = 0; i < 1000; ++i) text += " word";
  const auto line = one_line(text + " ends");
  EXPECT_EQ(text_length(line), 300u);
  EXPECT_TRUE(line.starts_with("begins word") && line.ends_with("word ends")) << line;
  EXPECT_NE(line.find("(5011 characters)"), std::string::npos) << line;
}

TEST(OneLine, characters_are_never_cut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\xe2\x82\xac";
  const auto line = one_line(text);
  EXPECT_LE(text_length(line), 300u);
  EXPECT_EQ(line.find("\xEF\xBF\xBD"), std::string::npos);
  EXPECT_EQ(text_length(clipped(text, 50)), 50u);
  EXPECT_EQ(printable(clipped(text, 50)), clipped(text, 50));
}

TEST(OneLine, errors_inside_errors_stay_short) {
  std::string text(5000, 'y');
  for (int i = 0; i < 20; ++i) text = what("node \"" + std::string(200, 'n') + "\": " + text);
  EXPECT_LE(text_length(text), 300u);
}

TEST(OneLine, the_path_in_front_is_whole) {
  std::string path;
  for (int i = 0; i < 10; ++i) path += "/folder " + std::string(90, 'f');
  const auto line = one_line(path + "/m.onnx: damaged: " + std::string(5000, 'x'));
  EXPECT_TRUE(line.starts_with(path + "/m.onnx: ")) << line;
  EXPECT_LE(text_length(line), path.size() + 320);
  EXPECT_TRUE(one_line("--output " + path + ": wanted a file").starts_with("--output " + path + ": "));
  // What is no path is none, however it begins.
  EXPECT_LE(text_length(one_line("node \"" + path + "\": " + path)), 300u);
  EXPECT_LE(text_length(one_line(std::string(5000, '/') + ": x")), 300u);
}

TEST(OneLine, messages_of_the_log) {
  std::string line;
  Logger([&](LogLevel, std::string_view text) { line = text; }).warning("a\n{}", std::string(1000, 'x'));
  EXPECT_LE(text_length(line), 300u);
  EXPECT_TRUE(line.starts_with("a x"));
}

TEST(Nearest, swaps_count_once) {
  const std::vector<std::string> options{"--input", "--inputs", "-h", "--help", "--top"};
  EXPECT_EQ(nearest_name("--inptus", options), "--inputs");
  EXPECT_EQ(nearest_name("--inptu", options), "--input");
  EXPECT_EQ(nearest_name("-hlep", options), "--help");
  EXPECT_EQ(nearest_name("--INPUT", options), "--input");
}

TEST(Nearest, nothing_where_nothing_is_near) {
  const std::vector<std::string> options{"-h", "-o", "--help", "--seed"};
  EXPECT_EQ(nearest_name("-m", options), "");
  EXPECT_EQ(nearest_name("--threads", options), "");
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'h'), options), "");
  EXPECT_EQ(nearest_name("", options), "");
  EXPECT_EQ(did_you_mean("-m", options), "");
  EXPECT_EQ(did_you_mean("--sede", options), ", did you mean \"--seed\"?");
}

}  // namespace
}  // namespace lamina
