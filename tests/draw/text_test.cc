#include "draw/text.h"
#include "base/table_text.h"

#include <gtest/gtest.h>

namespace lamina {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

TEST(Text, BrokenCharactersAreReplaced) {
  EXPECT_EQ(printable("plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x99\x82"),
            "plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x99\x82");
  const std::string r = kReplacement;
  EXPECT_EQ(printable(std::string("a\0b\x01\x7f", 5)), "a" + r + "b" + r + r);
  EXPECT_EQ(printable("\xff\xc3"), r + r);          // no beginning; cut off
  EXPECT_EQ(printable("\xc0\xaf"), r + r);          // longer than needed
  EXPECT_EQ(printable("\xed\xa0\x80"), r + r + r);  // a surrogate
  EXPECT_EQ(printable("\xef\xbf\xbf"), r + r + r);  // not allowed in XML
  EXPECT_EQ(printable("a\nb\tc"), "a b c");
  EXPECT_EQ(printable("a\nb\tc", true), "a\nb c");
}

TEST(Text, Escapes) {
  EXPECT_EQ(escape_xml("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
  EXPECT_EQ(quote_dot("a \"b\" \\ c\nd"), "\"a \\\"b\\\" \\\\ c\\nd\"");
}

TEST(Text, ShorteningKeepsBothEnds) {
  EXPECT_EQ(shortened("short", 10), "short");
  const auto s = shortened("model/encoder/layer.11/attention/query", 16);
  EXPECT_EQ(text_length(s), 16u);
  EXPECT_TRUE(s.starts_with("model"));
  EXPECT_TRUE(s.ends_with("query"));
  EXPECT_EQ(padded("abc", 5), "abc  ");
  EXPECT_EQ(text_length(padded("\xC3\xA4\xC3\xB6", 5)), 5u);
  EXPECT_LE(text_width(shortened_to_width("model/encoder/layer.11/attention/query", 80, 10), 10), 80);
}

TEST(Text, Wraps) {
  const std::vector<std::string> words{"one", "two", "three", "four", "five", "six"};
  EXPECT_EQ(wrapped(words, ", ", 1000, 10, 3), std::vector<std::string>{"one, two, three, four, five, six"});
  const auto lines = wrapped(words, ", ", 60, 10, 2);
  ASSERT_EQ(lines.size(), 2u);
  for (const auto& line : lines) EXPECT_LE(text_width(line, 10), 60);
  EXPECT_NE(lines[1].find("\xE2\x80\xA6"), std::string::npos);  // there is more
  EXPECT_TRUE(wrapped({}, ", ", 60, 10, 2).empty());
}

}  // namespace
}  // namespace lamina
