/// The page about a rewriting: what is in it, that it is the same each time, and that it stays small.
#include "draw/rewrite_report.h"

#include <gtest/gtest.h>

#include "draw/report_list.h"
#include "graph/text.h"
#include "ops/operators.h"
#include "rewrite/exemptions.h"
#include "rules/optimize.h"

namespace lamina::rewrite_report_test {
namespace {

constexpr const char* kNetwork = R"(
graph "net" (x: f32[1,3,8,8], y: f32[2]) -> (m) {
  sources {
    0 "conv" "Conv"
    1 "scale" "Mul"
    2 "relu" "Relu"
    3 "drop" "Dropout"
    4 "pool" "MaxPool"
  }
  w = const f32[4,3,3,3] seed(1)
  s = const f32[4,1,1] {1,2,3,4}
  c: f32[1,4,8,8] = Convolution(x, w) pads_begin=[1,1] pads_end=[1,1] strides=[1,1] dilations=[1,1] @"conv" from [0]
  k = Multiply(c, s) @"scale" from [1]
  r = Relu(k) @"relu" from [2]
  d = Identity(r) @"drop" from [3]
  m = MaxPool(d) kernel=[2,2] strides=[2,2] pads_begin=[0,0] pads_end=[0,0] dilations=[1,1] @"pool" from [4]
}
)";

struct Rewritten {
  Graph before, after;
  Ledger ledger;
  RewriteAlbum album;
  explicit Rewritten(const std::string& text, RuleOptions options = {})
      : before(parse_graph(text, operators())), after(before) {
    options.observer = &album;
    optimize(after, options, ledger);
  }
  std::string page(std::vector<std::string> disable = {}, std::vector<std::string> exempt = {}) const {
    return to_html({.model = "net.onnx",
                    .format = "ONNX IR 8",
                    .before = before,
                    .after = after,
                    .ledger = ledger,
                    .album = album,
                    .disable = std::move(disable),
                    .exempt = std::move(exempt)});
  }
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

void expect_parts(const std::string& page, std::initializer_list<const char*> parts) {
  for (const auto* part : parts) EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(RewriteReport, ShowsEachRewriteBeforeAndAfter) {
  const Rewritten run(kNetwork);
  const auto page = run.page();
  EXPECT_EQ(count(page, "<figure>"), run.ledger.rewrites());
  expect_parts(page, {"net.onnx", "ONNX IR 8", "fuse-conv-simple", "layers of the file: ", "multiply-adds",
                      "5 operators \xE2\x86\x92", "input &quot;y&quot; is not used"});
  EXPECT_EQ(page, Rewritten(kNetwork).page());
  for (const char* outside : {"http://", "https://", "<script", "src="})
    EXPECT_EQ(count(page, outside), 0u) << outside;
}

TEST(RewriteReport, DrawingsShowMatchedNodesAndTheirNeighbours) {
  RuleOptions only;
  for (const auto& rule : all_rules())
    if (rule.name != "remove-identity") only.disable.push_back(rule.name);
  const Rewritten run(kNetwork, only);
  const auto* p = run.album.of(0);
  ASSERT_TRUE(p);
  EXPECT_EQ(run.album.of(1), nullptr);
  EXPECT_EQ(p->where, "");
  for (const char* name : {"data-name=\"relu\"", "data-name=\"pool\""}) {
    EXPECT_EQ(count(p->before.svg, name), 1u) << name;
    EXPECT_EQ(count(p->after.svg, name), 1u) << name;
  }
  EXPECT_EQ(count(p->before.svg, "data-name=\"drop\""), 1u);
  EXPECT_EQ(count(p->after.svg, "data-name=\"drop\""), 0u);
  EXPECT_EQ(count(p->before.svg, "data-f="), 2u);  // relu, drop, pool
  EXPECT_EQ(count(p->after.svg, "data-f="), 1u);
  EXPECT_EQ(count(p->before.svg, "data-name=\"conv\""), 0u);
}

TEST(RewriteReport, SaysWhatTheUserSwitchedOff) {
  RuleOptions options;
  options.disable = {"remove-identity"};
  options.exempt = {"conv", "nobody", in_any_part("el")};
  const auto page = Rewritten(kNetwork, options).page(options.disable, options.exempt);
  expect_parts(page, {"switched off: remove-identity", "exempt by &quot;conv&quot;, left as they are: conv",
                      "exempt by &quot;el&quot;, left as they are: relu", "is exempt"});
  EXPECT_EQ(count(page, "nobody"), 0u);  // a warning
}

TEST(RewriteReport, BodiesOfControlFlowAreSeen) {
  const Rewritten run(R"(
graph (c: boolean[], x: f32[2]) -> (y) {
  y = If(c, x) @"choice" {
    body graph (a: f32[2]) -> (d) {
      b = Relu(a) @"first"
      d = Relu(b) @"second"
    }
    body graph (a: f32[2]) -> (d) {
      d = Exp(a)
    }
  }
}
)");
  expect_parts(run.page(), {"in a body of 'choice'"});
}

/// Thousands of rewrites, with names as long as files may have them.
TEST(RewriteReport, StaysSmallAndSaysHowManyThereAreMore) {
  const std::string name(2000, 'n');
  std::string text = "graph (x: f32[2]) -> (y5000) {\n y0 = Exp(x)\n";
  for (int i = 1; i <= 5000; ++i)
    text +=
        fmt::format(" z{0} = Identity(y{1}) @\"{2}{0}\"\n y{0} = Exp(z{0}) @\"{2}e{0}\"\n", i, i - 1, name);
  const Rewritten run(text + "}\n");
  ASSERT_GT(run.ledger.rewrites(), 5000u);
  const auto page = run.page();
  EXPECT_LT(page.size(), std::size_t{5'000'000});
  EXPECT_GT(count(page, "<figure>"), 50u);
  expect_parts(page, {"and 4880 more", "more</li>"});
}

TEST(ReportList, RefusalsThatDifferInNamesAreOne) {
  std::vector<LedgerEntry> all(4);
  all[0].text = "the result of 'a' is also read by 'b'";
  all[1].text = "the result of 'c' is also read by 'd'";
  all[2].text = "'c' is exempt";
  all[3].text = "the result of 'e' is also read by 'f'";
  std::vector<const LedgerEntry*> entries;
  for (const auto& e : all) entries.push_back(&e);
  const auto groups = grouped(entries);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].entries.size(), 3u);
  EXPECT_EQ(groups[0].reason, "the result of '\xE2\x80\xA6' is also read by '\xE2\x80\xA6'");
  EXPECT_EQ(groups[1].reason, "'c' is exempt");
}

}  // namespace
}  // namespace lamina::rewrite_report_test
