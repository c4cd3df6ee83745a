#include "offline/request.h"

#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "base/option_words.h"
#include "base/words.h"
#include "offline/faq.h"

namespace lamina {
namespace {

bool opens(char c) { return c == '[' || c == '(' || c == '{'; }
bool closes(char c) { return c == ']' || c == ')' || c == '}'; }
char partner(char open) { return open == '[' ? ']' : open == '(' ? ')' : '}'; }

/// What stands between spaces or commas.
std::vector<std::string> list_words(std::string_view list) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : std::string(list) + ",") {
    if (c != ',' && c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(std::exchange(word, {}));
    }
  }
  return out;
}

Shape shape_of(const std::string& option, const std::string& text, std::string_view list) {
  std::vector<Dim> dims;
  for (const auto& word : list_words(list)) {
    const auto dim = size_said(word);
    if (!dim)
      fail_faq(ErrorCode::bad_option, 57, "{} {}: \"{}\" is no size, wanted sizes such as [1,3,224,224]",
               option, text, word);
    dims.emplace_back(dim->least, dim->most);
  }
  return Shape(std::move(dims));
}

ElementType type_of(const std::string& option, const std::string& text, std::string_view word) {
  if (const auto type = element_type_said(word)) return *type;
  fail_faq(ErrorCode::bad_option, 50, "{} {}: \"{}\" is no element type, wanted f32, f16, i64, i32, u8, ...",
           option, text, word);
}

/// Takes a group in brackets of that kind off the end; nothing when there is none.
std::optional<std::string> take_group(std::string& text, std::string_view kinds) {
  if (text.empty() || !closes(text.back())) return std::nullopt;
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    depth += closes(text[i]) - opens(text[i]);
    if (depth != 0) continue;
    if (kinds.find(text[i]) == std::string_view::npos || partner(text[i]) != text.back()) return std::nullopt;
    auto group = text.substr(i + 1, text.size() - i - 2);
    text = trimmed(text.substr(0, i));
    return group;
  }
  return std::nullopt;
}

InputRequest input_of(const std::string& option, const std::string& item) {
  InputRequest out;
  auto head = item;
  if (const auto arrow = item.find("->"); arrow != std::string::npos) {
    out.value = trimmed(std::string_view(item).substr(arrow + 2));
    if (out.value->empty())
      fail_faq(ErrorCode::bad_option, 59, "{} {}: wanted a value behind ->", option, item);
    head = trimmed(std::string_view(item).substr(0, arrow));
  }
  for (int i = 0; i < 2; ++i) {  // in either order
    if (const auto type = take_group(head, "{"); type && out.type == ElementType::undefined)
      out.type = type_of(option, item, *type);
    if (const auto shape = take_group(head, "[("); shape && !out.shape)
      out.shape = shape_of(option, item, *shape);
  }
  const auto balance =
      std::count_if(head.begin(), head.end(), opens) - std::count_if(head.begin(), head.end(), closes);
  if (head.empty() || opens(head.front()) || closes(head.back()) || balance != 0)
    fail_faq(ErrorCode::bad_option, 57, "{} {}: wanted NAME[shape]{{type}}->value", option, item);
  out.place = head;
  return out;
}

double number_of(const std::string& option, const std::string& text, const std::string& word) {
  const auto v = parse_real<double>(word);
  if (!v || !std::isfinite(*v))
    fail_faq(ErrorCode::bad_option, 59, "{} {}: \"{}\" is not a number", option, text, word);
  return *v;
}

LayoutRequest layout_of(const std::string& option, const std::string& item) {
  LayoutRequest out;
  std::string layouts = item;
  // A name stands in front of brackets that hold everything else.
  if (closes(item.back()) && !opens(item.front())) {
    auto name = item;
    if (const auto group = take_group(name, "[("); group && name.find("->") == std::string::npos) {
      out.name = name;
      layouts = *group;
    }
  }
  const auto arrow = layouts.find("->");
  out.source = layout_letters(option + " " + item, std::string_view(layouts).substr(0, arrow));
  if (arrow != std::string::npos)
    out.target = layout_letters(option + " " + item, std::string_view(layouts).substr(arrow + 2));
  return out;
}

}  // namespace

std::vector<std::string> outer_pieces(const std::string& text) {
  std::vector<std::string> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) depth += opens(text[i]) - closes(text[i]);
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    out.emplace_back(trimmed(std::string_view(text).substr(begin, i - begin)));
    begin = i + 1;
  }
  return out;
}

std::vector<InputRequest> parse_inputs(const std::string& option, const std::string& text) {
  std::vector<InputRequest> out;
  for (const auto& item : outer_pieces(text)) {
    if (item.empty()) fail_faq(ErrorCode::bad_option, 57, "{} {}: a name is missing", option, text);
    out.push_back(input_of(option, item));
  }
  return out;
}

std::vector<Shape> parse_shapes(const std::string& option, const std::string& text) {
  std::vector<Shape> out;
  for (const auto& item : outer_pieces(text)) {
    const auto list = in_brackets(item);
    if (!list)
      fail_faq(ErrorCode::bad_option, 57, "{} {}: cannot be parsed, wanted [1,3,224,224] or (1,3,224,224)",
               option, text);
    out.push_back(shape_of(option, text, *list));
  }
  return out;
}

std::vector<std::string> parse_names(const std::string& text) {
  std::vector<std::string> out;
  for (const auto piece : pieces_of(text))
    if (const auto name = trimmed(piece); !name.empty()) out.emplace_back(name);
  return out;
}

std::vector<NamedNumbers> parse_numbers(const std::string& option, const std::string& text) {
  std::vector<NamedNumbers> out;
  std::string before;  // of a name that holds commas
  const auto pieces = outer_pieces(text);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto item = before + pieces[i];
    before.clear();
    if (!item.empty() && !closes(item.back()) && i + 1 < pieces.size()) {
      before = item + ",";
      continue;
    }
    const auto list = take_group(item, "[(");
    if (!list || list->empty())
      fail_faq(ErrorCode::bad_option, 101, "{} {}: wanted [1,2,3] or NAME[1,2,3],NAME[4,5,6]", option, text);
    NamedNumbers one{item, {}};
    for (const auto& word : list_words(*list)) one.numbers.push_back(number_of(option, text, word));
    out.push_back(std::move(one));
  }
  const auto named = std::count_if(out.begin(), out.end(), [](const auto& n) { return !n.name.empty(); });
  if (named != 0 && named != std::ssize(out))
    fail_faq(ErrorCode::bad_option, 101, "{} {}: wanted a name before every list, or before none", option,
             text);
  return out;
}

std::vector<LayoutRequest> parse_layouts(const std::string& option, const std::string& text) {
  std::vector<LayoutRequest> out;
  if (in_brackets(text) && text.find("->") == std::string::npos) return {layout_of(option, text)};
  for (const auto& item : outer_pieces(text)) {
    if (item.empty()) fail(ErrorCode::bad_option, "{} {}: a layout is missing", option, text);
    out.push_back(layout_of(option, item));
  }
  return out;
}

}  // namespace lamina
