// Rules of libraries: what their text means, where they fire and where they do not, what is said of it.
#include <gtest/gtest.h>

#include "api/inside.h"
#include "extension/extensions.h"
#include "rules/extension_rules.h"
#include "rules/rule_text.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;

struct Texts {
  const char *pattern, *replacement;
  std::int32_t stage = LAMINA_BEFORE_FUSING;
  lamina_status (*accepts)(const lamina_match*) = nullptr;
};

/// A library with an activation (test.rules.Squash, x / (1 + slope * |x|)) and this rule, called "test-rule".
std::string library_with(const Texts& texts) {
  static Texts now;
  static int number = 0;
  static const lamina_host* host;
  now = texts;
  const auto name = "rules-" + std::to_string(++number);
  add_linked_extension(name, [](const lamina_host* given, lamina_registrar* registrar) {
    host = given;
    static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
    static const lamina_attribute slope{sizeof(slope), "slope", "", LAMINA_FLOAT, 0, nullptr};
    lamina_operation op{};
    op.struct_size = sizeof(op);
    op.domain = "test.rules";
    op.type = "Squash";
    op.in = op.out = &port;
    op.inputs = op.outputs = 1;
    op.attribute = &slope;
    op.attributes = 1;
    op.create = [](const lamina_node* node, void** instance) {
      auto* const made = new double;
      *instance = made;
      return host->get_float(node->context, "slope", made);
    };
    op.destroy = [](void* instance) { delete static_cast<double*>(instance); };
    op.elementwise = [](const void* instance, const float* in, float* out, std::size_t count) {
      const auto s = static_cast<float>(*static_cast<const double*>(instance));
      for (std::size_t i = 0; i < count; ++i) out[i] = in[i] / (1 + s * std::abs(in[i]));
    };
    const lamina_rule rule{sizeof(rule), "test-rule",     "of the tests", now.stage, 0,
                           now.pattern,  now.replacement, now.accepts};
    return host->add_operation(registrar, &op) | host->add_rule(registrar, &rule);
  });
  return name;
}

/// x / (1 + c * |x|), c being 2.
IrText squash(bool read_twice = false) {
  IrText ir;
  const int x = ir.parameter("x", "4");
  const int size = ir.layer("Abs", "opset1", "", {{x}});
  const int scaled = ir.layer("Multiply", "opset1", "", {{size}, {ir.constant("1", Values{2})}});
  const int more = ir.layer("Add", "opset1", "", {{ir.constant("1", Values{1})}, {scaled}});
  ir.result({ir.layer("Divide", "opset1", R"(auto_broadcast="numpy" m_pythondiv="true")", {{x}, {more}})});
  if (read_twice) ir.result({more});
  return ir;
}

constexpr Texts kSquash{"a = Abs(x); b = Multiply(a, const c); d = Add(b, 1)\ny = Divide(x, d)",
                        "y = test.rules.Squash(x) slope=$c"};

struct Result {
  Values values;
  std::size_t nodes, fired;
  std::vector<LedgerEntry> entries;
};
Result fired(const IrText& ir, const Texts& texts, const Options& options = {}) {
  const TemporaryFolder folder;
  const CompiledModel compiled(Model(ir.write(folder), {library_with(texts)}), options);
  Result r{values(compiled(floats({4}, {-2, -1, 0, 3}))), Inside::of(compiled).optimized().node_count(), 0,
           Inside::of(compiled).ledger().of_rule("test-rule")};
  for (const auto& f : compiled.fusions())
    if (f.rule == "test-rule") r.fired = f.count;
  return r;
}

const Values kWanted{-2.0F / 5, -1.0F / 3, 0, 3.0F / 7};

void expect_values(const Values& got) {
  ASSERT_EQ(got.size(), kWanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], kWanted[i], 1e-6);
}

TEST(Rules, PutALayerInThePlaceOfOthers) {
  const auto r = fired(squash(), kSquash);
  expect_values(r.values);
  EXPECT_EQ(r.fired, 1U);
  EXPECT_EQ(r.nodes, 1U);
}

TEST(Rules, AtEveryStage) {
  for (const auto stage : {LAMINA_BEFORE_FOLD, LAMINA_AFTER_FOLD, LAMINA_BEFORE_INT8, LAMINA_BEFORE_FUSING,
                           LAMINA_AFTER_FUSING}) {
    auto texts = kSquash;
    texts.stage = stage;
    const auto r = fired(squash(), texts);
    expect_values(r.values);
    EXPECT_EQ(r.fired, 1U) << stage;
  }
}

/// How often a library's rule fires on what is behind a product of x and the unit matrix.
std::size_t fired_behind_a_product(const char* pattern, std::int32_t stage,
                                   const std::function<int(IrText&, int)>& layers) {
  IrText ir;
  const int x = ir.parameter("x", "1,4");
  const int w = ir.constant("4,4", Values(16, 1));
  const int y = ir.layer("MatMul", "opset1", R"(transpose_a="false" transpose_b="false")", {{x}, {w}});
  ir.result({layers(ir, y)});
  const TemporaryFolder folder;
  const auto library = library_with({pattern, "y = test.rules.Squash(x) slope=1", stage});
  const CompiledModel compiled(Model(ir.write(folder), {library}));
  std::size_t count = 0;
  for (const auto& f : compiled.fusions())
    if (f.rule == "test-rule") count += f.count;
  return count;
}

TEST(Rules, OfLibrariesAreDoneBeforeOursOfTheNextSet) {
  const auto fires = fired_behind_a_product;
  const auto* square = "r = Relu(x); y = Multiply(r, r)";
  const auto squared = [](IrText& ir, int y) {
    const int r = ir.layer("ReLU", "opset1", "", {{y}});
    return ir.layer("Multiply", "opset1", R"(auto_broadcast="numpy")", {{r}, {r}});
  };
  EXPECT_EQ(fires(square, LAMINA_BEFORE_INT8, squared), 1U);
  EXPECT_EQ(fires(square, LAMINA_BEFORE_FUSING, squared), 1U);
  EXPECT_EQ(fires(square, LAMINA_AFTER_FUSING, squared), 0U);  // the product has taken the ReLU

  const auto* swish = "s = Sigmoid(x); m = Multiply(x, s); y = Tanh(m)";
  const auto spelled = [](IrText& ir, int y) {
    const int s = ir.layer("Sigmoid", "opset1", "", {{y}});
    const int m = ir.layer("Multiply", "opset1", R"(auto_broadcast="numpy")", {{y}, {s}});
    return ir.layer("Tanh", "opset1", "", {{m}});
  };
  EXPECT_EQ(fires(swish, LAMINA_AFTER_FOLD, spelled), 1U);
  EXPECT_EQ(fires(swish, LAMINA_BEFORE_INT8, spelled), 0U);  // that is a Swish by then

  const auto* power = "p = Power(x, 3); y = Sin(p)";
  const auto folded = [](IrText& ir, int y) {
    const int three = ir.layer("Negative", "opset1", "", {{ir.constant("1", Values{-3})}});
    const int p = ir.layer("Power", "opset1", R"(auto_broadcast="numpy")", {{y}, {three}});
    return ir.layer("Sin", "opset1", "", {{p}});
  };
  EXPECT_EQ(fires(power, LAMINA_BEFORE_FOLD, folded), 0U);
  EXPECT_EQ(fires(power, LAMINA_AFTER_FOLD, folded), 1U);

  const auto apart = [](IrText& ir, int y) {
    const int m = ir.layer("SoftMax", "opset1", R"(axis="1")", {{y}});
    return ir.layer("Sin", "opset1", "", {{ir.layer("Tanh", "opset1", "", {{m}})}});
  };
  EXPECT_EQ(fires("y = Tanh(x)", LAMINA_AFTER_FUSING, apart), 1U);  // before it joins the sine
}

TEST(Rules, CanBeLeftOut) {
  Options options;
  options.disable = {"test-rule"};
  EXPECT_EQ(fired(squash(), kSquash, options).fired, 0U);
  options.disable = {"all"};
  EXPECT_EQ(fired(squash(), kSquash, options).fired, 0U);
  options.disable = {"test-rle"};
  expect_error([&] { fired(squash(), kSquash, options); }, ErrorCode::bad_option,
               "did you mean \"test-rule\"?");
}

TEST(Rules, SayWhyTheyDoNotFire) {
  const auto r = fired(squash(true), kSquash);
  expect_values(r.values);
  EXPECT_EQ(r.fired, 0U);
  ASSERT_FALSE(r.entries.empty());
  EXPECT_NE(r.entries[0].text.find("is an output of the model"), std::string::npos) << r.entries[0].text;
}

TEST(Rules, OfWholeAttributesTakeWholeConstants) {
  const auto said = [](float constant) {
    IrText ir;
    const int x = ir.parameter("x", "4");
    ir.result({ir.layer("Multiply", "opset1", R"(auto_broadcast="numpy")",
                        {{x}, {ir.constant("1", Values{constant})}})});
    const auto r = fired(ir, {"y = Multiply(x, const c)", "y = Softmax(x) axis=$c", LAMINA_BEFORE_FOLD});
    return r.entries.empty() ? "" : r.entries[0].text;
  };
  EXPECT_NE(said(2.5F).find("2.5 is no whole number"), std::string::npos) << said(2.5F);
  EXPECT_NE(said(1e30F).find("is no whole number"), std::string::npos);
  EXPECT_NE(said(std::nanf("")).find("nan is no whole number"), std::string::npos);
  EXPECT_NE(said(0).find("Softmax"), std::string::npos) << said(0);
}

TEST(Rules, MayBeRefusedByTheLibrary) {
  auto texts = kSquash;
  texts.accepts = [](const lamina_match* match) -> lamina_status {
    for (std::size_t i = 0; i < match->values; ++i)
      if (std::string(match->names[i]) == "c" && match->value[i]->constant &&
          static_cast<const float*>(match->value[i]->constant->data)[0] == 2)
        throw std::runtime_error("two is too much");
    return LAMINA_OK;
  };
  Options options;
  options.disable = {"fuse-elementwise"};  // else the nodes go, and what was said of them
  const auto r = fired(squash(), texts, options);
  expect_values(r.values);
  EXPECT_EQ(r.fired, 0U);
  ASSERT_FALSE(r.entries.empty());
  EXPECT_NE(r.entries[0].text.find("two is too much"), std::string::npos) << r.entries[0].text;
}

TEST(Rules, NumbersAndAttributesMustFit) {
  auto other = kSquash;
  other.pattern = "a = Abs(x); b = Multiply(a, 3); d = Add(b, 1); y = Divide(x, d)";
  other.replacement = "y = test.rules.Squash(x) slope=3";
  EXPECT_EQ(fired(squash(), other).fired, 0U);
  other.pattern = "a = Abs(x); b = Multiply(a, 2); d = Add(b, 1); y = Divide(x, d) m_pythondiv=false";
  EXPECT_EQ(fired(squash(), other).fired, 0U);
  other.pattern = "a = Abs(x); b = Multiply(a, 2); d = Add(b, 1); y = Divide(x, d) m_pythondiv=true";
  other.replacement = "y = test.rules.Squash(x) slope=2";
  EXPECT_EQ(fired(squash(), other).fired, 1U);
}

TEST(Rules, ReplacementsMayBeOfOurOperators) {
  const Texts texts{"a = Abs(x); b = Multiply(a, const c); d = Add(b, 1); y = Divide(x, d)",
                    "a = Abs(x); s = Multiply(c, a); d = Add(s, 1); e = Power(d, -1); y = Multiply(x, e)",
                    LAMINA_BEFORE_FOLD};
  const auto r = fired(squash(), texts);
  expect_values(r.values);
  EXPECT_EQ(r.fired, 1U);
}

TEST(Rules, ThatWouldMakeAnotherTypeDoNotFire) {
  auto texts = kSquash;
  texts.replacement = "y = ShapeOf(x) output_type=i64";
  Options options;
  options.disable = {"fuse-elementwise"};
  const auto r = fired(squash(), texts, options);
  EXPECT_EQ(r.fired, 0U);
  ASSERT_FALSE(r.entries.empty());
  EXPECT_NE(r.entries[0].text.find("it would make i64[1] of f32[4]"), std::string::npos) << r.entries[0].text;
}

/// What the rule says of the model; empty: it fired.
std::string said(const IrText& ir, const Texts& texts) {
  const TemporaryFolder folder;
  const CompiledModel compiled(Model(ir.write(folder), {library_with(texts)}));
  for (const auto& e : Inside::of(compiled).ledger().of_rule("test-rule"))
    return e.kind == LedgerEntry::Kind::fired ? "" : e.text;
  return "nothing";
}

/// What a rule says about a layer whose inputs are f32[?,4].
std::string said_of_unknown_sizes(const char* layer, std::size_t inputs, const char* pattern,
                                  const char* replacement) {
  IrText ir;
  std::vector<From> from;
  for (std::size_t i = 0; i < inputs; ++i) from.push_back({ir.parameter("x" + std::to_string(i), "?,4")});
  ir.result({ir.layer(layer, "opset1", inputs > 1 ? R"(auto_broadcast="numpy")" : "", from)});
  return said(ir, {pattern, replacement});
}

TEST(Rules, FireWhereSizesAreNotKnownAndCertainlyTheSame) {
  const auto* squash = "y = test.rules.Squash(a) slope=1";
  const auto refused = said_of_unknown_sizes("Add", 2, "y = Add(a, b)", squash);
  EXPECT_NE(refused.find("of f32[?,4], which may be another size"), std::string::npos) << refused;
  EXPECT_EQ(said_of_unknown_sizes("Add", 2, "y = Add(a, b)", "y = Subtract(a, b)"), "");
  EXPECT_EQ(said_of_unknown_sizes("Sigmoid", 1, "y = Sigmoid(a)", squash), "");
}

/// Equal attributes do not make equal sizes of different inputs, nor do two unknown ones.
TEST(Rules, DoNotFireWhereSizesAreUnknownInTwoWays) {
  IrText ir;
  const int places = ir.layer("NonZero", "opset3", "", {{ir.parameter("x", "2,4")}});
  ir.result({ir.layer("Abs", "opset1", "", {{places}})});
  const auto* pattern = "b = NonZero(a); y = Abs(b)";
  EXPECT_EQ(said(ir, {pattern, "b = NonZero(a); y = Negative(b)"}), "");
  const auto other = said(ir, {pattern, "c = Abs(a); b = NonZero(c); y = Negative(b)"});
  EXPECT_NE(other.find("which may be another size"), std::string::npos) << other;
}

TEST(Rules, DoNotFireWhereALayerHasMoreInputsThanTheText) {
  IrText ir;
  const int x = ir.parameter("x", "4"), y = ir.parameter("y", "4");
  ir.result({ir.layer("Add", "opset1", R"(auto_broadcast="numpy")", {{x}, {y}})});
  const auto refused = said(ir, {"y = Add(a)", "y = test.rules.Squash(a) slope=1"});
  EXPECT_NE(refused.find("has 2 inputs, of which the pattern lists 1"), std::string::npos) << refused;
}

TEST(Rules, NumbersAreOfTheTypeBesideThem) {
  IrText integers;
  integers.result({integers.layer("Abs", "opset1", "", {{integers.parameter("x", "4", "i32")}})});
  EXPECT_EQ(said(integers, {"y = Abs(x)", "y = Maximum(x, 2)"}), "");
  EXPECT_NE(said(integers, {"y = Abs(x)", "y = Maximum(x, 2.7)"}).find("2.7 is no number of i32"),
            std::string::npos);
  EXPECT_EQ(said(integers, {"y = Abs(x)", "c = Less(x, 2); y = Select(c, x, 2)"}), "");
}

TEST(Rules, WindowsThatAreLeftOutAreOnes) {
  const auto fires = [](const char* strides, const std::string& wanted = "strides=[1,1]") {
    IrText ir;
    const int x = ir.parameter("x", "1,1,4,4");
    const int w = ir.constant("1,1,1,1", Values{1});
    const auto data = fmt::format(R"({} dilations="1,1" pads_begin="0,0" pads_end="0,0")", strides);
    ir.result({ir.layer("Convolution", "opset1", data, {{x}, {w}})});
    const auto pattern = "y = Convolution(x, const w) " + wanted;
    return said(ir, {pattern.c_str(), "y = Relu(x)"}).empty();
  };
  EXPECT_TRUE(fires(R"(strides="1,1")"));
  EXPECT_TRUE(fires(R"(strides="")"));
  EXPECT_FALSE(fires(R"(strides="2,2")"));
  EXPECT_FALSE(fires(R"(strides="1,1" auto_pad="same_upper")", "pads_begin=[0,0]"));
  EXPECT_TRUE(fires(R"(strides="1,1" auto_pad="valid")", "pads_begin=[0,0]"));
  EXPECT_FALSE(fires(R"(strides="")", "strides=[1,1,1]"));
}

TEST(Rules, OfLayersWithOthersFusedIntoThemSaySo) {
  IrText ir;
  const int x = ir.parameter("x", "1,4");
  const int w = ir.constant("4,4", Values(16, 1));
  const int y = ir.layer("MatMul", "opset1", R"(transpose_a="false" transpose_b="false")", {{x}, {w}});
  ir.result({ir.layer("ReLU", "opset1", "", {{y}})});
  const TemporaryFolder folder;
  const CompiledModel compiled(
      Model(ir.write(folder),
            {library_with({"y = MatMul(a, b)", "y = test.rules.Squash(a) slope=1", LAMINA_AFTER_FUSING})}));
  const auto all = Inside::of(compiled).ledger().of_rule("test-rule");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_NE(all[0].text.find("is MatMul+Relu by now"), std::string::npos) << all[0].text;
}

TEST(Rules, ThatDoNotEndAreLeftOutWithAWarning) {
  const Texts endless[] = {{"y = Abs(x)", "a = Abs(x); y = Abs(a)"},            // what it makes grows
                           {"y = Multiply(a, const c)", "y = Multiply(c, a)"},  // turns for ever
                           {"y = Abs(x)", "a = Abs(x); y = Add(a, 0)"}};        // lamina takes it back
  for (const auto& texts : endless)
    for (const auto stage : {LAMINA_BEFORE_FOLD, LAMINA_BEFORE_FUSING, LAMINA_AFTER_FUSING}) {
      auto staged = texts;
      staged.stage = stage;
      std::vector<std::string> warnings;
      Options options;
      options.disable = {"fuse-elementwise"};
      options.log = [&](LogLevel level, std::string_view text) {
        if (level == LogLevel::warning) warnings.emplace_back(text);
      };
      if (stage == LAMINA_BEFORE_FOLD && &texts == &endless[2])
        continue;  // it ends: nobody takes it back yet
      const TemporaryFolder folder;
      const auto name = library_with(staged);
      const CompiledModel compiled(Model(squash().write(folder), {name}), options);
      expect_values(values(compiled(floats({4}, {-2, -1, 0, 3}))));
      ASSERT_EQ(warnings.size(), 1U) << texts.pattern << " " << stage;
      EXPECT_NE(warnings[0].find("rule \"test-rule\" of " + name + " does not end: it fired "),
                std::string::npos)
          << warnings[0];
      const auto& impl = Inside::of(compiled);
      EXPECT_TRUE(impl.ledger().stopped().contains("test-rule"));
      EXPECT_TRUE(impl.ledger().of_rule("test-rule").empty());
      EXPECT_LE(impl.optimized().node_count(), 4U);
    }
}

TEST(Rules, TextsThatAreNoneAreRefusedWithTheirPlace) {
  const auto says = [](const char* pattern, const char* replacement, std::string_view text) {
    expect_error([&] { fired(squash(), Texts{pattern, replacement}); }, ErrorCode::bad_file, text);
  };
  says("y = Abz(x)", "y = Relu(x)", "did you mean \"Abs\"?");
  says("y = Abs(x", "y = Relu(x)", "wanted \")\"");
  says("y Abs(x)", "y = Relu(x)", "at character 3: wanted \"=\"");
  says("y = Abs(x)", "y = Relu(z)", "the pattern has no value \"z\"");
  says("y = Elu(x) alhpa=1", "y = Relu(x)", "alhpa");
  says("y = Elu(x) alpha=one", "y = Relu(x)", "alpha=one: is no value of it");
  says("y = Abs(x)", "y = Elu(x) alpha=$c", "the pattern has no \"c\"");
  says("", "y = Relu(x)", "has no pattern");
  says("y = Abs(_)", "y = Relu(x)", "is for replacements");
  says("y = Abs(x); y = Relu(x)", "y = Relu(x)", "\"y\" is made twice");
  says("y = Abs(y)", "y = Relu(y)", "\"y\" is read before it is made");
  says("a = Abs(y); y = Relu(a)", "y = Relu(a)", "\"y\" is read before it is made");
}

TEST(Rules, TextsOfEveryForm) {
  const auto all = parse_rule_text("a=Op_1(x,const c, -1.5 ,_) k=[1, 2] t=\"two words\"\n\n ;b = d.T()");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].arguments[1].name, "c");
  EXPECT_EQ(all[0].arguments[2].number, -1.5);
  EXPECT_EQ(all[0].attributes[0].second, "1, 2");
  EXPECT_EQ(all[0].attributes[1].second, "two words");
  EXPECT_EQ(all[1].op, "d.T");
}

}  // namespace
}  // namespace lamina::testing
