/// What lamina benchmark is made of: words of benchmark_app, percentiles, tables of counters, preprocessing.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "ops/eval.h"
#include "tests/api/small_models.h"
#include "tool/benchmark_app.h"
#include "tool/counter_report.h"
#include "tool/preprocessing.h"

namespace lamina::tool {
namespace {

using namespace lamina::testing;
using Words = std::vector<std::string>;

/// Without what only reports want.
Words translated(const Words& words) {
  auto out = translate_benchmark_app(words).words;
  std::erase_if(out, [](const std::string& w) { return w.starts_with("--written="); });
  return out;
}

TEST(BenchmarkApp, one_dash_or_two_space_or_equals) {
  const Words wanted{"--iterations", "10"};
  EXPECT_EQ(translated({"-niter", "10"}), wanted);
  EXPECT_EQ(translated({"--niter", "10"}), wanted);
  EXPECT_EQ(translated({"-niter=10"}), wanted);
  EXPECT_EQ(translated({"--number_iterations=10"}), wanted);
  EXPECT_EQ(translated({"-m", "x.onnx"}), (Words{"x.onnx", "--as-benchmark-app"}));
  EXPECT_EQ(translated({"x.onnx", "--seconds", "1"}), (Words{"x.onnx", "--seconds", "1"}));
}

TEST(BenchmarkApp, booleans) {
  EXPECT_EQ(translated({"-pc"}), Words{"--pc"});
  for (const auto* yes : {"true", "YES", "1"}) EXPECT_EQ(translated({"--pc", yes}), Words{"--pc"});
  for (const auto* no : {"false", "No", "0"}) EXPECT_EQ(translated({"-pc", no}), Words{});
  EXPECT_EQ(translated({"-pc", "x.onnx"}), (Words{"--pc", "x.onnx"}));
  EXPECT_EQ(translated({"-inference_only", "false"}), (Words{"--inference-only", "false"}));
  EXPECT_THROW(translated({"-pc=perhaps"}), UsageError);
}

TEST(BenchmarkApp, settings) {
  EXPECT_EQ(translated({"-pin", "HYBRID_AWARE"}), (Words{"--set", "CPU_BIND_THREAD=YES"}));
  EXPECT_EQ(translated({"-pin=numa"}), (Words{"--set", "CPU_BIND_THREAD=NUMA"}));
  EXPECT_EQ(translated({"-infer_precision", "CPU:bf16"}), (Words{"--set", "INFERENCE_PRECISION_HINT=bf16"}));
  EXPECT_EQ(translated({"-enforcebf16=false"}), (Words{"--set", "ENFORCE_BF16=NO"}));
  EXPECT_EQ(translated({"-nstreams", "CPU:4"}), (Words{"--streams", "4"}));
  EXPECT_EQ(translated({"-report_folder", "CPU:1"}), (Words{"--report-folder", "CPU:1"}));
  EXPECT_EQ(translated({"-d", "hetero:cpu"}), Words{});
  EXPECT_THROW(translated({"-d", "MULTI:GPU,CPU"}), UsageError);
}

TEST(BenchmarkApp, files_go_to_the_input_that_was_named_last) {
  EXPECT_EQ(translated({"-i", "x:a.png,b.png,y:c.npy"}),
            (Words{"--input", "x=a.png", "--input", "x=b.png", "--input", "y=c.npy"}));
  EXPECT_EQ(translated({"-i", "x:random,y:image_info"}), (Words{"--made-up", "x", "--image-info", "y"}));
  EXPECT_EQ(translated({"-i", "a.png", "b.png"}), (Words{"--input", "a.png", "b.png"}));
  EXPECT_EQ(translated({"-i", "a.png", "b.png", "-m", "m"}),
            (Words{"--input", "a.png", "--input", "b.png", "m", "--as-benchmark-app"}));
}

TEST(BenchmarkApp, what_has_no_effect_stays_as_a_sentence) {
  EXPECT_EQ(translated({"-c", "gpu.xml"}), Words{"--idle=-c has no effect: it is for GPUs"});
  EXPECT_EQ(translated({"-progress=false"}), Words{});
}

TEST(BenchmarkApp, reports_say_words_as_they_were_written) {
  const auto words = translate_benchmark_app({"--niter=3", "-pc", "-m", "x.onnx"}).words;
  for (const auto* written :
       {"--written=--iterations --niter=3", "--written=--pc -pc", "--written=model -m=x.onnx"})
    EXPECT_NE(std::find(words.begin(), words.end(), written), words.end()) << written;
}

TEST(Percentiles, the_value_at_ceil) {
  const std::vector<double> four{1, 2, 3, 4};
  EXPECT_EQ(at_percent(four, 1), 1);
  EXPECT_EQ(at_percent(four, 25), 1);
  EXPECT_EQ(at_percent(four, 26), 2);
  EXPECT_EQ(at_percent(four, 50), 2);
  EXPECT_EQ(at_percent(four, 99), 4);
  EXPECT_EQ(at_percent(four, 100), 4);
  EXPECT_EQ(at_percent({7}, 1), 7);
  EXPECT_EQ(at_percent({}, 50), 0);
}

LayerCounter row(const std::string& name, double us, LayerStatus status = LayerStatus::executed) {
  LayerCounter out{
      .name = name, .type = "Relu", .kernel = status == LayerStatus::executed ? "ref_f32" : "undef"};
  out.status = status;
  out.average_us = us;
  out.cpu_us = us / 2;
  return out;
}

TEST(CounterReport, columns) {
  const std::vector<Counters> tables{{row("a;b", 1500), row("c", 0, LayerStatus::optimized_out)}};
  EXPECT_EQ(counter_csv("average", tables),
            "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)\n"
            "a,b;EXECUTED;Relu;ref_f32;1.500;0.750\n"
            "c;OPTIMIZED_OUT;Relu;undef;0.000;0.000\n"
            "Total;;;;1.500;0.750\n\n");
  EXPECT_EQ(counter_csv("sorted", tables),
            "layerName,execStatus,layerType,execType,realTime (ms),cpuTime (ms),proportion (%)\n"
            "a;b,EXECUTED,Relu,ref_f32,1.500,0.750,100.00\n"
            "c,OPTIMIZED_OUT,Relu,undef,0.000,0.000,0.00\n"
            "Total,,,,1.500,0.750,\n\n");
  const auto document = nlohmann::json::parse(counter_json("average", tables));
  EXPECT_EQ(document["report_type"], "average");
  EXPECT_EQ(document["avg_performance"]["nodes"][0]["name"], "a;b");
  EXPECT_EQ(document["avg_performance"]["total_real_time"], 1.5);
}

TEST(CounterReport, names_of_any_language_keep_the_columns) {
  const std::string cut = "\u7573\u307f\u8fbc\u307f";
  const auto lines = counter_lines({row("short", 1), row(cut + cut + cut + cut + cut, 1)});
  const auto column = [](const std::string& line) {
    return text_length(std::string_view(line).substr(0, line.find("EXECUTED")));
  };
  EXPECT_EQ(column(lines[0]), 20u);
  EXPECT_EQ(column(lines[1]), 20u);
  EXPECT_TRUE(lines[1].starts_with(cut + cut + cut + "\u7573\u307f\u8fbc...  ")) << lines[1];
  EXPECT_NE(counter_csv("sorted", {{row("\"a", 1)}}).find("\n'a,EXECUTED"), std::string::npos);
}

TEST(CounterReport, means_are_of_the_requests_that_ran) {
  const auto mean = mean_counters({{row("a", 1), row("a", 10)}, {row("a", 3), row("a", 30)}});
  ASSERT_EQ(mean.size(), 2u);
  EXPECT_EQ(mean[0].average_us, 2);
  EXPECT_EQ(mean[1].average_us, 20);
  EXPECT_TRUE(mean_counters({}).empty());
}

TEST(CounterReport, orders) {
  const Counters rows{row("a", 1), row("b", 0, LayerStatus::optimized_out), row("c", 5)};
  const auto names = [&](const char* order) {
    std::string out;
    for (const auto& r : sorted_as(rows, order)) out += r.name;
    return out;
  };
  EXPECT_EQ(names("no_sort"), "abc");
  EXPECT_EQ(names("sort"), "cab");
  EXPECT_EQ(names("simple_sort"), "ca");
}

/// y = x, of three channels.
Model three_channels() {
  IrText ir;
  const int x = ir.parameter("x", "1,3,1,2");
  ir.result({ir.layer("Relu", "opset1", "", {{x}})});
  return model_of(ir);
}

TEST(BenchmarkPreprocessing, nothing_asked_is_the_model_itself) {
  const auto model = three_channels();
  EXPECT_EQ(with_preprocessing(model, {}).inputs()[0].type, ElementType::f32);
}

TEST(BenchmarkPreprocessing, types_means_and_scales) {
  BenchmarkCommand o;
  o.types = {"ip=U8", "op=i32"};
  o.mean_values = {"[10,20,30]"};
  o.scale_values = {"x[2,5,10]"};
  const auto model = with_preprocessing(three_channels(), o);
  EXPECT_EQ(model.inputs()[0].type, ElementType::u8);
  EXPECT_EQ(model.outputs()[0].type, ElementType::i32);
  const auto in = Tensor::of<std::uint8_t>({1, 3, 1, 2}, {12, 14, 25, 30, 30, 200});
  const auto y = CompiledModel(model)(in);
  ASSERT_EQ(y.element_type(), ElementType::i32);
  const std::vector<std::int32_t> wanted{1, 2, 1, 2, 0, 17};
  const auto numbers = y.data<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(numbers.begin(), numbers.end()), wanted);
}

TEST(BenchmarkPreprocessing, means_of_f16_are_computed_in_f32) {
  IrText ir;
  const int x = ir.parameter("x", "1,3,1,1", "f16");
  ir.result({ir.layer("Relu", "opset1", "", {{x}})});
  for (const auto* type : {"", "ip=f16", "ip=f32", "ip=u8"}) {
    BenchmarkCommand o;
    if (*type) o.types = {type};
    o.types.emplace_back("op=f32");
    o.mean_values = {"[10,20,30]"};
    o.scale_values = {"[2]"};
    const auto model = with_preprocessing(model_of(ir), o);
    const auto as = model.inputs()[0].type;
    EXPECT_EQ(name_of(as), std::string(*type ? type + 3 : "f16"));
    const auto in = Tensor::of<float>({1, 3, 1, 1}, {12, 24, 31});
    const auto y = CompiledModel(model)(convert(in, as));
    const auto numbers = y.data<float>();
    EXPECT_EQ(std::vector<float>(numbers.begin(), numbers.end()), (std::vector<float>{1, 2, 0.5})) << type;
  }
}

TEST(BenchmarkPreprocessing, names_win_over_all) {
  BenchmarkCommand o;
  o.types = {"iop=x:f16", "ip=u8"};
  EXPECT_EQ(with_preprocessing(three_channels(), o).inputs()[0].type, ElementType::f16);
}

TEST(BenchmarkPreprocessing, what_does_not_fit_is_refused) {
  const auto refused = [](auto change) {
    BenchmarkCommand o;
    change(o);
    EXPECT_THROW(with_preprocessing(three_channels(), o), UsageError);
  };
  refused([](auto& o) { o.types = {"ip=f99"}; });
  refused([](auto& o) { o.types = {"iop=x"}; });
  refused([](auto& o) { o.mean_values = {"[1,2,3,4]"}; });
  refused([](auto& o) { o.mean_values = {"[1,2,z]"}; });
  refused([](auto& o) { o.scale_values = {"[0]"}; });
  refused([](auto& o) { o.scale_values = {"[1e-60]"}; });
  refused([](auto& o) { o.mean_values = {"[1e300]"}; });
  refused([](auto& o) { o.mean_values = {"[1,2]"}, o.inputs.image.layout = {"[NCHW]"}; });
  BenchmarkCommand o;
  o.types = {"iop=z:f32"};
  EXPECT_THROW(with_preprocessing(three_channels(), o), Error);
}

}  // namespace
}  // namespace lamina::tool
