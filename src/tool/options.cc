#include "tool/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <type_traits>

namespace lamina::tool {
namespace {

/// CLI11 takes an empty word for 0, or for nothing said.
CLI::Option* wanting_words(CLI::Option* option) {
  return option->check(
      [](const std::string& word) { return std::string(word.empty() ? "wanted a value" : ""); });
}

}  // namespace

OptionHandle OptionHandle::required() {
  option_->required();
  return *this;
}

OptionHandle OptionHandle::excludes(OptionHandle other) const {
  option_->excludes(other.option_);
  return *this;
}

OptionHandle OptionHandle::hidden() {
  option_->group("");
  return *this;
}

bool OptionHandle::given() const { return option_->count() > 0; }

OptionHandle OptionSet::flag(const std::string& names, bool& value, const std::string& doc) {
  return OptionHandle(verb_.add_flag(names, value, doc));
}

OptionHandle OptionSet::text(const std::string& names, std::string& value, const std::string& type,
                             const std::string& doc) {
  return OptionHandle(wanting_words(verb_.add_option(names, value, doc))->type_name(type));
}

OptionHandle OptionSet::choice(const std::string& names, std::string& value,
                               const std::vector<std::string>& words, const std::string& type,
                               const std::string& doc) {
  return OptionHandle(
      wanting_words(verb_.add_option(names, value, doc))->check(CLI::IsMember(words))->type_name(type));
}

namespace {

/// Refuses NaN, which comparisons with a range would let pass.
std::string no_nan(const std::string& word) {
  const bool is_nan = std::isnan(std::strtod(word.c_str(), nullptr));
  return is_nan ? word + " is not a number" : "";
}

}  // namespace

template <class T>
OptionHandle OptionSet::number(const std::string& names, T& value, T least, T most, const std::string& type,
                               const std::string& doc) {
  auto* const option = wanting_words(verb_.add_option(names, value, doc));
  if (std::is_floating_point_v<T>) option->check(no_nan);
  return OptionHandle(option->check(CLI::Range(least, most))->type_name(type));
}
template OptionHandle OptionSet::number(const std::string&, int&, int, int, const std::string&,
                                        const std::string&);
template OptionHandle OptionSet::number(const std::string&, long&, long, long, const std::string&,
                                        const std::string&);
template OptionHandle OptionSet::number(const std::string&, unsigned&, unsigned, unsigned, const std::string&,
                                        const std::string&);
template OptionHandle OptionSet::number(const std::string&, std::size_t&, std::size_t, std::size_t,
                                        const std::string&, const std::string&);
template OptionHandle OptionSet::number(const std::string&, double&, double, double, const std::string&,
                                        const std::string&);

template <class T>
OptionHandle OptionSet::list(const std::string& names, std::vector<T>& values, const std::string& type,
                             const std::string& doc, char delimiter) {
  return OptionHandle(wanting_words(verb_.add_option(names, values, doc))
                          ->delimiter(delimiter)
                          ->type_name(type)
                          ->allow_extra_args(false));
}
template OptionHandle OptionSet::list(const std::string&, std::vector<std::string>&, const std::string&,
                                      const std::string&, char);
template OptionHandle OptionSet::list(const std::string&, std::vector<double>&, const std::string&,
                                      const std::string&, char);

OptionHandle OptionSet::words(const std::string& names, std::vector<std::string>& values, int count,
                              const std::string& type, const std::string& doc) {
  return OptionHandle(wanting_words(verb_.add_option(names, values, doc))->expected(count)->type_name(type));
}

std::vector<std::pair<std::string, std::string>> OptionSet::written() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto* option : verb_.parse_order()) {
    const auto name = option->get_name();
    const bool there =
        std::any_of(out.begin(), out.end(), [&](const auto& entry) { return entry.first == name; });
    if (there || option->get_group().empty()) continue;
    const bool flag = option->get_items_expected() == 0;
    out.emplace_back(name, flag ? "" : CLI::detail::join(option->results(), ","));
  }
  return out;
}

void OptionSet::remark(const std::string& text) { verb_.footer(text + "\n" + verb_.get_footer()); }

bool OptionSet::given(const std::string& name) const { return verb_.get_option(name)->count() > 0; }

}  // namespace lamina::tool
