#include "tool/classes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/mapped_file.h"

namespace lamina::tool {

std::vector<std::string> read_labels(const std::string& path) {
  const auto file = MappedFile::open(path);
  auto text = file->text();
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.find('\0') != std::string_view::npos)
    fail(ErrorCode::bad_file, "{}: is no text, wanted a name on each line", path);
  std::vector<std::string> out;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.emplace_back(line);
  }
  while (!out.empty() && out.back().empty()) out.pop_back();
  if (out.empty()) fail(ErrorCode::bad_file, "{}: is empty, wanted a name on each line", path);
  return out;
}

bool looks_like_classes(const Tensor& t, std::size_t labels) {
  if (!is_float(t.element_type()) || t.rank() == 0) return false;
  const auto longest = *std::max_element(t.shape().begin(), t.shape().end());
  if (longest < 1 || static_cast<std::size_t>(longest) != t.size()) return false;
  return t.size() == labels || (longest >= 10 && longest <= 100000);
}

std::vector<std::size_t> best(const std::vector<double>& values, std::size_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::size_t a, std::size_t b) {
    if (std::isnan(values[a]) || std::isnan(values[b]))
      return std::isnan(values[a]) == std::isnan(values[b]) ? a < b : std::isnan(values[b]);
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  };
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), before);
  order.resize(count);
  return order;
}

}  // namespace lamina::tool
