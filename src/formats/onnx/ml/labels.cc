/// ai.onnx.ml: labels as numbers, and what has texts or maps, which are no tensors.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/cancellation.h"
#include "formats/onnx/build.h"
#include "formats/onnx/ml/ml.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/sorting.h"

namespace lamina::onnx {
namespace {

// Reasons are short: a long one is left out of the error of a model.
constexpr const char* kTexts = "its keys or values are texts: use integer labels and categories";

/// The first of three spellings that the node has: a tensor, floats, integers; rank 1.
Tensor read_list(Call& c, std::string_view which) {
  const auto name = [&](std::string_view kind) { return fmt::format("{}_{}", which, kind); };
  if (c.has_attribute(name("strings"))) c.unsupported("{}", kTexts);
  if (auto t = c.tensor(name("tensor"))) {
    if (t->rank() != 1) c.fail("{} has rank {}, wanted 1", name("tensor"), t->rank());
    return t->to_aligned();
  }
  if (c.has_attribute(name("floats"))) {
    const auto values = c.floats(name("floats"));
    return from_doubles(ElementType::f32, {std::ssize(values)}, values);
  }
  if (c.has_attribute(name("int64s"))) {
    const auto values = c.ints(name("int64s"));
    return Tensor::of<std::int64_t>({std::ssize(values)}, values);
  }
  c.fail("has no {} (wanted {}_tensor, {}_floats or {}_int64s)", which, which, which, which);
}

/// What stands for other keys, of one element.
Tensor read_default(Call& c, ElementType type) {
  if (auto t = c.tensor("default_tensor")) {
    if (t->size() != 1) c.fail("default_tensor has {} elements, wanted 1", t->size());
    if (t->element_type() != type)
      c.fail("default_tensor is {}, wanted {} as the values are", name_of(t->element_type()), name_of(type));
    return t->to_aligned().reshaped({});
  }
  return is_float(type) ? from_doubles(type, {}, {c.f("default_float", -0.0)})
                        : from_ints(type, {}, {c.i("default_int64", -1)});
}

template <class T>
Tensor picked(const Tensor& from, const std::vector<std::size_t>& order) {
  const auto all = to_numbers<T>(from);
  std::vector<T> out;
  for (const auto i : order) out.push_back(all[i]);
  return from_numbers<T>(from.element_type(), {std::ssize(out)}, out);
}

/// Keys in ascending order, each once, with their values; of equal ones the first counts.
struct LabelTable {
  Tensor keys, values;
  std::optional<Tensor> of_nan;
};

LabelTable sorted_table(const Tensor& keys, const Tensor& values) {
  LabelTable out;
  with_number_type(keys.element_type(), [&]<class T>() {
    const auto k = to_numbers<T>(keys);
    std::vector<std::size_t> order(k.size()), once;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](auto i) { return k[i] != k[i]; });
    StopPoints points;
    std::stable_sort(order.begin(), order.end(),
                     comparing(points, [&](auto a, auto b) { return k[a] < k[b]; }));
    for (const auto i : order)
      if (once.empty() || k[once.back()] != k[i]) once.push_back(i);
    out.keys = picked<T>(keys, once);
    const auto nan = std::find_if(k.begin(), k.end(), [](T v) { return v != v; });
    with_number_type(values.element_type(), [&]<class V>() {
      out.values = picked<V>(values, once);
      if (nan != k.end())
        out.of_nan = picked<V>(values, {static_cast<std::size_t>(nan - k.begin())}).reshaped({});
    });
  });
  return out;
}

Values convert_label_encoder(Call& c) {
  if (c.has_attribute("classes_strings")) c.unsupported("{}", kTexts);
  const auto keys = read_list(c, "keys"), values = read_list(c, "values");
  if (keys.size() != values.size()) c.fail("{} keys for {} values", keys.size(), values.size());
  const auto x = c.in(0);
  if (c.known_element(x) != keys.element_type())
    c.fail("input 0 is {}, its keys are {}", name_of(c.element(x)), name_of(keys.element_type()));
  const auto other = c.constant(read_default(c, values.element_type()));
  auto table = sorted_table(keys, values);
  ValueId y = other;
  const auto count = static_cast<std::int64_t>(table.keys.size());
  if (count == 0) {
    y = c.filled(other, c.shape_of(x));
  } else {
    const auto k = c.constant(std::move(table.keys)), v = c.constant(std::move(table.values));
    const auto at = c.add(SearchSorted{false, ElementType::i64}, {k, x});
    const auto index = c.add(Minimum{}, {at, c.int_constant(count - 1)});
    const auto axis = c.int_constant(0);
    const auto is_found = c.add(Equal{}, {c.add(Gather{}, {k, index, axis}), x});
    y = c.add(Select{}, {is_found, c.add(Gather{}, {v, index, axis}), other});
  }
  // Before version 4 a NaN is not equal to a NaN among the keys.
  if (table.of_nan && c.version() >= 4)
    y = c.add(Select{}, {c.add(IsNaN{}, {x}), c.constant(std::move(*table.of_nan)), y});
  return {y};
}

/// The scores [N, classes] themselves: column i is class i of the node's list.
Values convert_zip_map(Call& c) {
  c.warn(
      "ZipMap: the output is the tensor of scores [N, classes], not a list of maps; convert with "
      "options={'zipmap': False} to get this tensor in other programs, too");
  return {c.in(0)};
}

Values refuse_texts(Call& c) { c.unsupported("{}", kTexts); }

Values refuse_maps(Call& c) { c.unsupported("it reads maps: give the model rows of numbers"); }

}  // namespace

void register_ml_labels(ConverterTable& t) {
  t.add(kMl, "CastMap", refuse_maps);
  t.add(kMl, "CategoryMapper", refuse_texts);
  t.add(kMl, "DictVectorizer", refuse_maps);
  t.add(kMl, "LabelEncoder", convert_label_encoder);
  t.add(kMl, "ZipMap", convert_zip_map);
}

}  // namespace lamina::onnx
