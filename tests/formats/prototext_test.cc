// protobuf's text format: all that it may hold, and what is wrong in it, with its line.
#include "formats/prototext.h"

#include <gtest/gtest.h>

#include <random>

namespace lamina::testing {
namespace {

using Kind = ProtoText::Kind;

std::shared_ptr<const MappedFile> in_memory(std::string_view text) {
  const auto owner = std::make_shared<const std::string>(text);
  return MappedFile::in_memory("t", std::as_bytes(std::span(*owner)), owner);
}

/// The tree in one line: name=value, messages as name{...}, strings in quotes.
std::string tree(ProtoText::Message message) {
  std::string out;
  for (const auto field : message) {
    out += (out.empty() ? "" : " ") + std::string(field.name());
    if (field.is_message())
      out += "{" + tree(field.message()) + "}";
    else if (field.kind() == Kind::string)
      out += "='" + std::string(field.text()) + "'";
    else
      out += "=" + std::string(field.text());
  }
  return out;
}

std::string tree(std::string_view text) {
  const ProtoText file(in_memory(text));
  return tree(file.root());
}

std::string refusal(std::string_view text) {
  try {
    const ProtoText file(in_memory(text));
    return {};
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file);
    return e.what();
  }
}

/// The first field's value by `get`, or what that throws.
template <class Get>
std::string value(std::string_view text, Get get) {
  const ProtoText file(in_memory(text));
  try {
    return fmt::format("{}", get(*file.root().begin()));
  } catch (const Error& e) {
    return e.what();
  }
}
std::string integer(std::string_view text) {
  return value(text, [](auto f) { return f.integer(); });
}
std::string number(std::string_view text) {
  return value(text, [](auto f) { return f.number(); });
}
std::string boolean(std::string_view text) {
  return value(text, [](auto f) { return f.boolean(); });
}

TEST(ProtoText, FieldsAndMessages) {
  EXPECT_EQ(tree(""), "");
  EXPECT_EQ(tree("# nothing\n"), "");
  EXPECT_EQ(tree("name: \"n\" layer { type: 'ReLU' p { x: 1 } } z: MAX"),
            "name='n' layer{type='ReLU' p{x=1}} z=MAX");
  EXPECT_EQ(tree("a{b{}}c<d:1>e:{f:2}g:<h:3>"), "a{b{}} c{d=1} e{f=2} g{h=3}");
  EXPECT_EQ(tree("a:1 b:2,c:3;d{e:4},f{};g:5"), "a=1 b=2 c=3 d{e=4} f{} g=5");
  EXPECT_EQ(tree("a:1#one\r\nb:2\r\n\tc # two\n : # three\n 3"), "a=1 b=2 c=3");
  EXPECT_EQ(tree("\xef\xbb\xbf"
                 "a:1"),
            "a=1");
  EXPECT_EQ(tree("[x.y]: 1 [type.googleapis.com/p.T] { a: 2 } 17: 3"),
            "[x.y]=1 [type.googleapis.com/p.T]{a=2} 17=3");
}

TEST(ProtoText, Lists) {
  EXPECT_EQ(tree("a: [1, 2,3] b: [] c: 4"), "a=1 a=2 a=3 c=4");
  EXPECT_EQ(tree("a [ {b: 1}, <b: 2>, {} ]; c: ['x' 'y', \"z\"]"), "a{b=1} a{b=2} a{} c='xy' c='z'");
  EXPECT_EQ(tree("a { b: [{c: [1, 2]}, {c: [{}]}] } d: 1"), "a{b{c=1 c=2} b{c{}}} d=1");
}

TEST(ProtoText, Strings) {
  EXPECT_EQ(tree("a: \"it's\" b: 'say \"x\"'"), "a='it's' b='say \"x\"'");
  EXPECT_EQ(tree("a: 'one' # more\n \"two\"'three'"), "a='onetwothree'");
  EXPECT_EQ(tree(R"(a: "\n\t\\\"\'\?\101\x42\x4a\7x")"), "a='\n\t\\\"'?ABJ\ax'");
  EXPECT_EQ(tree(R"(a: "\u00e4\u20AC\U0001F600\ud83d\ude00")"),
            "a='\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xf0\x9f\x98\x80'");
  const ProtoText file(in_memory(R"(a: "\000\377\0")"));
  EXPECT_EQ((*file.root().begin()).string(), std::string_view("\0\xff\0", 3));
}

TEST(ProtoText, Numbers) {
  EXPECT_EQ(integer("a: 12"), "12");
  EXPECT_EQ(integer("a: -12"), "-12");
  EXPECT_EQ(integer("a: - # sign\n 12"), "-12");
  EXPECT_EQ(integer("a: 0x1F"), "31");
  EXPECT_EQ(integer("a: -0X1f"), "-31");
  EXPECT_EQ(integer("a: 017"), "15");
  EXPECT_EQ(integer("a: 0"), "0");
  EXPECT_EQ(integer("a: 9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(integer("a: -9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(integer("a: 9223372036854775808"),
            "t:1: \"a\" is 9223372036854775808, wanted a whole number of 64 bits");
  EXPECT_EQ(integer("a: 1.5"), "t:1: \"a\" is 1.5, wanted a whole number of 64 bits");
  EXPECT_EQ(integer("a: '1'"), "t:1: \"a\" is \"1\", wanted a whole number of 64 bits");
  EXPECT_EQ(integer("a {}"), "t:1: \"a\" is a message, wanted a whole number of 64 bits");
  EXPECT_EQ(number("a: 1."), "1");
  EXPECT_EQ(number("a: .5"), "0.5");
  EXPECT_EQ(number("a: -2e-2f"), "-0.02");
  EXPECT_EQ(number("a: 1F"), "1");
  EXPECT_EQ(number("a: 1e+3"), "1000");
  EXPECT_EQ(number("a: 7"), "7");
  EXPECT_EQ(number("a: -inf"), "-inf");
  EXPECT_EQ(number("a: Infinity"), "inf");
  EXPECT_EQ(number("a: nan"), "nan");
  EXPECT_EQ(number("a: 1e999"), "inf");
  EXPECT_EQ(number("a: 010"), "t:1: \"a\" is 010, wanted a decimal number");
  EXPECT_EQ(number("a: 0x10"), "t:1: \"a\" is 0x10, wanted a decimal number");
  EXPECT_EQ(number("a: MAX"), "t:1: \"a\" is MAX, wanted a number");
}

TEST(ProtoText, Booleans) {
  for (const auto* word : {"true", "True", "t", "1", "0x1"})
    EXPECT_EQ(boolean(std::string("a: ") + word), "true");
  for (const auto* word : {"false", "False", "f", "0"})
    EXPECT_EQ(boolean(std::string("a: ") + word), "false");
  EXPECT_EQ(boolean("a: yes"), "t:1: \"a\" is yes, wanted true or false");
  EXPECT_EQ(boolean("a: 2"), "t:1: \"a\" is 2, wanted true or false");
}

TEST(ProtoText, LooksUp) {
  const ProtoText file(in_memory("a: 1 b { a: 5 } a: 2\nc: 3"));
  EXPECT_EQ(file.root().find("a")->integer(), 2);
  EXPECT_EQ(file.root().all("a").size(), 2u);
  EXPECT_FALSE(file.root().find("d"));
  EXPECT_EQ(file.root().find("c")->line(), 2);
  EXPECT_TRUE(ProtoText::Message().empty());
}

TEST(ProtoText, SaysWhatIsWrongWhere) {
  EXPECT_EQ(refusal("a: 1\nb {\n c: 2\n"),
            "t:4: the file ends in the message \"b\" that line 2 begins, wanted \"}\"");
  EXPECT_EQ(refusal("a\n1"), "t:2: \"1\" behind \"a\", wanted \":\" or \"{\"");
  EXPECT_EQ(refusal("a: }"), "t:1: \"}\" as the value of \"a\", wanted a number, string or word");
  EXPECT_EQ(refusal("a {}}"), "t:1: \"}\", wanted a field's name");
  EXPECT_EQ(refusal("a { b: 1 >"), "t:1: \">\", wanted a field's name");
  EXPECT_EQ(refusal("a: 'x\n'"), "t:1: a string without its closing '");
  EXPECT_EQ(refusal("a: 'x"), "t:1: a string without its closing '");
  EXPECT_EQ(refusal("a: '\\q'"), "t:1: a string with the escape \\q, which there is not");
  EXPECT_EQ(refusal("a: '\\x'"), "t:1: a string with the escape \\x, wanted a hexadecimal digit behind it");
  EXPECT_EQ(refusal("a: '\\400'"), "t:1: a string with the escape \\400, wanted at most \\377");
  EXPECT_EQ(refusal("a: '\\u12'"),
            "t:1: a string with the escape \\u, wanted a character's number behind it");
  EXPECT_EQ(refusal("a: 1x"), "t:1: \"1x\" is no number");
  EXPECT_EQ(refusal("a: 1e"), "t:1: \"1e\" is no number");
  EXPECT_EQ(refusal("a: 0x"), "t:1: \"0x\" is no number");
  EXPECT_EQ(refusal("a: -b"), "t:1: \"-\" before \"b\", wanted a number");
  EXPECT_EQ(refusal("a: [1 2]"), "t:1: \"2\" in a list, wanted \",\" or \"]\"");
  EXPECT_EQ(refusal("a: [1,"),
            "t:1: the end of the file as the value of \"a\", wanted a number, string or word");
  EXPECT_EQ(refusal("[a b: 1"), "t:1: \":\" in a name in brackets, wanted \"]\"");
  EXPECT_EQ(refusal("a:1,,b:2"), "t:1: \",\", wanted a field's name");
}

TEST(ProtoText, DeepMessages) {
  const auto nested = [](std::size_t depth) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += i % 2 ? "a{" : "a:[<";
    for (std::size_t i = depth; i-- > 0;) text += i % 2 ? "}" : ">]";
    return text;
  };
  EXPECT_EQ(refusal(nested(ProtoText::kDeepest)), "");
  EXPECT_EQ(refusal(nested(ProtoText::kDeepest + 1)), "t:1: messages in messages more than 100 deep");
  EXPECT_EQ(refusal(std::string(1'000'000, '{')), "t:1: \"{\", wanted a field's name");
}

TEST(ProtoText, ManyNodesAndLongStrings) {
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text += fmt::format("node {{\n  name: \"n{}\"\n  op: \"Relu\"\n  input: \"n{}\"\n}}\n", i, i - 1);
  std::string bytes;
  for (int i = 0; i < 4'000'000; ++i) bytes += i % 4 ? "\\000" : "ab";
  text += "tensor_content: \"" + bytes + "\"";
  const ProtoText file(in_memory(text));
  std::size_t nodes = 0, last = 0;
  for (const auto field : file.root()) field.is_message() ? ++nodes : last = field.string().size();
  EXPECT_EQ(nodes, 100'000u);
  EXPECT_EQ(last, 5'000'000u);
  EXPECT_EQ(file.fields(), 400'001u);
}

TEST(ProtoText, DamagedTextsThrowOnly) {
  const std::string whole =
      "name: 'n' # c\nlayer { type: \"R\\x41\" p < x: [1, -2.5e3f, inf], y: [{}, {z: 0x1f}] > }; [a.b]: t";
  std::mt19937 random(20261126);
  for (std::size_t length = 0; length <= whole.size(); ++length) refusal(whole.substr(0, length));
  for (int round = 0; round < 5000; ++round) {
    auto text = whole;
    for (auto flips = 1 + random() % 4; flips > 0; --flips)
      text[random() % text.size()] = "{}<>[]:;,#'\"\\-.0x \n\0a"[random() % 21];
    refusal(text);
  }
}

TEST(ProtoText, IsToldByItsBeginning) {
  EXPECT_TRUE(looks_like_prototext("name: \"x\""));
  EXPECT_TRUE(looks_like_prototext("# Caffe\nlayer {"));
  EXPECT_TRUE(looks_like_prototext("node <"));
  EXPECT_FALSE(looks_like_prototext("<?xml"));
  EXPECT_FALSE(looks_like_prototext("\x08\x07\x12\x07pytorch"));
  EXPECT_FALSE(looks_like_prototext("\x0a\x04name:"));
  EXPECT_FALSE(looks_like_prototext("hello"));
  EXPECT_FALSE(looks_like_prototext(""));
}

}  // namespace
}  // namespace lamina::testing
