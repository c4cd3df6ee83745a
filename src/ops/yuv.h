#pragma once
/// Pictures as cameras and video decoders give them.
#include "ops/eval.h"

namespace lamina {

enum class YuvFormat : std::uint8_t { nv12, i420 };
template <>
inline constexpr std::array enum_names<YuvFormat> = {std::string_view("nv12"), std::string_view("i420")};
enum class ColourOrder : std::uint8_t { rgb, bgr };
template <>
inline constexpr std::array enum_names<ColourOrder> = {std::string_view("rgb"), std::string_view("bgr")};

/// Brightness of each pixel and colours of each 2 x 2 pixels (BT.601) to [N, H, W, 3] in 0..255. Inputs: one
/// plane [N, H*3/2, W, 1]; or Y [N, H, W, 1] and (nv12) UV [N, H/2, W/2, 2] or (i420) U and V [N, H/2, W/2,
/// 1]. u8 or floats.
struct YuvToRgb {
  static constexpr OpInfo info{"YuvToRgb",       1, 3, 1, Trait::none, "Images in NV12 or I420 to colours", 0,
                               OpFamily::pooling};
  YuvFormat format = YuvFormat::nv12;
  ColourOrder order = ColourOrder::rgb;
  template <class V>
  void visit(V& v) {
    v("format", format);
    v("order", order);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
