#include "formats/frozen.h"

#include "base/limits.h"
#include "base/numbers.h"
#include "base/words.h"
#include "formats/read_error.h"
#include "ops/eval.h"

namespace lamina {
namespace {

template <class... A>
[[noreturn]] void refuse(fmt::format_string<A...> text, A&&... args) {
  throw ReadError(ErrorCode::bad_option, fmt::format(text, std::forward<A>(args)...),
                  FileProblem::value_of_input);
}

double number_of(std::string_view name, const std::string& word) {
  const auto lower = lower_case(word);
  if (lower == "true" || lower == "false") return lower == "true";
  if (const auto v = parse_real<double>(word)) return *v;
  refuse("{}: \"{}\" is no value, wanted a number, True or False", name, word);
}

struct Value {
  bool list = false;
  std::vector<double> numbers;
};

Value parse(std::string_view name, std::string_view text) {
  Value out;
  out.list = text.size() >= 2 &&
             ((text.front() == '[' && text.back() == ']') || (text.front() == '(' && text.back() == ')'));
  if (out.list) text = text.substr(1, text.size() - 2);
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c != ',' && c != ' ' && c != '\t')
      word += c;
    else if (!word.empty())
      out.numbers.push_back(number_of(name, std::exchange(word, {})));
  }
  return out;
}

/// Dims with so many elements, if the shape allows them.
Dims dims_of(const Shape& shape, std::int64_t count, bool list) {
  if (!shape.ranked()) return list ? Dims{count} : Dims{};
  Dims out;
  std::int64_t known = 1, last = -1;
  for (const auto& d : shape.dims()) {
    if (!d.known()) last = std::ssize(out);
    out.push_back(d.known() ? d.size() : 1);
    if (out.back() > 0 && known <= count) known *= std::min(out.back(), count + 1);
  }
  if (last >= 0) out[static_cast<std::size_t>(last)] = count / known;
  return out;
}

}  // namespace

Tensor frozen_value(std::string_view name, std::string_view text, const TensorType& type) {
  if (type.element == ElementType::undefined)
    refuse("{}: is to have a value, but its element type is not known", name);
  const auto value = parse(name, text);
  const auto count = std::ssize(value.numbers);
  const auto dims = dims_of(type.shape, count, value.list);
  if (!extent_of(dims) || !type.shape.fits(Shape::of(dims)) ||
      static_cast<std::size_t>(count) != element_count(dims))
    refuse("{}: {} values for {}", name, count, to_string(type));
  return from_doubles(type.element, dims, value.numbers);
}

}  // namespace lamina
