#include "rewrite/exemptions.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "ops/operators.h"

namespace lamina {
namespace {

Node named(const std::string& name, std::vector<SourceId> sources = {}) {
  Node n;
  n.name = name;
  n.sources = std::move(sources);
  return n;
}

bool covers(const std::string& pattern, const std::string& name) {
  return Exemptions({pattern}).covers(named(name), {});
}

TEST(Exemptions, names_and_expressions_for_the_whole_name) {
  EXPECT_TRUE(covers("conv1", "conv1"));
  EXPECT_TRUE(covers("conv.", "conv1"));
  EXPECT_FALSE(covers("conv", "conv1"));
  EXPECT_FALSE(covers("onv1", "conv1"));
  EXPECT_TRUE(covers("a|conv1", "conv1"));  // the whole of either
  EXPECT_FALSE(covers("conv|a", "conv1"));
  EXPECT_TRUE(covers("model/conv (1)", "model/conv (1)"));  // as it is, though it means something else
  EXPECT_TRUE(covers("\\Qa[0\\E", "a[0"));
  EXPECT_FALSE(covers(".*", ""));
  EXPECT_FALSE(Exemptions({}).covers(named("conv1"), {}));
}

TEST(Exemptions, an_expression_in_any_part_of_the_name) {
  EXPECT_TRUE(covers(in_any_part("on|x"), "conv1"));
  EXPECT_TRUE(covers(in_any_part("on|x"), "a\nx\nb"));
  EXPECT_TRUE(covers(in_any_part(""), "a"));
  EXPECT_TRUE(covers(in_any_part("^conv1$"), "conv1"));
  EXPECT_FALSE(covers(in_any_part("^on"), "conv1"));
  for (const std::string text : {"", "on|x", "(?s:.*)"}) {
    EXPECT_EQ(as_said(in_any_part(text)), text);
    EXPECT_EQ(as_said(text), text);
  }
}

TEST(Exemptions, names_are_bytes) {
  EXPECT_TRUE(covers(".*conv.*", "\xff\xfe conv \x80"));
  EXPECT_TRUE(covers("schicht_\xc3\xbc.*", "schicht_\xc3\xbc_1"));
}

TEST(Exemptions, layers_of_the_file_count) {
  const std::vector<Source> sources{{"one", "Relu"}, {"two", "Relu"}};
  const Exemptions exempt({"t.o"});
  EXPECT_FALSE(exempt.covers(named("fused", {SourceId{0}}), sources));
  EXPECT_TRUE(exempt.covers(named("fused", {SourceId{0}, SourceId{1}}), sources));
}

TEST(Exemptions, long_names_are_no_matter) {
  const std::string big(400'000, 'x');
  EXPECT_TRUE(covers(".*conv.*", big + "conv" + big));
  EXPECT_FALSE(covers(".*conv.*", big));
  EXPECT_TRUE(covers("(x|x)*", big));
  EXPECT_FALSE(covers("(x*)*y", big));
  EXPECT_TRUE(covers(big, big));
}

TEST(Exemptions, a_broken_expression_is_a_bad_option) {
  for (const std::string pattern : {"(", "a[", "*conv", "a{2,1}", "(?=a)b", "((a{999}){999}){999}"}) {
    try {
      Exemptions broken({"fine", pattern});
      FAIL() << pattern;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_option);
      EXPECT_NE(std::string(e.what()).find("exempt \"" + pattern + "\": no regular expression: "),
                std::string::npos)
          << e.what();
    }
  }
}

TEST(Exemptions, tells_which_fit_nothing) {
  const auto g = parse_graph(R"(graph (x: f32[2]) -> (y) {
  sources {
    0 "layer" "Relu"
  }
  a = Relu(x) @"first" from [0]
  y = Relu(a) @"second"
})",
                             operators());
  EXPECT_EQ(Exemptions({"fir.*", "second", "layer", "third", "sec"}).idle(g),
            (std::vector<std::string>{"third", "sec"}));
}

TEST(Exemptions, lists_what_is_covered_once_bodies_included) {
  const auto g = parse_graph(R"(graph (c: boolean[], x: f32[2]) -> (z) {
  y = If(c, x) @"choice" {
    body graph (a: f32[2]) -> (d) {
      b = Relu(a) @"one"
      d = Exp(b) @"one"
    }
    body graph (a: f32[2]) -> (d) {
      d = Exp(a) @"two"
    }
  }
  z = Relu(y) @"three"
})",
                             operators());
  EXPECT_EQ(exempt_names(Exemptions({"one|three|four"}), g), (std::vector<std::string>{"one", "three"}));
  EXPECT_TRUE(exempt_names(Exemptions({}), g).empty());
}

}  // namespace
}  // namespace lamina
