#include "offline/preprocessing_options.h"

#include <algorithm>
#include <cmath>

#include "base/option_words.h"
#include "offline/faq.h"

namespace lamina {

std::vector<NamedNumbers> numbers_of(const std::string& option, const std::vector<ChannelValues>& all) {
  std::vector<NamedNumbers> out;
  std::ptrdiff_t named = 0;
  for (const auto& one : all) {
    if (one.values.empty() ||
        !std::all_of(one.values.begin(), one.values.end(), [](double v) { return std::isfinite(v); }))
      fail_faq(ErrorCode::bad_option, 101, "{}: wanted finite numbers for each input", option);
    named += !one.input.empty();
    out.push_back({one.input, one.values});
  }
  if (named != 0 && named != std::ssize(out))
    fail_faq(ErrorCode::bad_option, 101, "{}: wanted a name before every list, or before none", option);
  return out;
}

std::vector<LayoutRequest> layout_requests(const std::string& option, const std::vector<LayoutChange>& all) {
  std::vector<LayoutRequest> out;
  for (const auto& l : all) {
    if (l.source.empty())
      fail(ErrorCode::bad_option, "{}{}{}: wanted the layout in the model, too", option,
           l.name.empty() ? "" : " ", l.name);
    out.push_back({l.name, layout_letters(option + " " + l.name, l.source), {}});
    if (!l.target.empty()) out.back().target = layout_letters(option + " " + l.name, l.target);
  }
  return out;
}

}  // namespace lamina
