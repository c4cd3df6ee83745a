#include "kernels/native/stages/finish.h"

#include <limits>

#include "ops/activation.h"
#include "ops/elementwise.h"

namespace lamina {
std::optional<Finish> finish_of(const Stage& stage) {
  const auto& op = stage.node->op;
  if (stage.running != 0) return std::nullopt;
  Finish f;
  f.kind = Finish::Kind::clamp;
  f.high = std::numeric_limits<float>::infinity();
  if (op.is<Relu>()) return f;
  if (const auto* c = op.as<Clamp>()) {
    f.low = static_cast<float>(c->min);
    f.high = static_cast<float>(c->max);
    return f;
  }
  if (op.is<PRelu>())
    if (const auto slope = single_number(stage.constant)) {
      f.kind = Finish::Kind::leaky;
      f.slope = *slope;
      return f;
    }
  return std::nullopt;
}

}  // namespace lamina
