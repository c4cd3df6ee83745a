// What `lamina check` tries with custom layers, and what it finds; the process lives.
#include <gtest/gtest.h>

#include "api/inside.h"
#include "base/error.h"
#include "extension/conformance.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing {
namespace {

std::vector<ConformanceRow> rows_of(const IrText& ir, const std::string& name) {
  return check_extensions(Inside::of(model_with(ir, {name})).loaded().graph);
}

TEST(Conformance, FaultsAreFoundAndNamed) {
  const std::pair<const char*, const char*> all[] = {
    {"Fails", "the moon is full"},
    {"Throws", "no more paper"},
    {"ThrowsInt", "no std::exception"},
    {"ThrowsInLoop", "out of ink"},
    {"NaN", "writes NaN to output 0, element 16"},
    {"Overruns", "right behind the end of output 0"},
    {"Underruns", "before the beginning of output 0"},
    {"FarOff", "touches memory"},
    {"ForgetsLast", "leaves elements of output 0 as they were"},
    {"Counts", "output 0: gives other results when it is run again"},
    {"CountsElements", "elementwise: gives other results when it is run again"},
    {"WritesInput", "writes to input 0"},
    {"Thread", "starts threads of its own"},
    {"Rounding", "changes the rounding mode"},
    {"RoundingOfX87", "changes the rounding mode"},
    {"RoundingInLoop", "changes the rounding mode"},
    {"RoundingElements", "changes the rounding mode"},
    {"OverrunsElements", "writes behind the end of the output"},
    {"InfersAny", "infer: output 0 is f32[?] though all inputs are known"},
    {"AllocatesTwice", "output 0 has its memory already"},
    {"AllocatesAxes", "output 0 is [1,1], infer says [?]"},
    {"WantsTheWorld", "more than this machine's memory"},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    {"Leaks", "bytes of memory each time"},
#endif
    {"Aborts", "ended by signal 6"},
    {"Exits", "ended the process"},
    {"CreateThrows", "create: threw an exception: no clay"},
    {"AddsFirst", "in place of input 0"},
    {"ThinksPlain", "the reference gives"}
  };
  for (const auto& [type, text] : all) {
    IrText ir;
    ir.result({ir.layer(type, "test.faults", "", {{ir.parameter("x", "1,2,4,4")}})});
    std::string found;
    for (const auto& row : rows_of(ir, "faults.so")) {
      if (row.ok()) continue;
      found += row.problem;
      EXPECT_EQ(row.op, std::string("faults.so: test.faults:") + type);
    }
    EXPECT_NE(found.find(text), std::string::npos) << type << ": " << found;
  }
}

TEST(Conformance, WhatDoesNotEndIsEndedAndNamed) {
  for (const std::string type : {"Hangs", "HangsElements", "CreateHangs"}) {
    const auto begin = std::chrono::steady_clock::now();
    IrText ir;
    ir.result({ir.layer(type, "test.faults", "", {{ir.parameter("x", "1,2,4,4")}})});
    const auto graph = Inside::of(model_with(ir, {"faults.so"})).loaded().graph;
    const auto rows = check_extensions(graph, std::chrono::seconds(1));
    ASSERT_EQ(rows.size(), 2U) << type;
    EXPECT_TRUE(rows[0].ok()) << rows[0].problem;
    EXPECT_EQ(rows[1].op, "faults.so: test.faults:" + type);
    EXPECT_EQ(rows[1].problem, "did not end within 1 seconds");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60))
        << type;  // a hang is for ever
  }
  setenv("LAMINA_TEST_FAULT", "CreateHangs", 1);  // without a model it is created to see what it takes
  const auto rows = check_operations(*load_extension(library("faults.so")), std::chrono::seconds(1));
  unsetenv("LAMINA_TEST_FAULT");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].problem, "did not end within 1 seconds");
}

TEST(Conformance, SoundLayersAreClean) {
  IrText ir;
  const int x = ir.parameter("x", "2,6,3,5");
  const int w = ir.constant("6", std::vector<float>{1, 2, 3, 4, 5, 6});
  int y = ir.layer("Weigh", "test.ops", "", {{x}, {w}});
  y = ir.layer("Affine", "test.ops", R"(shift="1")", {{y}});
  y = ir.layer("Leak", "test.ops", "", {{y}});
  y = ir.layer("Twice", "test.ops", "", {{y}});
  y = ir.layer("Halve", "test.ops", "", {{y}});
  const int signs = ir.layer("Signs", "test.ops", "", {{y}}, 2);
  const int found = ir.layer("Positives", "test.ops", "", {{signs}}, 2);
  ir.result({found});
  const auto rows = rows_of(ir, "operations.so");
  for (const auto& row : rows) EXPECT_TRUE(row.ok()) << row.op << " " << row.tried << ": " << row.problem;
  const auto tried = [&](std::string_view text) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const auto& row) { return row.tried.find(text) != std::string::npos; });
  };
  for (const auto* text : {"inference", "reference", "channels_last", "blocked_8", "blocked_16",
                           "elementwise", "f32[0,6,3,5]", "f32[3,6,3,5]"})
    EXPECT_TRUE(tried(text)) << text;
}

TEST(Conformance, FoldedWeightsAreConstantsAndComputedOnesAreLeftOut) {
  IrText ir;
  const int w =
      ir.layer("Negative", "opset1", "", {{ir.constant("6", std::vector<float>{1, 2, 3, 4, 5, 6})}});
  ir.result({ir.layer("Weigh", "test.ops", "", {{ir.parameter("x", "2,6,3,5")}, {w}})});
  const auto rows = rows_of(ir, "operations.so");
  EXPECT_GE(rows.size(), 5U);
  for (const auto& row : rows) EXPECT_TRUE(row.ok() && !row.skipped) << row.tried << ": " << row.problem;
  IrText open;
  const int x = open.parameter("x", "2,6,3,5");
  open.result({open.layer("Weigh", "test.ops", "", {{x}, {open.parameter("w", "6")}})});
  const auto none = rows_of(open, "operations.so");
  ASSERT_EQ(none.size(), 1U);
  EXPECT_TRUE(none[0].ok() && none[0].skipped);
  EXPECT_EQ(none[0].tried, "input 1 \"weights\" is computed, wanted a constant");
}

/// Multiplies channels by weights that are no constant, and takes no more than two images.
int channels(const lamina_host* given, lamina_registrar* registrar) {
  static const lamina_host* host;
  host = given;
  static const lamina_port in[] = {{sizeof(in[0]), "x", "", 0, 0, nullptr},
                                   {sizeof(in[0]), "w", "", 0, 0, nullptr}};
  static const char* const samples[] = {"x=[2,6] w=[6]", nullptr};
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "test.channels";
  op.type = "Channels";
  op.in = in;
  op.inputs = 2;
  op.out = in;
  op.outputs = 1;
  op.samples = samples;
  op.run = [](const lamina_call* call) -> lamina_status {
    const auto &x = *call->in[0], &w = *call->in[1];
    if (x.dims[0] > 2) return host->fail(call->context, "wanted two images at most");
    for (std::uint64_t i = 0; i < x.elements; ++i)
      static_cast<float*>(call->out[0]->data)[i] =
          static_cast<const float*>(x.data)[i] * static_cast<const float*>(w.data)[i % x.dims[1]];
    return LAMINA_OK;
  };
  return host->add_operation(registrar, &op);
}

TEST(Conformance, OtherBatchesLeaveOtherInputsAloneAndMayBeRefused) {
  add_linked_extension("test-channels", channels);
  std::string tried;
  for (const auto& row : check_operations(*load_extension("test-channels"))) {
    EXPECT_TRUE(row.ok()) << row.tried << ": " << row.problem;
    tried += row.tried + "\n";
  }
  for (const auto* types : {"f32[0,6],f32[6]", "f32[1,6],f32[6]", "f32[2,6],f32[6]"})
    EXPECT_NE(tried.find(types), std::string::npos) << tried;
  EXPECT_EQ(tried.find("f32[3,6]"), std::string::npos) << tried;
}

/// The rows of one operation.
std::vector<ConformanceRow> rows_of(const std::vector<ConformanceRow>& all, const std::string& type) {
  std::vector<ConformanceRow> out;
  for (const auto& row : all)
    if (row.node == type) out.push_back(row);
  return out;
}

TEST(Conformance, LibrariesAreTriedWithoutAModel) {
  const auto rows = check_operations(*load_extension(library("operations.so")));
  for (const auto& row : rows) EXPECT_TRUE(row.ok()) << row.op << " " << row.tried << ": " << row.problem;
  for (const auto* type : {"Affine", "Leak", "Signs", "Positives", "Sum", "Halve", "HalveLater", "Attributes",
                           "Twice", "Weigh", "WeighLast", "WeighBlocks", "Even"}) {
    const auto own = rows_of(rows, type);
    EXPECT_GE(own.size(), 2U) << type;
    for (const auto& row : own) EXPECT_FALSE(row.skipped) << type;
  }
}

TEST(Conformance, SamplesOfALibrarySayWhatIsTried) {
  const auto rows = check_operations(*load_extension(library("keeps.so")));
  for (const auto& row : rows) EXPECT_TRUE(row.ok()) << row.op << " " << row.tried << ": " << row.problem;
  const auto tried = [&](const std::string& type, std::string_view text) {
    const auto own = rows_of(rows, type);
    return std::any_of(own.begin(), own.end(),
                       [&](const auto& row) { return row.tried.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(tried("Table", "f32[1,4,3]"));
  EXPECT_TRUE(tried("Table", "f32[2,3,2,2]"));
  EXPECT_TRUE(tried("Both", "f32[8],f32[8],f32[8]"));
  const auto counts = rows_of(rows, "Count");  // it says that it is not pure
  EXPECT_GE(counts.size(), 3U);
  for (const auto& row : counts)
    EXPECT_EQ(row.note.starts_with("results not compared"), row.tried != "inference") << row.tried;
  const auto without = rows_of(rows, "AddTensor");  // no tensor is made up for it
  ASSERT_EQ(without.size(), 1U);
  EXPECT_TRUE(without[0].skipped);
}

TEST(Conformance, FaultsOfALibraryAreFoundWithoutAModel) {
  setenv("LAMINA_TEST_FAULT", "Overruns", 1);
  const auto rows = check_operations(*load_extension(library("faults.so")));
  unsetenv("LAMINA_TEST_FAULT");
  ASSERT_TRUE(std::any_of(rows.begin(), rows.end(), [](const auto& row) {
    return row.problem.find("behind the end of output 0") != std::string::npos;
  }));
}

TEST(Conformance, SamplesThatAreWrongAreNamed) {
  static const char* text;
  add_linked_extension("test-samples", [](const lamina_host* host, lamina_registrar* registrar) {
    static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
    static const lamina_attribute a{sizeof(a), "n", "", LAMINA_INT, 0, "1"};
    static const char* samples[2];
    samples[0] = text;
    lamina_operation op{};
    op.struct_size = sizeof(op);
    op.domain = "d";
    op.type = "T";
    op.in = op.out = &port;
    op.inputs = op.outputs = 1;
    op.attribute = &a;
    op.attributes = 1;
    op.elementwise = [](const void*, const float* in, float* out, std::size_t count) {
      std::copy_n(in, count, out);
    };
    op.samples = samples;
    return host->add_operation(registrar, &op);
  });
  const auto says = [&](const char* sample, std::string_view wanted) {
    text = sample;
    const auto rows = check_operations(*load_extension("test-samples"));
    ASSERT_FALSE(rows.empty()) << sample;
    EXPECT_NE(rows[0].problem.find(wanted), std::string::npos) << sample << ": " << rows[0].problem;
  };
  says("x", "wanted NAME=VALUE");
  says("x=f33[2]", "wanted TYPE[SIZES](VALUES)");
  says("x=[2", "wanted TYPE[SIZES](VALUES)");
  says("x=[2](1,2,3)", "wanted TYPE[SIZES](VALUES)");
  says("x=[2] x=[2]", "x is given twice");
  says("x=[2] n=1.5", "n=1.5: wanted an integer");
  says("x=[2] m=1", "has no attribute \"m\"");
  says("x=i64[2]", "is i64, wanted f32");
  says("n=2", "");
  says("x=[2] n=2", "");
}

}  // namespace
}  // namespace lamina::testing
