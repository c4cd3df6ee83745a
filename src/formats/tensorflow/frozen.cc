#include "formats/tensorflow/frozen.h"

#include <charconv>

#include "base/error.h"
#include "ops/eval.h"

namespace lamina::tensorflow {
namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 26;

double parse(std::string_view name, std::string_view text) {
  if (text == "True" || text == "true") return 1;
  if (text == "False" || text == "false") return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail(ErrorCode::bad_option, "the value \"{}\" of \"{}\" is no number, True or False", text, name);
  return value;
}

/// One axis for several values where the rank is not known.
Dims sizes_for(const Shape& shape, std::size_t count) {
  if (!shape.ranked()) return count == 1 ? Dims{} : Dims{static_cast<std::int64_t>(count)};
  Dims dims;
  std::size_t product = 1;
  for (const auto& d : shape.dims()) {
    dims.push_back(d.known() ? d.size() : 1);
    product *= static_cast<std::size_t>(dims.back());
  }
  if (!dims.empty() && !shape[dims.size() - 1].known() && product > 0 && count % product == 0)
    dims.back() = static_cast<std::int64_t>(count / product);
  return dims;
}

}  // namespace

Tensor frozen_value(std::string_view name, const Strings& texts, const TensorType& type) {
  if (type.element == ElementType::undefined)
    fail(ErrorCode::bad_option, "\"{}\" is to have a value, but its element type is not known", name);
  const auto dims = sizes_for(type.shape, texts.size());
  const auto count = element_count(dims);
  if (count > kMostElements || texts.empty() || (texts.size() != 1 && texts.size() != count))
    fail(ErrorCode::bad_option, "\"{}\" has {} values, its shape is {}", name, texts.size(), to_string(dims));
  std::vector<double> values;
  for (const auto& text : texts) values.push_back(parse(name, text));
  values.resize(count, values[0]);
  return from_doubles(type.element, dims, values);
}

}  // namespace lamina::tensorflow
