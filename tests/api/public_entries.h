#pragma once
/// The functions of the public interface, and calls of each.
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "lamina/benchmark.h"
#include "lamina/explain.h"
#include "tests/api/small_models.h"

namespace lamina::testing {

/// What the entries are called with.
struct Objects {
  Model model = model_of(sums());
  CompiledModel compiled{model};
  Request request = compiled.create_request();
  Benchmark benchmark{compiled};
  Tensor tensor = rows(2, 1);
  Explanation explanation = explain(compiled, {.shapes = {{2, 4}, {2, 4}}});
  Options options;
  std::ostringstream out;

  Objects() {
    request.set_input(0, tensor);
    request.set_input(1, tensor);
    request.run();
  }
};

/// By the names in exports.txt.
const std::map<std::string, std::function<void(Objects&)>>& entries();

}  // namespace lamina::testing
