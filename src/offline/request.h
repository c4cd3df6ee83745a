#pragma once
/// What the Model Optimizer's options say, as texts: --input, --input_shape, --mean_values, --layout, ...
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/shape.h"

namespace lamina {

/// An item of --input: "0:conv2[1 8 4 4]{f16}->[1.5 2]".
struct InputRequest {
  std::string place;  ///< a name, "port:name" or "name:port"
  std::optional<Shape> shape = {};
  ElementType type = ElementType::undefined;  ///< the model's own
  std::optional<std::string> value = {};      ///< what it is frozen to
};

/// All throw FaqError(bad_option), which begins with the option.
std::vector<InputRequest> parse_inputs(const std::string& option, const std::string& text);
/// "[1,3,224,224],(1,?,-1,1..10)"
std::vector<Shape> parse_shapes(const std::string& option, const std::string& text);
/// "a,b:0,1:c"
std::vector<std::string> parse_names(const std::string& text);

/// The numbers of an input, or of the next one where it has no name.
struct NamedNumbers {
  std::string name;
  std::vector<double> numbers;
};
/// "[1,2,3],(4,5,6)" or "a[1,2,3],b(4)"
std::vector<NamedNumbers> parse_numbers(const std::string& option, const std::string& text);

/// A layout, the meaning of each axis: "NHWC", "N?HW", "N...C".
struct LayoutRequest {
  std::string name;    ///< of an input or output; empty: all inputs
  std::string source;  ///< what the model has
  std::string target;  ///< what the file that is written is to have; empty: the same
};
/// "nhwc", "[n,h,w,c]", "nhwc->nchw", "a(nhwc->nchw),b(nc)"
std::vector<LayoutRequest> parse_layouts(const std::string& option, const std::string& text);

/// What stands between commas outside of brackets; without surrounding spaces.
std::vector<std::string> outer_pieces(const std::string& text);

}  // namespace lamina
