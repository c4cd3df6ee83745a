// Graphs of oneDNN Graph that are damaged or mean harm: an Error each that says where, and nothing worse.
#include <gtest/gtest.h>

#include <random>

#include "lamina/error.h"
#include "tests/support/ir_text.h"
#include "tests/support/onednn_graph.h"
#include "tests/support/soak.h"

namespace lamina::testing {
namespace {

const auto relu = [](const std::string& in, const std::string& out) {
  return OneDnnGraph().op("ReLU", {in}, {out}).text();
};

/// A little of everything.
std::string sample() {
  return OneDnnGraph()
      .field(R"("input_ports": [1, 0], "output_ports": [9])")
      .op("Dequantize", {logical(0, "u8", {1, 4, 6, 6})}, {logical(2, "f32", {1, 4, 6, 6})},
          {attribute("qtype", "string", "\"per_tensor\""), attribute("scales", "f32[]", "[0.5]"),
           attribute("zps", "s64[]", "[3]")})
      .op("Dequantize", {logical(1, "s8", {2, 4, 3, 3})}, {logical(3, "f32", {2, 4, 3, 3})},
          {attribute("qtype", "string", "\"per_channel\""), attribute("axis", "s64", "0"),
           attribute("scales", "f32[]", "[0.5, 0.25]")})
      .op("Convolution", {logical(2, "f32", {1, 4, 6, 6}), logical(3, "f32", {2, 4, 3, 3})},
          {logical(4, "f32", {1, 2, 6, 6})},
          {attribute("strides", "s64[]", "[1, 1]"), attribute("dilations", "s64[]", "[1, 1]"),
           attribute("pads_begin", "s64[]", "[1, 1]"), attribute("pads_end", "s64[]", "[1, 1]"),
           attribute("data_format", "string", "\"NCX\""), attribute("weights_format", "string", "\"OIX\"")})
      .op("MaxPool", {logical(4, "f32", {1, 2, 6, 6})}, {logical(5, "f32", {1, 2, 3, 3})},
          {attribute("strides", "s64[]", "[2, 2]"), attribute("kernel", "s64[]", "[2, 2]"),
           attribute("pads_begin", "s64[]", "[0, 0]"), attribute("pads_end", "s64[]", "[0, 0]"),
           attribute("data_format", "string", "\"NCX\"")})
      .op("StaticReshape", {logical(5, "f32", {1, 2, 3, 3})}, {logical(6, "f32", {2, 9})},
          {attribute("shape", "s64[]", "[2, -1]"), attribute("special_zero", "bool", "0")})
      .op("SoftMax", {logical(6, "f32", {2, 9})}, {logical(7, "f32", {2, 9})},
          {attribute("axis", "s64", "-1")})
      .op("TypeCast", {logical(7, "f32", {2, 9})}, {logical(8, "bf16", {2, 9})})
      .op("Quantize", {logical(7, "f32", {2, 9})}, {logical(9, "s8", {2, 9})},
          {attribute("scales", "f32[]", "[0.01]"), attribute("zps", "s64[]", "[-5]")})
      .op("End", {logical(8, "bf16", {2, 9})}, {})
      .text();
}

/// Reads; true when that worked. Any exception but Error fails the test.
bool reads(std::string_view text) {
  try {
    read_onednn_text(text);
    return true;
  } catch (const Error& e) {
    EXPECT_TRUE(std::string_view(e.what()).starts_with("graph.json")) << e.what();
    EXPECT_NE(e.code(), ErrorCode::internal) << e.what() << "\n" << text;
    EXPECT_NE(e.code(), ErrorCode::bad_input) << e.what();
    return false;
  }
}

TEST(OneDnnGraphHostile, CutAtEveryLength) {
  const auto whole = sample();
  ASSERT_TRUE(reads(whole)) << onednn_refusal(whole);
  for (std::size_t length = 0; length < whole.size(); ++length) EXPECT_FALSE(reads(whole.substr(0, length)));
}

std::string damaged(std::string text, std::mt19937& random) {
  constexpr std::string_view kAlphabet = "0123456789-.{}:\"[], eE\\xs";
  constexpr std::string_view kWords[] = {
      "-1", "0",   "9223372036854775807", "-9223372036854775808", "1e30", "\"f8\"", "null", "[]",
      "{}", "inf", "18446744073709551615"};
  for (auto changes = 1 + random() % 3; changes > 0 && !text.empty(); --changes) {
    const auto at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text[at] = kAlphabet[random() % kAlphabet.size()];
        break;
      case 1:
        text.erase(at, 1 + random() % 6);
        break;
      case 2:
        text.insert(at, 1, kAlphabet[random() % kAlphabet.size()]);
        break;
      default: {  // a whole number or word by another one
        const auto begin = text.find_first_of("0123456789", at);
        if (begin == std::string::npos) break;
        const auto end = std::min(text.find_first_not_of("0123456789.", begin), text.size());
        text.replace(begin, end - begin, kWords[random() % std::size(kWords)]);
      }
    }
  }
  return text;
}

TEST(OneDnnGraphHostile, Damaged) {
  const auto whole = sample();
  std::mt19937 random(20261126);
  int read = 0;
  for (int round = 0; round < 3000; ++round) read += reads(damaged(whole, random));
  EXPECT_GT(read, 0);
}

TEST(OneDnnGraphHostile, soak) {
  const auto whole = sample();
  soak_until_failure([&](std::mt19937& random) {
    const auto text = damaged(whole, random);
    const bool read = reads(text);
    if (HasFailure()) write_file("soak-onednn-graph.json", text);
    return read;
  });
}

TEST(OneDnnGraphHostile, NoGraph) {
  EXPECT_EQ(onednn_refusal("{}"), "is JSON without \"graph\", wanted a graph of oneDNN Graph");
  EXPECT_EQ(onednn_refusal(R"({"graph": []})"), "\"graph\" has no operations");
  EXPECT_EQ(onednn_refusal(R"({"graph": 3})"), "graph: is 3, wanted an array");
  EXPECT_EQ(onednn_refusal(R"({"graph": [3]})"), "graph[0]: is 3, wanted an object");
  EXPECT_EQ(onednn_refusal(R"({"graph": [{"id": 1}]})"), "graph[0]: has no \"kind\"");
  EXPECT_EQ(onednn_refusal(R"({"graph": [{"id": -1}]})"), "graph[0]: id: is -1, wanted an id of 0 or more");
  EXPECT_NE(onednn_refusal(R"({"graph": )").find("is no JSON: "), std::string::npos);
}

TEST(OneDnnGraphHostile, DepthAndNoise) {
  const auto deep = "{\"graph\": " + std::string(1 << 20, '[');
  EXPECT_EQ(onednn_refusal(deep), "JSON nests more than 32 deep");
  EXPECT_EQ(onednn_refusal("{\"graph\": " + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}"),
            "JSON nests more than 32 deep");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(onednn_refusal("{\"graph\": " + objects), "JSON nests more than 32 deep");
}

TEST(OneDnnGraphHostile, Tensors) {
  const auto x = logical(0, "f32", {2, 3}), y = logical(1, "f32", {2, 3});
  EXPECT_EQ(onednn_refusal(relu(logical(0, "f32", {2, -3}), y)),
            "op 1000 \"op1000\" (ReLU): inputs: tensor 0: shape: has the size -3, wanted 0 or more");
  EXPECT_NE(onednn_refusal(relu(logical(0, "f32", {1 << 30, 1 << 30}), y)).find("at most 2^40"),
            std::string::npos);
  EXPECT_EQ(onednn_refusal(relu(x, logical(1, "f32", {3, 2}))),
            "op 1000 \"op1000\" (ReLU): tensor 1 has shape [3,2], which its inputs make [2,3]");
  EXPECT_EQ(onednn_refusal(relu(x, logical(1, "u8", {2, 3}))),
            "op 1000 \"op1000\" (ReLU): tensor 1 is u8, which its inputs make f32");
  EXPECT_EQ(onednn_refusal(OneDnnGraph().op("Add", {x, logical(0, "bf16", {2, 3})}, {y}).text()),
            "op 1000 \"op1000\" (Add): tensor 0 is bf16 here and f32 elsewhere");
  EXPECT_EQ(onednn_refusal(OneDnnGraph().op("Add", {x, logical(0, "f32", {1, 3})}, {y}).text()),
            "op 1000 \"op1000\" (Add): tensor 0 has shape [1,3] here and [2,3] elsewhere");
  EXPECT_EQ(onednn_refusal(OneDnnGraph().op("ReLU", {x}, {y}).op("Tanh", {x}, {y}).text()),
            "op 1001 \"op1001\" (Tanh): makes tensor 1, which op 1000 \"op1000\" (ReLU) makes already");
  EXPECT_EQ(onednn_refusal(OneDnnGraph().op("ReLU", {}, {y}).text()),
            "op 1000 \"op1000\" (ReLU): has 0 inputs, wanted 1");
  EXPECT_EQ(onednn_refusal(OneDnnGraph().op("ReLU", {x}, {y, logical(2, "f32", {2, 3})}).text()),
            "op 1000 \"op1000\" (ReLU): has 2 outputs, wanted 1");
}

TEST(OneDnnGraphHostile, OutputsOfTheWrongNumber) {
  const auto a = logical(0, "f32", {2}), b = logical(1, "f32", {2}), c = logical(2, "f32", {2});
  EXPECT_EQ(onednn_refusal(OneDnnGraph().op("End", {a}, {b}).op("ReLU", {b}, {c}).text()),
            "op 1000 \"op1000\" (End): makes tensor 1, wanted none");
  EXPECT_EQ(onednn_refusal(OneDnnGraph().op("End", {a}, {}).text()), "no operation makes a result");
  for (const auto* kind : {"ReLU", "Foreign", "SoftMax", "LayerNorm", "Convolution"}) {
    reads(OneDnnGraph().op(kind, {a}, {}).op("ReLU", {a}, {b}).text());
    reads(OneDnnGraph().op(kind, {}, {b}).text());
    reads(OneDnnGraph().op(kind, {a, a, a, a, a, a}, {b, c, logical(3, "f32", {2})}).text());
  }
}

TEST(OneDnnGraphHostile, Cycles) {
  const auto a = logical(0, "f32", {2}), b = logical(1, "f32", {2});
  EXPECT_EQ(onednn_refusal(relu(a, a)), "op 1000 \"op1000\" (ReLU): waits for its own result");
  EXPECT_EQ(onednn_refusal(OneDnnGraph().op("ReLU", {a}, {b}).op("ReLU", {b}, {a}).text()),
            "op 1000 \"op1000\" (ReLU): waits for its own result");
}

TEST(OneDnnGraphHostile, SameIds) {
  const auto text = relu(logical(0, "f32", {2}), logical(1, "f32", {2}));
  const auto op = text.substr(text.find("[\n") + 2, text.rfind("]}") - text.find("[\n") - 2);
  EXPECT_EQ(onednn_refusal("{\"graph\": [" + op + "," + op + "]}"),
            "op 1000 \"op1000\" (ReLU): its id is that of another operation");
  EXPECT_EQ(onednn_refusal("{\"input_ports\": [0, -2], \"graph\": [" + op + "]}"),
            "the file: input_ports[1]: is -2, wanted an id of 0 or more");
}

TEST(OneDnnGraphHostile, Attributes) {
  const auto quantize = [](const std::vector<std::string>& attributes) {
    const auto refusal = onednn_refusal(
        OneDnnGraph()
            .op("Quantize", {logical(0, "f32", {2, 3})}, {logical(1, "u8", {2, 3})}, attributes)
            .text());
    constexpr std::string_view kLabel = "op 1000 \"op1000\" (Quantize): ";
    EXPECT_TRUE(refusal.starts_with(kLabel)) << refusal;
    return refusal.substr(std::min(kLabel.size(), refusal.size()));
  };
  const auto scales = attribute("scales", "f32[]", "[1]");
  EXPECT_EQ(quantize({}), "has no attribute \"scales\"");
  EXPECT_EQ(quantize({attribute("scales", "f32", "1")}),
            "attribute \"scales\" has another type, wanted f32[]");
  EXPECT_EQ(quantize({attribute("scales", "f33[]", "[1]")}),
            "attrs: scales: has the type \"f33[]\", wanted string, bool, s64, s64[], f32 or f32[]");
  EXPECT_EQ(quantize({attribute("scales", "f32[]", "[1e60]")}),
            "attrs: scales: value[0]: is 1e+60, wanted a number of f32");
  EXPECT_EQ(quantize({attribute("scales", "f32[]", "[0]")}),
            "attribute \"scales\": number 0 is 0, wanted a finite one other than 0");
  EXPECT_EQ(quantize({attribute("scales", "f32[]", "[nan]")}),
            "attribute \"scales\": number 0 is nan, wanted a finite one other than 0");
  EXPECT_EQ(quantize({attribute("scales", "f32[]", "[-inf]")}),
            "attribute \"scales\": number 0 is -inf, wanted a finite one other than 0");
  EXPECT_EQ(quantize({attribute("scales", "f32[]", "[1, 2]")}),
            "attribute \"scales\" has 2 numbers, wanted 1");
  EXPECT_EQ(quantize({attribute("scales", "f32[]", "[]")}), "attribute \"scales\" has 0 numbers, wanted 1");
  EXPECT_EQ(quantize({scales, attribute("zps", "s64[]", "[0, 0]")}),
            "attribute \"zps\" has 2 numbers, wanted 1, one for each scale");
  EXPECT_EQ(quantize({scales, attribute("zps", "s64[]", "[9000000000]")}),
            "attribute \"zps\" has 9000000000, wanted one of 32 bits");
  EXPECT_EQ(quantize({scales, attribute("zps", "s64[]", "[1.5]")}),
            "attrs: zps: value[0]: is 1.5, wanted an integer of 64 bits");
  EXPECT_EQ(quantize({scales, attribute("qtype", "string", "\"per_pixel\"")}),
            "attribute \"qtype\" is \"per_pixel\", wanted per_tensor, per_channel, per_group");
  EXPECT_EQ(
      quantize({scales, attribute("qtype", "string", "\"per_channel\""), attribute("axis", "s64", "2")}),
      "attribute \"axis\" is 2, wanted -2..1");
}

/// Sizes of windows, groups, axes.
TEST(OneDnnGraphHostile, HugeNumbers) {
  const auto x = logical(0, "f32", {1, 4, 6, 6}), w = logical(1, "f32", {4, 4, 3, 3}),
             y = logical(2, "f32", {1, 4, 6, 6});
  const auto list = [](const std::string& name, const std::string& v) {
    return attribute(name, "s64[]", "[" + v + ", " + v + "]");
  };
  for (const std::string v : {"0", "-1", "7", "2147483648", "9223372036854775807", "-9223372036854775808"}) {
    for (const auto* hostile :
         {"strides", "dilations", "pads_begin", "pads_end", "groups", "kernel", "output_padding"}) {
      const auto value = [&](const std::string& name, const std::string& usual) {
        return name == hostile ? v : usual;
      };
      const std::vector<std::string> attributes{list("strides", value("strides", "1")),
                                                list("dilations", value("dilations", "1")),
                                                list("pads_begin", value("pads_begin", "1")),
                                                list("pads_end", value("pads_end", "1")),
                                                list("kernel", value("kernel", "3")),
                                                list("output_padding", value("output_padding", "0")),
                                                attribute("groups", "s64", value("groups", "1")),
                                                attribute("data_format", "string", "\"NCX\""),
                                                attribute("weights_format", "string", "\"OIX\"")};
      for (const auto* kind : {"Convolution", "ConvTranspose"})
        reads(OneDnnGraph().op(kind, {x, w}, {y}, attributes).text());
      for (const auto* kind : {"MaxPool", "AvgPool"})
        reads(OneDnnGraph().op(kind, {x}, {y}, attributes).text());
    }
    for (const auto* kind : {"SoftMax", "Concat", "GenIndex", "LogSoftmax"})
      reads(OneDnnGraph().op(kind, {x}, {y}, {attribute("axis", "s64", v)}).text());
    reads(OneDnnGraph().op("StaticReshape", {x}, {y}, {list("shape", v)}).text());
    reads(OneDnnGraph().op("StaticTranspose", {x}, {y}, {list("order", v)}).text());
    reads(OneDnnGraph().op("ReduceSum", {x}, {y}, {list("axes", v)}).text());
    reads(OneDnnGraph()
              .op("Interpolate", {x}, {y},
                  {attribute("mode", "string", "\"nearest\""), list("sizes", v),
                   attribute("data_format", "string", "\"NCX\"")})
              .text());
    reads(OneDnnGraph().op("GroupNorm", {x, w, w}, {y}, {attribute("groups", "s64", v)}).text());
  }
}

/// What each operation says of its own attributes and shapes.
TEST(OneDnnGraphHostile, EachOperationSaysWhatItWants) {
  const auto x = logical(0, "f32", {1, 4, 6, 6}), w = logical(1, "f32", {4, 4, 3, 3}),
             y = logical(2, "f32", {1, 4, 6, 6});
  const auto said = [&](const std::string& kind, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& attributes) {
    const auto refusal = onednn_refusal(OneDnnGraph().op(kind, inputs, {y}, attributes).text());
    const auto label = "op 1000 \"op1000\" (" + kind + "): ";
    EXPECT_TRUE(refusal.starts_with(label)) << refusal;
    return refusal.substr(std::min(label.size(), refusal.size()));
  };
  const auto text = [](const std::string& name, const std::string& v) {
    return attribute(name, "string", "\"" + v + "\"");
  };
  const auto numbers = [](const std::string& name, const std::string& v) {
    return attribute(name, "s64[]", "[" + v + "]");
  };
  const auto window = [&](const std::string& pads) {
    return std::vector<std::string>{numbers("strides", "1, 1"), numbers("dilations", "1, 1"),
                                    numbers("kernel", "3, 3"),  numbers("pads_begin", pads),
                                    numbers("pads_end", pads),  text("data_format", "NCX")};
  };
  const auto with = [](std::vector<std::string> all, const std::string& one) {
    all.push_back(one);
    return all;
  };
  EXPECT_EQ(said("Convolution", {x, w}, with(window("1, 1"), text("weights_format", "OIY"))),
            "attribute \"weights_format\" is \"oiy\", wanted oix, iox, xio or xoi");
  EXPECT_EQ(said("Convolution", {x, w}, with(window("1"), text("weights_format", "OIX"))),
            "attribute \"pads_begin\" has 1 numbers, wanted 2");
  EXPECT_EQ(said("Convolution", {x, logical(1, "f32", {4, 4, 3})},
                 with(window("1, 1"), text("weights_format", "OIX"))),
            "the weights have shape [4,4,3], wanted rank 4");
  EXPECT_EQ(said("Convolution", {x, w},
                 with(with(window("1, 1"), text("weights_format", "OIX")), attribute("groups", "s64", "0"))),
            "attribute \"groups\" is 0, wanted 1 or more");
  EXPECT_EQ(said("MaxPool", {x}, window("-3, -3")), "pads of -3 and -3 leave nothing of 6");
  EXPECT_EQ(said("BiasAdd", {x, logical(1, "f32", {3})}, {text("data_format", "NCX")}),
            "a tensor of 3 elements for 4 channels");
  EXPECT_EQ(said("Clamp", {x}, {attribute("min", "f32", "2"), attribute("max", "f32", "1")}),
            "attribute \"min\" is 2, wanted at most \"max\", which is 1");
  const auto nearest = text("mode", "nearest"), ncx = text("data_format", "NCX");
  EXPECT_EQ(said("Interpolate", {x}, {nearest, ncx, attribute("scales", "f32[]", "[2]")}),
            "attribute \"scales\" has 1 numbers, wanted 2");
  EXPECT_EQ(said("Interpolate", {x}, {nearest, ncx, attribute("scales", "f32[]", "[0.1, 1]")}),
            "attribute \"scales\" makes 0 of 6, wanted 1..2^40");
  const auto grouped = [&](const std::string& sizes) {
    return said("DynamicDequantize", {logical(0, "s8", {1, 4, 6, 6}), logical(1, "f32", {1, 2, 6, 6})},
                {text("qtype", "per_group"), numbers("group_shape", sizes)});
  };
  EXPECT_EQ(grouped("1, 2"), "attribute \"group_shape\" has 2 numbers, wanted 4");
  EXPECT_EQ(grouped("1, 0, 1, 1"), "attribute \"group_shape\" has 0, wanted 1 or more");
  EXPECT_EQ(grouped("1, 3, 1, 1"), "attribute \"group_shape\" has 3 for an axis of 4, wanted a divisor");
}

TEST(OneDnnGraphHostile, LongChainsAreReadInTime) {
  OneDnnGraph g;
  constexpr int kLong = 30'000;
  for (int i = 0; i < kLong; ++i) g.op("ReLU", {logical(i, "f32", {2})}, {logical(i + 1, "f32", {2})});
  EXPECT_EQ(read_onednn_text(g.text()).graph.node_count(), std::size_t{kLong});
  OneDnnGraph wide;  // each waits for the one behind it
  for (int i = kLong; i > 0; --i) wide.op("ReLU", {logical(i - 1, "f32", {2})}, {logical(i, "f32", {2})});
  EXPECT_EQ(read_onednn_text(wide.text()).graph.results().size(), 1u);
}

}  // namespace
}  // namespace lamina::testing
