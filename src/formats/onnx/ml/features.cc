/// ai.onnx.ml: what is done to features before a model sees them.
#include "formats/onnx/build.h"
#include "formats/onnx/ml/ml.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

/// One number for all features or one for each.
ValueId per_feature(Call& c, const Floats& values, ValueId x, std::string_view what) {
  const auto& shape = c.shape(x);
  const auto count = std::ssize(values);
  if (count == 0) c.fail("{} is empty, wanted one number, or one for each feature", what);
  if (count > 1 && shape.ranked() && (shape.rank() == 0 || !shape[shape.rank() - 1].fits(count)))
    c.fail("{} has {} numbers for features of {}", what, count, to_string(shape));
  return floats_constant(c, values, c.known_element(x));
}

/// Gives f32; f64 and integers are computed in f64.
Values convert_scaler(Call& c) {
  const auto element = c.known_element(c.in(0));
  auto x = element == ElementType::f32 ? c.in(0) : c.convert(c.in(0), ElementType::f64);
  const auto offset = c.floats("offset"), scale = c.floats("scale");
  if (!offset.empty()) x = subtract(c, x, per_feature(c, offset, x, "offset"));
  if (!scale.empty()) x = multiply(c, x, per_feature(c, scale, x, "scale"));
  return {c.convert(x, ElementType::f32)};
}

/// Rows whose norm is 0 stay as they are.
Values convert_normalizer(Call& c) {
  const auto norm = c.s("norm", "MAX");
  auto x = c.in(0);
  const auto rank = c.known_rank(x);
  if (rank != 1 && rank != 2) c.fail("input 0 has rank {}, wanted 1 or 2", rank);
  x = c.convert(x, c.known_element(x) == ElementType::f32 ? ElementType::f32 : ElementType::f64);
  const auto last = c.ints_constant({-1});
  ValueId by;
  if (norm == "MAX")
    by = c.add(ReduceMax{{true}}, {x, last});
  else if (norm == "L1")
    by = c.add(ReduceL1{{true}}, {x, last});
  else if (norm == "L2")
    by = c.add(ReduceL2{{true}}, {x, last});
  else
    c.fail("norm is \"{}\", wanted MAX, L1 or L2", norm);
  const auto is_zero = c.add(Equal{}, {by, c.number_like(0, x)});
  const auto y = divide(c, x, c.add(Select{}, {is_zero, c.number_like(1, x), by}));
  return {c.convert(y, ElementType::f32)};
}

Values convert_imputer(Call& c) {
  const auto x = c.in(0);
  const auto element = c.known_element(x);
  if (is_float(element)) {
    const auto missing = c.f("replaced_value_float", 0);
    const auto values = per_feature(c, c.floats("imputed_value_floats"), x, "imputed_value_floats");
    const auto is_missing =
        missing != missing ? c.add(IsNaN{}, {x}) : c.add(Equal{}, {x, c.number_like(missing, x)});
    return {c.add(Select{}, {is_missing, values, x})};
  }
  const auto list = c.ints("imputed_value_int64s");
  per_feature(c, Floats(list.begin(), list.end()), x, "imputed_value_int64s");
  const auto values = c.convert(c.ints_constant(list), element);
  const auto missing = c.convert(c.int_constant(c.i("replaced_value_int64", 0)), element);
  return {c.add(Select{}, {c.add(Equal{}, {x, missing}), values, x})};
}

Values convert_binarizer(Call& c) {
  const auto x = c.in(0);
  const auto threshold = c.number(c.f("threshold", 0), c.known_element(x));
  return {c.convert(c.add(Greater{}, {x, threshold}), c.known_element(x))};
}

/// Columns by their numbers. A vector is one row.
Values convert_array_feature_extractor(Call& c) {
  const auto x = c.in(0);
  const auto rank = static_cast<std::int64_t>(c.known_rank(x));
  if (rank == 0) c.fail("input 0 is one number, wanted rows of features");
  const auto y =
      c.add(Gather{0, OutOfRange::error}, {x, c.reshape(c.in(1), Ints{-1}), c.int_constant(rank - 1)});
  return {rank == 1 ? c.unsqueeze(y, {0}) : y};
}

/// Inputs side by side, each cut to its number of columns or filled up with zeros.
Values convert_feature_vectorizer(Call& c) {
  const auto widths = c.ints("inputdimensions");
  if (widths.size() != c.inputs() || widths.empty())
    c.fail("inputdimensions has {} numbers for {} inputs", widths.size(), c.inputs());
  Values parts;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] < 0) c.fail("inputdimensions[{}] is {}, wanted 0 or more", i, widths[i]);
    auto x = feature_rows(c, i);
    const auto& shape = c.shape(x);
    if (!shape.ranked() || !shape[1].known())
      c.unsupported("the number of columns of input {} is not known before the model runs", i);
    const auto has = shape[1].size();
    if (widths[i] < has) x = c.slice(x, 1, 0, widths[i]);
    parts.push_back(x);
    if (widths[i] <= has) continue;
    spend(c, widths[i] - has);
    const auto rows = c.slice(c.shape_of(x), 0, 0, 1);
    parts.push_back(
        c.filled(c.number(0, ElementType::f32), c.concat({rows, c.ints_constant({widths[i] - has})}, 0)));
  }
  return {c.concat(std::move(parts), 1)};
}

/// Where no category fits, an index that is out of range makes the run fail, unless `zeros` says that the row
/// is to be 0.
Values convert_one_hot_encoder(Call& c) {
  const auto categories = c.ints("cats_int64s");
  if (categories.empty()) {
    if (const auto* texts = c.find("cats_strings"); texts && !texts->strings.empty())
      c.unsupported("its categories are texts: encode them as integers first");
    c.fail("has no categories");
  }
  const auto x = c.unsqueeze(c.convert(c.in(0), ElementType::i64), {-1});
  const auto is_it = c.add(Equal{}, {x, c.ints_constant(categories)});
  const auto y = c.convert(is_it, ElementType::f32);
  if (c.flag("zeros", true)) return {y};
  const auto is_known = c.add(ReduceLogicalOr{{true}}, {is_it, c.ints_constant({-1})});
  const auto index = c.add(Select{}, {is_known, c.int_constant(0), c.int_constant(1)});
  const auto one = floats_constant(c, {1.0});
  return {multiply(c, y, c.add(Gather{0, OutOfRange::error}, {one, index, c.int_constant(0)}))};
}

}  // namespace

void register_ml_features(ConverterTable& t) {
  t.add(kMl, "ArrayFeatureExtractor", convert_array_feature_extractor);
  t.add(kMl, "Binarizer", convert_binarizer);
  t.add(kMl, "FeatureVectorizer", convert_feature_vectorizer);
  t.add(kMl, "Imputer", convert_imputer);
  t.add(kMl, "Normalizer", convert_normalizer);
  t.add(kMl, "OneHotEncoder", convert_one_hot_encoder);
  t.add(kMl, "Scaler", convert_scaler);
}

}  // namespace lamina::onnx
