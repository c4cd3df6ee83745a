#pragma once
/// The expression of FakeQuantize, used by the interpreter and by kernels so that they agree bit for bit.
/// Every unit that includes this is compiled with -ffp-contract=off: a fused multiply-add rounds differently.
#include <cmath>

namespace lamina {

/// `steps` is levels - 1.
inline float fake_quantize(float x, float input_low, float input_high, float output_low, float output_high,
                           float steps) {
  const float low = input_low < input_high ? input_low : input_high;
  const float high = input_low < input_high ? input_high : input_low;
  if (x <= low) return output_low;
  if (x > high) return output_high;
  const float level = std::nearbyintf((x - input_low) / (input_high - input_low) * steps);
  return level / steps * (output_high - output_low) + output_low;
}

}  // namespace lamina
