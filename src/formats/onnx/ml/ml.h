#pragma once
/// What the families of ai.onnx.ml share: rows of features, scores, labels.
#include "formats/onnx/call.h"

namespace lamina::onnx {

inline constexpr std::string_view kMl = "ai.onnx.ml";

void register_ml_features(ConverterTable& t);
void register_ml_labels(ConverterTable& t);
void register_ml_linear(ConverterTable& t);
void register_ml_trees(ConverterTable& t);
void register_ml_svm(ConverterTable& t);

/// [N, features] of f32, or of f64 where the input has that and `keep_double` says so; a vector is one row.
ValueId feature_rows(Call& c, std::size_t input, bool keep_double = false);

/// What scores go through, by the name or, in TreeEnsemble, the number that a node has.
enum class PostTransform : std::uint8_t { none, softmax, logistic, softmax_zero, probit };
PostTransform post_transform_of(const Call& c);
PostTransform post_transform_numbered(const Call& c, std::int64_t number);
/// Applies post_transform to scores [N, classes].
ValueId post_transformed(Call& c, ValueId scores, PostTransform how);

/// The labels of a classifier. Throws NotSupported for texts, unless nobody wants the labels; then they are
/// numbers from 0 on.
Ints class_labels(const Call& c, std::string_view integers, std::string_view texts);
/// Labels of the classes with the highest scores, i64 [N].
ValueId best_labels(Call& c, ValueId scores, const Ints& labels);
/// Labels of two classes, chosen by booleans [N, 1].
ValueId chosen_labels(Call& c, ValueId is_second, std::int64_t first, std::int64_t second);
/// Scores [N, 2] of two classes by one score [N, 1], that of the second: the first has what is left of a
/// probability, or the other sign. ONNX Runtime's way: one score goes through LOGISTIC and PROBIT only.
ValueId scores_of_two(Call& c, ValueId score, PostTransform how, bool is_probability);
/// One target's score, which goes through PROBIT only (ONNX Runtime's way; says so where that matters).
ValueId single_score(Call& c, ValueId score, PostTransform how);

ValueId negated(Call& c, ValueId v);
/// f32 [count].
ValueId floats_constant(Call& c, const Floats& values, ElementType type = ElementType::f32);

}  // namespace lamina::onnx
