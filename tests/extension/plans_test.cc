// What plans make of custom layers: layouts, reorders, prepared weights, fusion, threads, memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include "api/inside.h"
#include "check/check.h"
#include "extension/conformance.h"
#include "extension/custom_op.h"
#include "extension/extensions.h"
#include "ops/convolution.h"
#include "ops/eval.h"
#include "rules/optimize.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;

Values some_values(std::size_t count) {
  Values v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = static_cast<float>(i * 7 % 13) / 4 - 1.5F;
  return v;
}

/// A convolution of 16 channels, `between`, another convolution.
template <class Between>
IrText between_convolutions(const Between& between) {
  const std::string data = R"(strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1")";
  IrText ir;
  const int x = ir.parameter("x", "1,16,20,20");
  const int w = ir.constant("16,16,3,3", some_values(16 * 16 * 9));
  const int first = ir.layer("Convolution", "opset1", data, {{x}, {w}});
  const int layer = between(ir, first);
  const int v = ir.constant("16,16,3,3", some_values(16 * 16 * 9));
  ir.result({ir.layer("Convolution", "opset1", data, {{layer}, {v}})});
  return ir;
}

std::vector<std::string> labels(const Request& request) {
  std::vector<std::string> out;
  for (const auto& plan : Inside::runner_of(request).plans())
    for (const auto& step : plan->steps) out.push_back(step.label);
  return out;
}

std::size_t reorders(const std::vector<std::string>& all) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const auto& l) { return l.starts_with("reorder"); }));
}

/// Runs and compares with the interpreter; the labels of the steps.
std::vector<std::string> checked(const IrText& ir, const Options& given = {}) {
  const auto model = model_with(ir, {"operations.so"});
  auto options = given;
  options.keep_weights = true;
  const CompiledModel compiled(model, options);
  auto request = compiled.create_request();
  std::vector<Tensor> in;
  for (const auto& port : model.inputs())
    in.push_back(floats(port.shape, some_values(element_count(port.shape))));
  for (std::size_t i = 0; i < in.size(); ++i) request.set_input(i, in[i]);
  request.run();
  const auto found = checking::check_run({Inside::of(compiled).original(),
                                          in,
                                          Inside::runner_of(request).plans(),
                                          {{"y", request.output(0), {}}},
                                          false});
  EXPECT_EQ(found.faults(), 0U);
  for (const auto& row : found.outputs) EXPECT_TRUE(row.ok()) << checking::to_string(row.difference);
  return labels(request);
}

TEST(Plans, AnElementwiseLayerJoinsTheConvolutionAsReluDoes) {
  const auto with = [](const std::string& type, const std::string& version, const std::string& data) {
    return checked(
        between_convolutions([&](IrText& ir, int x) { return ir.layer(type, version, data, {{x}}); }));
  };
  const auto relu = with("ReLU", "opset1", ""), custom = with("Leak", "test.ops", R"(slope="0.25")");
  EXPECT_EQ(custom.size(), relu.size());
  EXPECT_EQ(reorders(custom), reorders(relu));
}

TEST(Plans, AChannelsLastLayerAddsNoReorder) {
  const auto without = checked(between_convolutions([](IrText&, int x) { return x; }));
  const auto with = checked(between_convolutions([](IrText& ir, int x) {
    return ir.layer("WeighLast", "test.ops", "", {{x}, {ir.constant("16", some_values(16))}});
  }));
  EXPECT_EQ(with.size(), without.size() + 1);
  EXPECT_EQ(reorders(with), reorders(without));
  EXPECT_EQ(std::count(with.begin(), with.end(), "operations.so:channels_last"), 1);
}

TEST(Plans, BlockedLayersPassBlocksOn) {
  IrText ir;
  const int x = ir.parameter("x", "2,5,3,4");
  int y = x;
  for (int i = 0; i < 3; ++i)
    y = ir.layer("WeighBlocks", "test.ops", "", {{y}, {ir.constant("5", some_values(5))}});
  ir.result({y});
  const auto all = checked(ir);
  EXPECT_EQ(std::count(all.begin(), all.end(), "operations.so:blocked_8"), 3);
  EXPECT_EQ(reorders(all), 2U);
}

TEST(Plans, AComputedValueIsNoConstant) {
  IrText ir;
  const int x = ir.parameter("x", "2,6,3,5");
  ir.result({ir.layer("Weigh", "test.ops", "", {{x}, {ir.parameter("w", "6")}})});
  expect_error([&] { CompiledModel{model_with(ir, {"operations.so"})}; }, ErrorCode::unsupported,
               "node \"Weigh_2\" (Weigh): operations.so: test.ops:Weigh: input 1 \"weights\" is computed, "
               "wanted a constant");
  IrText folded;
  const int w = folded.layer("Negative", "opset1", "", {{folded.constant("6", some_values(6))}});
  folded.result({folded.layer("Weigh", "test.ops", "", {{folded.parameter("x", "2,6,3,5")}, {w}})});
  checked(folded);
}

/// Adds what is behind the last channel of blocks of 8 to each element: zero, or something is wrong. Writes
/// 5 there with "dirty".
int adds_padding(const lamina_host* given, lamina_registrar* registrar) {
  static const lamina_host* host;
  host = given;
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
  static const lamina_attribute dirty{sizeof(dirty), "dirty", "", LAMINA_BOOL, 0, "false"};
  static const std::int32_t blocked[] = {LAMINA_BLOCKED_8};
  static const lamina_configuration c{sizeof(c), "blocked", nullptr, blocked, nullptr, nullptr,
                                      nullptr,   0,         0,       nullptr, nullptr};
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "test.padding";
  op.type = "AddPadding";
  op.in = op.out = &port;
  op.inputs = op.outputs = 1;
  op.attribute = &dirty;
  op.attributes = 1;
  op.configuration = &c;
  op.configurations = 1;
  op.run = [](const lamina_call* call) -> lamina_status {
    std::int32_t dirty_too = 0;
    if (host->get_bool(call->context, "dirty", &dirty_too) != LAMINA_OK) return LAMINA_FAILED;
    const auto* x = static_cast<const float*>(call->in[0]->data);
    auto* y = static_cast<float*>(call->out[0]->data);
    const auto used = static_cast<std::size_t>(call->in[0]->dims[1]);  // fewer than 8
    for (std::size_t i = 0; i < call->in[0]->bytes / sizeof(float); ++i)
      if (i % 8 < used)
        y[i] = x[i] + x[i / 8 * 8 + 7];
      else if (dirty_too != 0)
        y[i] = 5;
    return LAMINA_OK;
  };
  return host->add_operation(registrar, &op);
}

TEST(Plans, BehindTheLastChannelIsZeroWhateverKernelsLeaveThere) {
  register_extension("test-padding", adds_padding);
  for (const auto* type : {"ReLU", "Exp"}) {
    IrText ir;
    const int x = ir.parameter("x", "2,3,2,2");
    int y = x;
    for (int i = 0; i < 3; ++i) y = ir.layer("AddPadding", "test.padding", R"(dirty="true")", {{y}});
    y = ir.layer(type, "opset1", "", {{y}});
    ir.result({ir.layer("AddPadding", "test.padding", "", {{y}})});
    const TemporaryFolder folder;
    const Model model(ir.write(folder), {"test-padding"});
    const auto y_of = [&](float v) { return type == std::string("Exp") ? std::exp(v) : std::max(v, 0.0F); };
    const auto in = some_values(24);
    const auto out = values(CompiledModel(model)(floats({2, 3, 2, 2}, in)));
    for (std::size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(out[i], y_of(in[i]), 1e-5) << type << i;
    std::string found;
    for (const auto& row : check_extensions(Inside::of(model).loaded().graph)) found += row.problem;
    EXPECT_EQ(found, "writes something other than zero after the last channel of output 0");
  }
}

TEST(Plans, EveryLayoutGivesTheSame) {
  for (const auto* forced : {"plain", "channels_last", "blocked_8", "blocked_16"}) {
    IrText ir;
    const int x = ir.parameter("x", "2,19,3,5");
    const int w = ir.constant("19", some_values(19));
    ir.result({ir.layer("Weigh", "test.ops", "", {{x}, {w}})});
    Options options;
    options.force = {std::string("Weigh_2=operations.so:") + forced};
    const auto all = checked(ir, options);
    EXPECT_EQ(std::count(all.begin(), all.end(), std::string("operations.so:") + forced), 1);
  }
}

TEST(Plans, WeightsArePreparedOncePerModel) {
  const auto handle = SharedLibrary::open(library("operations.so"));
  const auto so_far = reinterpret_cast<int (*)()>(handle->symbol("prepared_so_far"));
  ASSERT_NE(so_far, nullptr);
  IrText ir;
  const int x = ir.parameter("x", "?,4,?");
  ir.result({ir.layer("WeighLast", "test.ops", "", {{x}, {ir.constant("4", Values{1, 2, 3, 4})}})});
  const CompiledModel compiled(model_with(ir, {"operations.so"}));
  const auto before = so_far();
  auto one = compiled.create_request(), other = compiled.create_request();
  for (auto* request : {&one, &other}) {
    request->set_input(0, floats({1, 4, 1}, {1, 1, 1, 1}));
    request->run();
    EXPECT_EQ(values(request->output(0)), (Values{2, 3, 4, 5}));
  }
  EXPECT_EQ(so_far(), before + 1);
}

TEST(Plans, ALayerThatTakesStagesHasTheActivationBehindIt) {
  IrText ir;
  const int x = ir.parameter("x", "1,3,4,4");
  const int twice = ir.layer("Twice", "test.ops", "", {{x}});
  const int relu = ir.layer("ReLU", "opset1", "", {{twice}});
  const int c = ir.constant("1,3,1,1", Values{1, 2, 3});
  ir.result({ir.layer("Add", "opset1", "auto_broadcast=\"numpy\"", {{relu}, {c}})});
  const auto all = checked(ir);
  EXPECT_EQ(all, (std::vector<std::string>{"operations.so:plain"}));
}

TEST(Plans, ARefusalShowsWhatWasTried) {
  IrText ir;
  ir.result({ir.layer("Even", "test.ops", R"(shift="1")", {{ir.parameter("x", "1,3,2,2")}})});
  expect_error([&] { CompiledModel{model_with(ir, {"operations.so"})}; }, ErrorCode::unsupported,
               "no configuration takes it: even: ");
  expect_error([&] { CompiledModel{model_with(ir, {"operations.so"})}; }, ErrorCode::unsupported,
               "wanted an even number of channels");
  IrText flat;
  flat.result({flat.layer("Even", "test.ops", R"(shift="1")", {{flat.parameter("x", "4,4")}})});
  expect_error([&] { CompiledModel{model_with(flat, {"operations.so"})}; }, ErrorCode::unsupported,
               "input 0 has 2 axes, wanted 3 or more for channels_last");
}

TEST(Plans, HalvesAreWidenedWhereTheLayerTakesFloats) {
  IrText ir;
  const int x = ir.parameter("x", "2", "f16");
  const int wide = ir.layer("Convert", "opset1", R"(destination_type="f32")", {{x}});
  ir.result({ir.layer("Affine", "test.ops", R"(shift="1")", {{wide}})});
  const CompiledModel compiled(model_with(ir, {"operations.so"}));
  const Tensor half = Tensor::of<f16_t>({2}, std::vector<f16_t>{{0x3c00}, {0x4000}});
  EXPECT_EQ(values(compiled(half)), (Values{3, 5}));
}

TEST(Plans, ALayerThatSaysNothingOfBf16ReadsFloats) {
  const auto model = model_with(between_convolutions([](IrText& ir, int x) {
                                  const int leak = ir.layer("Leak", "test.ops", "", {{x}});
                                  return ir.layer("Add", "opset1", "", {{leak}, {x}});
                                }),
                                {"operations.so"});
  auto graph = Inside::of(model).loaded().graph;
  RuleOptions options;
  options.bf16 = true;
  Ledger ledger;
  optimize(graph, options, ledger);
  bool narrow = false;
  std::string read;  // by the layer, in a group or by itself
  for (const auto id : graph.order()) {
    const auto& n = graph.node(id);
    const auto type = std::string(name_of(graph.type(n.inputs[0]).element));
    narrow |= type == "bf16";
    const auto* body = n.op.is<Convolution>() ? nullptr : epilogue(n);
    const auto inner = body ? body->order() : std::vector<NodeId>{};
    if (custom_op(n.op) ||
        std::any_of(inner.begin(), inner.end(), [&](NodeId i) { return custom_op(body->node(i).op); }))
      read += type;
  }
  EXPECT_TRUE(narrow);
  EXPECT_EQ(read, "f32");
}

TEST(Plans, AModelOfHalvesIsComputedInFloats) {
  OnnxGraph g;
  g.input("x", ElementType::f16, {"2"});
  g.node("Affine", {"x"}, {"m"}, {attribute("shift", 1.0f)}, "affine", "test.ops").output("m");
  g.node("Relu", {"m"}, {"r"}).node("Leak", {"r"}, {"y"}, {}, "leak", "test.ops").output("y");
  const auto model = model_with(g, {"operations.so"});
  EXPECT_EQ(model.outputs()[0].type, ElementType::f16);
  for (const auto& row : check_extensions(Inside::of(model).loaded().graph))
    EXPECT_TRUE(row.ok()) << row.tried << ": " << row.problem;
  const Tensor x = Tensor::of<f16_t>({2}, std::vector<f16_t>{{0x3c00}, {0xc000}});
  const auto y = CompiledModel(model)(std::vector{x});
  for (const auto& t : y) EXPECT_EQ(t.element_type(), ElementType::f16);
  EXPECT_EQ(values(convert(y[0], ElementType::f32)), (Values{3, -3}));
  EXPECT_EQ(values(convert(y[1], ElementType::f32)), (Values{3, 0}));
}

/// A library whose operation has no idea of f32: it turns the sign bit of halves.
int halves(const lamina_host* host, lamina_registrar* registrar) {
  static const std::int32_t types[] = {LAMINA_F16, LAMINA_NO_TYPE};
  static const lamina_port port{sizeof(port), "x", "", 0, 0, types};
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "test.halves";
  op.type = "Minus";
  op.in = op.out = &port;
  op.inputs = op.outputs = 1;
  op.run = [](const lamina_call* call) {
    for (std::uint64_t i = 0; i < call->in[0]->elements; ++i)
      static_cast<std::uint16_t*>(call->out[0]->data)[i] =
          static_cast<const std::uint16_t*>(call->in[0]->data)[i] ^ 0x8000;
    return lamina_status{LAMINA_OK};
  };
  return host->add_operation(registrar, &op);
}

TEST(Plans, ALayerOfHalvesGetsHalves) {
  register_extension("test-halves", halves);
  IrText ir;
  const int x = ir.parameter("x", "2", "f16");
  const int twice = ir.layer("Add", "opset1", "", {{x}, {x}});
  const int minus = ir.layer("Minus", "test.halves", "", {{twice}});
  ir.result({ir.layer("Add", "opset1", "", {{minus}, {x}})});
  ir.result({minus});
  const TemporaryFolder folder;
  const CompiledModel compiled(Model(ir.write(folder), {"test-halves"}));
  const auto out =
      compiled(std::vector<Tensor>{Tensor::of<f16_t>({2}, std::vector<f16_t>{{0x3c00}, {0x4000}})});
  EXPECT_EQ(out[0].element_type(), ElementType::f16);
  EXPECT_EQ(values(convert(out[0], ElementType::f32)), (Values{-1, -2}));
  EXPECT_EQ(values(convert(out[1], ElementType::f32)), (Values{-2, -4}));
}

/// How many threads a loop is told that it has, and which ones its bodies have seen.
std::atomic<int> told{0};
std::mutex seen_mutex;
std::set<std::thread::id> seen;

int threads(const lamina_host* given, lamina_registrar* registrar) {
  static const lamina_host* host;
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
  host = given;
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "test.threads";
  op.type = "Count";
  op.in = op.out = &port;
  op.inputs = op.outputs = 1;
  op.run = [](const lamina_call* call) {
    told = host->thread_count(call->context);
    std::copy_n(static_cast<const float*>(call->in[0]->data), call->in[0]->elements,
                static_cast<float*>(call->out[0]->data));
    return host->parallel_for(
        call->context, 1000, 1,
        [](void*, std::int64_t, std::int64_t, std::int32_t slot) {
          const std::lock_guard lock(seen_mutex);
          seen.insert(std::this_thread::get_id());
          if (slot < 0 || slot >= told) told = -1;
        },
        nullptr);
  };
  return host->add_operation(registrar, &op);
}

TEST(Plans, LoopsRunOnTheThreadsOfTheStream) {
  register_extension("test-threads", threads);
  IrText ir;
  ir.result({ir.layer("Count", "test.threads", "", {{ir.parameter("x", "4")}})});
  const TemporaryFolder folder;
  const Model model(ir.write(folder), {"test-threads"});
  for (const int each : {1, 2}) {
    const CompiledModel compiled(model, {.threads = each, .streams = 1});
    auto request = compiled.create_request();
    request.set_input(0, floats({4}, {1, 2, 3, 4}));
    seen.clear();
    request.start();
    request.wait();
    EXPECT_EQ(told, compiled.threads());
    EXPECT_LE(seen.size(), static_cast<std::size_t>(compiled.threads()));
    EXPECT_FALSE(seen.contains(std::this_thread::get_id()));  // the stream has threads of its own
  }
}

TEST(Plans, LayersAreTriedWhileReadingWhereThatIsWanted) {
  IrText ir;
  ir.result({ir.layer("NaN", "test.faults", "", {{ir.parameter("x", "4")}})});
  (void)model_with(ir, {"faults.so"});
  setenv("LAMINA_CHECK", "1", 1);
  expect_error([&] { model_with(ir, {"faults.so"}); }, ErrorCode::extension, "writes NaN to output 0");
  IrText sound;
  sound.result({sound.layer("Leak", "test.ops", "", {{sound.parameter("x", "4")}})});
  (void)model_with(sound, {"operations.so"});
  unsetenv("LAMINA_CHECK");
}

}  // namespace
}  // namespace lamina::testing
