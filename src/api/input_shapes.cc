#include "api/input_shapes.h"

#include <algorithm>

#include "base/nearest.h"
#include "base/text.h"

namespace lamina {

std::string wrong_sizes(const PartialShape& sizes) {
  for (const auto& s : sizes)
    if (s.least < 0 || s.most < s.least)
      return fmt::format("a size from {} to {}, wanted sizes from 0 on, or -1 for any", s.least, s.most);
  return {};
}

Shape shape_of(const PartialShape& sizes) {
  std::vector<Dim> dims;
  for (const auto& s : sizes) dims.emplace_back(s.least, s.most);
  return Shape(std::move(dims));
}

ShapesByName shapes_of(const NamedShapes& shapes) {
  ShapesByName out;
  for (const auto& [name, sizes] : shapes) {
    if (const auto wrong = wrong_sizes(sizes); !wrong.empty())
      fail(ErrorCode::bad_option, "input_shapes: \"{}\": {}", name, wrong);
    out.emplace(name, shape_of(sizes));
  }
  return out;
}

std::vector<std::string> names_of(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const auto& p : ports) names.push_back(p.name);
  return names;
}

void require_inputs(const std::vector<std::string>& names, const NamedShapes& shapes,
                    const std::string& path) {
  for (const auto& [name, sizes] : shapes)
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(ErrorCode::bad_input, "{}: input_shapes: there is no input \"{}\"{}", path, name,
           did_you_mean(name, names));
}

bool keeps_sizes(const Shape& own, const Shape& asked) {
  if (!own.ranked()) return true;
  if (own.rank() != asked.rank()) return false;
  for (std::size_t i = 0; i < own.rank(); ++i)
    if (own[i].known() && !(asked[i].known() && asked[i].size() == own[i].size())) return false;
  return true;
}

void refuse_shapes(const ShapesByName& shapes, const char* reason) {
  constexpr std::size_t kName = 60, kAll = 150;  // characters
  std::string text;
  for (const auto& [name, shape] : shapes)
    text += fmt::format("{}\"{}\" {}", text.empty() ? "" : ", ", clipped(name, kName), to_string(shape));
  fail(ErrorCode::bad_input, "the model cannot have inputs {}: {}", clipped(text, kAll), reason);
}

}  // namespace lamina
