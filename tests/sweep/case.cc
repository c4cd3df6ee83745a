#include "tests/sweep/case.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/element_types.h"
#include "base/error.h"
#include "tests/sweep/stages.h"

namespace lamina::sweep {
namespace {

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all{
      {"conv", Kind::convolution}, {"deconv", Kind::deconvolution}, {"matmul", Kind::product}};
  return all;
}

std::string_view name_of(Kind kind) {
  for (const auto& [name, k] : kinds())
    if (k == kind) return name;
  return "graph";
}

Ints numbers_of(const std::string& line, const std::string& text) {
  Ints out;
  std::stringstream in(text);
  try {
    for (std::string n; std::getline(in, n, ',');) out.push_back(std::stoll(n));
  } catch (const std::logic_error&) {
    fail(ErrorCode::bad_option, "case \"{}\": \"{}\" is no list of numbers", line, text);
  }
  return out;
}

std::int64_t product_of(const Dims& dims, std::size_t from) {
  std::int64_t n = 1;
  for (auto i = from; i < dims.size(); ++i) n *= dims[i];
  return n;
}

std::int64_t out_size(const Case& c, std::size_t axis) {
  const auto in = c.x[axis + 2], extent = (c.w[axis + 2] - 1) * c.dilations[axis] + 1,
             pads = c.begin[axis] + c.end[axis];
  if (c.kind == Kind::deconvolution) return c.strides[axis] * (in - 1) + extent - pads + c.padding[axis];
  return in + pads < extent ? 0 : (in + pads - extent) / c.strides[axis] + 1;
}

Dims result_of_product(const Case& c) {
  Dims a = c.x, b = c.w;
  if (a.size() < 2 || b.size() < 2) return {};
  if (c.transpose_x) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (c.transpose_w) std::swap(b[b.size() - 1], b[b.size() - 2]);
  if (a.back() != b[b.size() - 2]) return {};
  const auto rank = std::max(a.size(), b.size());
  Dims y(rank, 1);
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const auto of = [&](const Dims& d) { return i + d.size() < rank ? 1 : d[i + d.size() - rank]; };
    if (of(a) != of(b) && of(a) != 1 && of(b) != 1) return {};
    y[i] = std::max(of(a), of(b));
  }
  y[rank - 2] = a[a.size() - 2];
  y[rank - 1] = b.back();
  return y;
}

void fill_in(Case& c) {
  const auto axes = c.x.size() < 2 ? 0 : c.x.size() - 2;
  for (auto* list : {&c.strides, &c.dilations})
    if (list->empty()) list->assign(axes, 1);
  for (auto* list : {&c.begin, &c.end, &c.padding})
    if (list->empty()) list->assign(axes, 0);
}

}  // namespace

std::string to_line(const Case& c) {
  if (c.kind == Kind::graph) {
    auto text = c.text;
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3)
      text.replace(at, 1, " ; ");
    return text;
  }
  auto line = fmt::format("{} {} x={} w={}", name_of(c.kind), lamina::name_of(c.type), fmt::join(c.x, ","),
                          fmt::join(c.w, ","));
  const auto list = [&](const char* name, const Ints& values, std::int64_t usual) {
    if (std::any_of(values.begin(), values.end(), [&](auto n) { return n != usual; }))
      line += fmt::format(" {}={}", name, fmt::join(values, ","));
  };
  list("strides", c.strides, 1), list("dilations", c.dilations, 1), list("begin", c.begin, 0);
  list("end", c.end, 0), list("padding", c.padding, 0);
  if (c.groups != 1) line += fmt::format(" groups={}", c.groups);
  for (const auto& [flag, word] :
       {std::pair{c.bias, "bias"}, {c.given, "given"}, {c.transpose_x, "tx"}, {c.transpose_w, "tw"}})
    if (flag) line += fmt::format(" {}", word);
  for (const auto& stage : c.stages) line += " " + stage;
  return line + fmt::format(" seed={}", c.seed);
}

Case case_of(const std::string& line) {
  Case c;
  std::stringstream in(line);
  std::string word;
  in >> word;
  if (word == "graph") {
    c.kind = Kind::graph;
    c.text = line;
    for (std::size_t at = 0; (at = c.text.find(';', at)) != std::string::npos;) c.text[at] = '\n';
    return c;
  }
  const auto kind = kinds().find(word);
  in >> word;
  const auto type = element_type_named(word);
  if (kind == kinds().end() || !type)
    fail(ErrorCode::bad_option, "case \"{}\": wanted conv, deconv, matmul or graph, then an element type",
         line);
  c.kind = kind->second;
  c.type = *type;
  const std::map<std::string, Ints*> lists{
      {"x", &c.x},         {"w", &c.w},     {"strides", &c.strides}, {"dilations", &c.dilations},
      {"begin", &c.begin}, {"end", &c.end}, {"padding", &c.padding}};
  const std::map<std::string, bool*> flags{
      {"bias", &c.bias}, {"given", &c.given}, {"tx", &c.transpose_x}, {"tw", &c.transpose_w}};
  while (in >> word) {
    const auto equals = word.find('=');
    const auto key = word.substr(0, equals);
    const auto value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (const auto flag = flags.find(word); flag != flags.end())
      *flag->second = true;
    else if (const auto list = lists.find(key); list != lists.end())
      *list->second = numbers_of(line, value);
    else if (key == "groups" || key == "seed")
      (key == "groups" ? c.groups : reinterpret_cast<std::int64_t&>(c.seed)) = numbers_of(line, value).at(0);
    else if (is_stage(word))
      c.stages.push_back(word);
    else
      fail(ErrorCode::bad_option, "case \"{}\": unknown word \"{}\"", line, word);
  }
  fill_in(c);
  if (result_of(c).empty()) fail(ErrorCode::bad_option, "case \"{}\": sizes that do not fit", line);
  return c;
}

std::string family_of(const Case& c) {
  if (c.kind != Kind::graph) return fmt::format("{} {}", name_of(c.kind), lamina::name_of(c.type));
  const auto at = c.text.rfind("y = ");
  return at == std::string::npos ? "graph" : c.text.substr(at + 4, c.text.find('(', at) - at - 4);
}

Dims result_of(const Case& c) {
  if (c.kind == Kind::product) return result_of_product(c);
  const auto rank = c.x.size();
  if (rank < 3 || rank > 5 || c.w.size() != rank || c.groups < 1) return {};
  for (const auto* list : {&c.strides, &c.dilations, &c.begin, &c.end, &c.padding})
    if (list->size() != rank - 2) return {};
  const bool transposed = c.kind == Kind::deconvolution;
  if (transposed ? c.w[0] != c.x[1] || c.x[1] % c.groups != 0
                 : c.w[1] * c.groups != c.x[1] || c.w[0] % c.groups != 0)
    return {};
  Dims y{c.x[0], transposed ? c.w[1] * c.groups : c.w[0]};
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    y.push_back(out_size(c, i));
    if (y.back() < 1) return {};
  }
  return y;
}

std::int64_t depth_of(const Case& c) {
  if (c.kind == Kind::product) return c.transpose_x ? c.x.end()[-2] : c.x.back();
  return product_of(c.w, 2) * (c.kind == Kind::deconvolution ? c.x[1] / c.groups : c.w[1]);
}

double work_of(const Case& c) {
  if (c.kind == Kind::deconvolution)
    return static_cast<double>(product_of(c.x, 0)) * static_cast<double>(product_of(c.w, 1));
  return static_cast<double>(product_of(result_of(c), 0)) * static_cast<double>(depth_of(c));
}

double bytes_of(const Case& c) {
  return bits_of(c.type) / 8.0 * static_cast<double>(product_of(c.x, 0) + product_of(c.w, 0)) +
         4.0 * static_cast<double>(product_of(result_of(c), 0));
}

}  // namespace lamina::sweep
