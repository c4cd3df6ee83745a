#pragma once
/// Convolutions of pictures as texts of graphs, for tests that try many of them.
#include <cstdint>
#include <string>

namespace lamina::testing {

/// How many windows lie side by side; 0 where none fits.
std::int64_t window_count(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                          std::int64_t pads);

/// Sizes of a convolution and where its windows lie.
struct PictureConvolution {
  std::int64_t images, channels, outputs, groups, height, width, kernel_h, kernel_w, stride_h, stride_w;
  std::int64_t dilation_h, dilation_w, top, left, bottom, right;

  std::int64_t out_height() const;
  std::int64_t out_width() const;
  /// "[outputs,channels of a group,kernel_h,kernel_w]"
  std::string weight_dims() const;
};

/// What else a convolution's text has.
struct ConvolutionWords {
  std::string op = "Convolution";
  std::string element = "f32";  ///< of the picture x
  std::string inputs;           ///< further inputs of the graph, each after a comma: ", w: f32[8,4,3,3]"
  std::string constants;        ///< lines before the node: " w = const ...\n"
  std::string operands;         ///< after x: ", w, b"
  std::string absent;           ///< operands without a tensor before an epilogue's second one: ", _"
  std::string attributes;       ///< besides windows and groups: " pad_value=1"
  /// Lines of the body, from a to r; empty without one. If they have z, that is a second tensor: the graph's
  /// input q.
  std::string epilogue;
};

/// A graph from x to y with one such convolution.
std::string text_of(const PictureConvolution& c, const ConvolutionWords& words);

}  // namespace lamina::testing
