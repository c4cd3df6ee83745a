#pragma once
/// Primitives whose code oneDNN never gives back (kernels/generated_code.h).
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/onednn/onednn.h"

namespace lamina::onednn {

/// Two primitives of equal descriptions do the same.
struct Description {
  std::string text;
  std::vector<Desc> descs;
  bool operator==(const Description&) const = default;
};

/// This version of oneDNN never gives back what it generates for that implementation.
bool code_stays(std::string_view implementation);

/// A text for the sizes and attributes of a convolution, by oneDNN's getters.
std::string text_of(std::string_view implementation, const std::vector<dnnl::memory::dims>& sizes,
                    const dnnl::primitive_attr& attr);

/// The description of a convolution of either kind whose code stays; nothing for others. `args`: operands,
/// scales and zero points.
template <class Pd>
std::optional<Description> describe_kept(const Pd& pd, const std::vector<Arg>& args) {
  if (!code_stays(pd.impl_info_str())) return std::nullopt;
  Description d{text_of(pd.impl_info_str(),
                        {pd.get_strides(), pd.get_dilations(), pd.get_padding_l(), pd.get_padding_r()},
                        pd.get_primitive_attr()),
                {pd.src_desc(), pd.weights_desc(), pd.bias_desc(), pd.dst_desc()}};
  for (const auto& arg : args) {
    d.text += fmt::format(" {}", arg.id);
    d.descs.push_back(arg.desc);
  }
  return d;
}

/// True if the primitive exists, or one more may be made.
bool may_be_made(const Description& description);
/// The one that is kept; made where there is none.
dnnl::primitive kept(const Description& description, const std::function<dnnl::primitive()>& make);

}  // namespace lamina::onednn
