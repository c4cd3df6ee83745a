#pragma once
/// Small problems for oneDNN that between them have each of its implementations that lamina can meet.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/onednn/onednn.h"

namespace lamina::stack {

struct Problem {
  std::string family;                          ///< "convolution"
  std::optional<onednn::Primitive> primitive;  ///< as lamina offers it; none: lamina has no such kernel
  std::string text;                            ///< sizes, types, layouts
  /// Throws dnnl::error where oneDNN has nothing for it.
  std::function<dnnl::primitive_desc_base()> describe;
};

std::vector<Problem> all_problems();

// By family.
void add_convolutions(std::vector<Problem>& to);
void add_products(std::vector<Problem>& to);
void add_recurrent(std::vector<Problem>& to);
void add_passes(std::vector<Problem>& to);

using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

/// "2x3x4"
std::string text_of(const Dims& dims);
std::string_view text_of(Type type);
/// The stages that follow: none; ReLU; a second tensor, Swish and a factor for each channel.
enum class Stages { none, relu, many };
dnnl::primitive_attr attributes(Stages stages, const Dims& result, std::size_t channel_axis);

}  // namespace lamina::stack
