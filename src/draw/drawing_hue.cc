/// Colours of families of operators.
#include <array>

#include "draw/drawing.h"

namespace lamina {
namespace {

struct HueRow {
  Hue hue;
  std::string_view name, colour;
};

constexpr std::array kHues{HueRow{kPort, "input or output", "#5b6470"},
                           HueRow{Hue::convolution, "convolution", "#2f6db5"},
                           HueRow{Hue::matmul, "matrix product", "#4b4fb8"},
                           HueRow{Hue::activation, "activation", "#b8433a"},
                           HueRow{Hue::arithmetic, "arithmetic", "#b5722a"},
                           HueRow{Hue::normalization, "normalization", "#2b8a78"},
                           HueRow{Hue::pooling, "pooling, resize", "#3c8a3f"},
                           HueRow{Hue::reduction, "reduction, softmax", "#7f8f26"},
                           HueRow{Hue::movement, "moves data", "#7d5f4b"},
                           HueRow{Hue::shape, "shapes only", "#8b8f96"},
                           HueRow{Hue::quantization, "quantisation, types", "#8a4fa3"},
                           HueRow{Hue::recurrent, "recurrent", "#a3407c"},
                           HueRow{Hue::detection, "detection, sorting", "#17808f"},
                           HueRow{Hue::control, "control flow, state", "#33383f"},
                           HueRow{Hue::unknown, "not supported", "#d4002a"},
                           HueRow{Hue::other, "other", "#6f6f6f"},
                           HueRow{kLayout, "reorder, copy", "#9a9a4a"}};

}  // namespace

std::string_view name_of(Hue hue) { return kHues[static_cast<std::size_t>(hue)].name; }
std::string_view colour_of(Hue hue) { return kHues[static_cast<std::size_t>(hue)].colour; }

}  // namespace lamina
