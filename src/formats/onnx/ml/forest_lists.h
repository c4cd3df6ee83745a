#pragma once
/// Trees as the lists of numbers that the operators of ai.onnx.ml have them in.
#include <string>
#include <string_view>

#include "formats/onnx/ml/forest.h"

namespace lamina::onnx {

/// Numbers of an attribute, or of the tensor NAME_as_tensor that may stand for it.
struct Numbers {
  Floats values;
  bool is_double = false;
};
Numbers read_numbers(Call& c, const std::string& name);

struct ReadForest {
  Forest forest;
  bool is_double = false;
};
/// The trees of TreeEnsembleRegressor and TreeEnsembleClassifier: lists with an element for each node.
/// `of`: the prefix of the votes' attributes: "target" or "class".
ReadForest read_forest(Call& c, std::string_view of, std::int64_t targets);
/// The trees of TreeEnsemble (opset 5), where inner nodes and leaves have lists of their own.
ReadForest read_tree_ensemble(Call& c);

}  // namespace lamina::onnx
