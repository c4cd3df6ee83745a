#pragma once
/// Requests of two models, with so many streams.
#include <algorithm>

#include "tests/api/small_models.h"

namespace lamina::testing {

/// A compiled model of sums with so many streams.
class Requests : public ::testing::TestWithParam<int> {
 protected:
  CompiledModel sums_ = CompiledModel(model_of(sums()), {.streams = GetParam()});
  CompiledModel slow_ =
      CompiledModel(model_of(products(40, 384)), {.threads = 1, .streams = std::min(GetParam(), 1)});

  Request ready(float a = 1, float b = 2) const {
    auto request = sums_.create_request();
    request.set_input(0, rows(2, a));
    request.set_input(1, rows(2, b));
    return request;
  }
  Request slow_one() const {
    auto request = slow_.create_request();
    request.set_input(0, square(384, 0.001F));
    return request;
  }
  bool streams() const { return GetParam() > 0; }
};

}  // namespace lamina::testing
