#include "tests/quantised/pattern.h"

#include <fmt/format.h>

namespace lamina::testing {
namespace {

struct Sizes {
  Dims x, w, y;
};

Kernel convolution(std::string name, std::string attributes, const Sizes& s) {
  const auto products = element_count(s.w) / static_cast<std::size_t>(s.w[0]);
  return {std::move(name), "Convolution", std::move(attributes), s.x, s.w, s.y, 0, products};
}

Kernel transposed(std::string name, std::string attributes, const Sizes& s, std::size_t products) {
  return {std::move(name), "ConvolutionBackpropData", std::move(attributes), s.x, s.w, s.y, 1, products};
}

std::vector<Kernel> convolutions() {
  const std::string padded = "pads_begin=[1,1] pads_end=[1,1]";
  return {
      convolution("1x1", "", {{2, 4, 3, 3}, {6, 4, 1, 1}, {2, 6, 3, 3}}),
      convolution("one weight", "", {{1, 1, 3, 3}, {1, 1, 1, 1}, {1, 1, 3, 3}}),
      convolution("3x3", padded, {{1, 3, 5, 6}, {5, 3, 3, 3}, {1, 5, 5, 6}}),
      convolution("strided", "strides=[2,2] pads_begin=[1,1]", {{1, 4, 6, 6}, {8, 4, 3, 3}, {1, 8, 3, 3}}),
      convolution("valid", "", {{1, 4, 5, 5}, {4, 4, 3, 3}, {1, 4, 3, 3}}),
      convolution("dilated", "dilations=[2,2] pads_begin=[2,2] pads_end=[2,2]",
                  {{1, 3, 5, 5}, {4, 3, 3, 3}, {1, 4, 5, 5}}),
      convolution("same upper", "auto_pad=same_upper strides=[2,2]",
                  {{1, 3, 6, 5}, {4, 3, 3, 3}, {1, 4, 3, 3}}),
      convolution("grouped", "groups=2 " + padded, {{1, 4, 4, 4}, {6, 2, 3, 3}, {1, 6, 4, 4}}),
      convolution("depthwise", "groups=5 " + padded, {{1, 5, 5, 5}, {5, 1, 3, 3}, {1, 5, 5, 5}}),
      convolution("multiplier", "groups=3 strides=[2,2] " + padded,
                  {{1, 3, 5, 5}, {6, 1, 3, 3}, {1, 6, 3, 3}}),
      convolution("5x5 of many", "pads_begin=[2,2] pads_end=[2,2]",
                  {{1, 17, 7, 7}, {19, 17, 5, 5}, {1, 19, 7, 7}}),
      convolution("1D", "pads_begin=[1] pads_end=[1]", {{2, 4, 7}, {5, 4, 3}, {2, 5, 7}}),
      convolution("3D", "pads_begin=[0,1,1] pads_end=[0,1,1]",
                  {{1, 2, 3, 4, 4}, {4, 2, 3, 3, 3}, {1, 4, 1, 4, 4}}),
  };
}

std::vector<Kernel> transposed_convolutions() {
  return {
      transposed("transposed", "strides=[2,2] pads_begin=[1,1] pads_end=[1,1]",
                 {{1, 4, 3, 3}, {4, 6, 3, 3}, {1, 6, 5, 5}}, 16),
      transposed("transposed 1D", "strides=[2]", {{1, 3, 4}, {3, 4, 2}, {1, 4, 8}}, 3),
      transposed("transposed grouped", "groups=2", {{1, 4, 3, 3}, {4, 3, 2, 2}, {1, 6, 4, 4}}, 8),
      transposed("transposed depthwise", "groups=5 strides=[2,2]", {{1, 5, 3, 3}, {5, 1, 3, 3}, {1, 5, 7, 7}},
                 4),
      transposed("transposed with gaps",
                 "strides=[3,2] dilations=[1,2] pads_begin=[1,0] output_padding=[1,1]",
                 {{1, 3, 3, 4}, {3, 5, 2, 3}, {1, 5, 8, 12}}, 9),
  };
}

std::vector<Kernel> matrix_products() {
  const std::string mm = "MatMul", turned = "transpose_b=true";
  return {
      {"matrix", mm, "", {3, 5}, {5, 4}, {3, 4}, 1, 5},
      {"matrix turned", mm, turned, {3, 5}, {4, 5}, {3, 4}, 0, 5},
      {"left turned", mm, "transpose_a=true", {5, 3}, {5, 4}, {3, 4}, 1, 5},
      {"rows of batches", mm, "", {2, 3, 5}, {5, 4}, {2, 3, 4}, 1, 5},
      {"batches", mm, "", {2, 3, 5}, {2, 5, 4}, {2, 3, 4}, 2, 5, false},
      {"heads", mm, turned, {1, 2, 3, 5}, {1, 2, 4, 5}, {1, 2, 3, 4}, 2, 5, false},
  };
}

}  // namespace

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = [] {
    auto out = convolutions();
    for (const auto& more : {transposed_convolutions(), matrix_products()})
      out.insert(out.end(), more.begin(), more.end());
    return out;
  }();
  return all;
}

std::string in_words(const Step& step) {
  constexpr const char* kinds[] = {"", "tensor", "channel", "full", "dequantised"};
  if (step.operand == Operand::none) return step.op;
  const std::string kind = kinds[static_cast<int>(step.operand)];
  return step.op + (step.swapped ? "(" + kind + ",_)" : "(_," + kind + ")");
}

const std::vector<Step>& steps() {
  static const std::vector<Step> all = [] {
    std::vector<Step> out;
    for (const std::string op :
         {"Abs", "Clamp", "Elu", "Exp", "Gelu", "HardSigmoid", "HSwish", "LeakyRelu", "Log", "Mish", "Relu",
          "Round", "Sigmoid", "SoftPlus", "Sqrt", "Square", "Tanh"})
      out.push_back({op});
    for (const std::string op : {"Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum"})
      for (const auto operand : {Operand::tensor, Operand::channel, Operand::full, Operand::dequantised}) {
        out.push_back({op, operand});
        if (op == "Subtract" || op == "Divide" || op == "Add") out.push_back({op, operand, true});
      }
    for (const auto operand : {Operand::tensor, Operand::channel})  // others are steps of their own
      out.push_back({"Power", operand});
    return out;
  }();
  return all;
}

std::string in_words(const Pattern& p) {
  constexpr const char* weights[] = {"s8",       "s8 with zero points", "u8 with zero points",
                                     "s8 given", "f32 quantised",       "f32 given, quantised"};
  std::string text =
      fmt::format("{}, {}{}, weights {}{}", kernels()[p.kernel].name, name_of(p.source),
                  p.source_zero ? " with a zero point" : "", weights[static_cast<int>(p.weights)],
                  p.weights_by_channel ? " by channel" : "");
  if (p.bias != ElementType::undefined)
    text += fmt::format(", bias {}{}{}", name_of(p.bias), p.bias_is_added ? " added" : "",
                        p.bias_is_given ? ", given" : "");
  if (p.cast != ElementType::f32) text += fmt::format(", in {}", name_of(p.cast));
  for (const auto& step : p.epilogue) text += ", " + in_words(step);
  if (p.stored != Stored::as_it_is) text += fmt::format(" -> {}", name_of(p.destination));
  if (p.stored == Stored::quantised && p.destination_zero) text += " with a zero point";
  if (p.stored == Stored::quantised && p.destination_by_channel) text += " by channel";
  return text + fmt::format("{} (seed {})", p.extreme ? ", extreme" : "", p.seed);
}

}  // namespace lamina::testing
