#include "tool/shape_option.h"

#include <algorithm>

#include "base/error.h"
#include "base/option_words.h"
#include "base/words.h"
#include "tool/named_lists.h"

namespace lamina::tool {

PartialShape sizes_of(const std::string& option, const std::string& list) {
  PartialShape out;
  if (list.empty()) return out;
  for (const auto piece : pieces_of(list)) {
    std::string word(piece);
    std::erase(word, ' ');
    const auto size = size_said(word);
    if (!size) throw UsageError(fmt::format("{}: \"{}\" is not a size", option, word));
    out.push_back(*size);
  }
  return out;
}

bool any_open(const PartialShape& sizes) { return std::any_of(sizes.begin(), sizes.end(), is_open); }

std::string to_string(const PartialShape& sizes) {
  std::string out;
  for (const auto& s : sizes) {
    const auto most = s.most == Dimension::kUnbounded ? "" : std::to_string(s.most);
    out += (out.empty() ? "" : ",") + (!is_open(s)                    ? most
                                       : s.least == 0 && most.empty() ? "?"
                                                                      : fmt::format("{}..{}", s.least, most));
  }
  return out;
}

std::string input_named(const std::string& option, const std::string& name,
                        const std::vector<std::string>& inputs) {
  const auto names = [&] { return fmt::format("\"{}\"", fmt::join(inputs, "\", \"")); };
  if (name.empty() && inputs.size() != 1)
    throw UsageError(fmt::format("{}: wanted NAME=... or NAME[...]; the inputs are {}", option, names()));
  if (name.empty()) return inputs[0];
  if (std::find(inputs.begin(), inputs.end(), name) == inputs.end())
    fail(ErrorCode::bad_input, "{}: there is no input \"{}\", there are: {}", option, name, names());
  return name;
}

namespace {

std::vector<std::string> names_of(const std::vector<Port>& ports) {
  std::vector<std::string> out;
  for (const auto& p : ports) out.push_back(p.name);
  return out;
}

}  // namespace

std::string input_named(const std::string& option, const std::string& name, const std::vector<Port>& ports) {
  return input_named(option, name, names_of(ports));
}

std::vector<std::pair<std::string, PartialShape>> shape_sizes(const std::vector<std::string>& values,
                                                              const std::vector<std::string>& inputs) {
  std::vector<std::pair<std::string, PartialShape>> out;
  for (const auto& text : values)
    for (const auto& [name, list] : named_lists("--shape", text)) {
      auto sizes = sizes_of("--shape " + text, list);
      const auto input = input_named("--shape " + text, name, inputs);
      if (std::any_of(out.begin(), out.end(), [&](const auto& o) { return o.first == input; }))
        throw UsageError(fmt::format("--shape: two shapes for input \"{}\"", input));
      out.emplace_back(input, std::move(sizes));
    }
  return out;
}

std::map<std::string, PartialShape> asked_sizes(const BenchmarkCommand& o, const std::vector<Port>& ports) {
  const auto all = shape_sizes(o.common.shape, names_of(ports));
  return {all.begin(), all.end()};
}

}  // namespace lamina::tool
