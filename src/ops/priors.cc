#include <algorithm>
#include <cmath>

#include "ops/detection.h"
#include "ops/require.h"

namespace lamina {

namespace {

// Everything is computed in f32, as the frameworks that trained on these boxes do.

std::vector<float> to_f32(const Floats& values) { return {values.begin(), values.end()}; }

void require_variance(const InferContext& c, const Floats& variance) {
  c.require(variance.empty() || variance.size() == 1 || variance.size() == 4,
            "variance has {} values, wanted 1 or 4", variance.size());
}

/// Type [2, H * W * priors * 4] from the first input's value.
void infer_boxes(InferContext& c, std::int64_t priors) {
  for (std::size_t i = 0; i < 2; ++i) {
    require_rank(c, i, 1, i == 0 ? "output size" : "image size");
    require_integer(c, i, i == 0 ? "output size" : "image size");
    if (c.shape(i).ranked())
      c.require(c.shape(i)[0].fits(2), "input {} has shape {}, wanted 2 elements", i, to_string(c.shape(i)));
  }
  const auto size = c.dims(0);
  Dim boxes;
  if (size && size->size() == 2) {
    const auto &h = (*size)[0], &w = (*size)[1];
    c.require(h.low() >= 0 && w.low() >= 0, "output size is {} x {}, wanted 0 or more", h.low(), w.low());
    boxes = h * w * Dim(priors * 4);
  }
  c.set(0, ElementType::f32, Shape{Dim(2), boxes});
}

/// The second row: one variance for all coordinates, or one for each; 0.1 when none is given.
void put_variances(std::vector<float>& out, const Floats& variance) {
  const auto list = variance.empty() ? std::vector<float>{0.1f} : to_f32(variance);
  const auto half = out.size() / 2;
  for (std::size_t i = 0; i < half; ++i) out[half + i] = list[i % list.size()];
}

/// 1, then the given ratios and (flip) their inverses, each once.
std::vector<float> distinct_ratios(const PriorBox& op) {
  std::vector<float> out{1.0f};
  for (const float ratio : to_f32(op.aspect_ratio)) {
    if (std::any_of(out.begin(), out.end(), [&](float r) { return std::fabs(r - ratio) < 1e-6; })) continue;
    out.push_back(ratio);
    if (op.flip) out.push_back(1.0f / ratio);
  }
  return out;
}

/// A prior relative to the centre of its cell.
struct Prior {
  float dx = 0, dy = 0, half_width = 0, half_height = 0;
  bool inside = false;  ///< its corners are held inside the image, even without clip
};

/// Boxes of fixed sizes, spread `density` x `density` times over a cell.
void add_fixed(std::vector<Prior>& out, const PriorBox& op, const std::vector<float>& ratios) {
  for (std::size_t s = 0; s < op.fixed_size.size(); ++s) {
    const auto size = static_cast<float>(op.fixed_size[s]);
    const auto whole = static_cast<std::int64_t>(size);
    const auto density = op.density.empty() ? 1 : static_cast<std::int64_t>(op.density[s]);
    const auto shift = static_cast<std::int64_t>(size / static_cast<float>(density));
    const auto spread = [&](float half_width, float half_height) {
      const auto first = static_cast<float>(shift) / 2.0f - static_cast<float>(whole / 2);
      for (std::int64_t r = 0; r < density; ++r)
        for (std::int64_t k = 0; k < density; ++k)
          out.push_back({first + static_cast<float>(k * shift), first + static_cast<float>(r * shift),
                         half_width, half_height, true});
    };
    if (!op.fixed_ratio.empty()) {
      for (const float ratio : to_f32(op.fixed_ratio))
        spread(size * 0.5f * std::sqrt(ratio), size * 0.5f / std::sqrt(ratio));
      continue;
    }
    spread(static_cast<float>(whole) * 0.5f, static_cast<float>(whole) * 0.5f);
    for (std::size_t i = 1; i < ratios.size(); ++i)
      spread(size * 0.5f * std::sqrt(ratios[i]), size * 0.5f / std::sqrt(ratios[i]));
  }
}

/// All priors of one cell; sizes are multiplied by `scale`.
std::vector<Prior> priors_of_cell(const PriorBox& op, float scale) {
  const auto ratios = distinct_ratios(op);
  std::vector<Prior> out;
  add_fixed(out, op, ratios);
  auto min_size = to_f32(op.min_size);
  for (auto& s : min_size) s *= scale;
  const auto max_size = to_f32(op.max_size);
  for (std::size_t m = 0; m < min_size.size(); ++m) {
    const auto add_ratios = [&] {
      if (!op.scale_all_sizes && m + 1 != min_size.size()) return;
      const float size = min_size[op.scale_all_sizes ? m : 0];
      for (std::size_t i = 1; i < ratios.size(); ++i)
        out.push_back({0, 0, size * 0.5f * std::sqrt(ratios[i]), size * 0.5f / std::sqrt(ratios[i])});
    };
    const auto add_max = [&] {
      if (m >= max_size.size()) return;
      const float half = std::sqrt(min_size[m] * max_size[m]) * 0.5f;
      out.push_back({0, 0, half, half});
    };
    out.push_back({0, 0, min_size[m] * 0.5f, min_size[m] * 0.5f});
    if (op.min_max_aspect_ratios_order) add_max();
    add_ratios();
    if (!op.min_max_aspect_ratios_order) add_max();
  }
  return out;
}

void require_positive(const InferContext& c, const Floats& values, std::string_view what) {
  for (const double v : values)
    c.require(v > 0 && v < 1e9, "{} has the value {}, wanted more than 0", what, v);
}

}  // namespace

void PriorBox::infer(InferContext& c) const {
  require_variance(c, variance);
  require_positive(c, aspect_ratio, "aspect_ratio");
  require_positive(c, fixed_ratio, "fixed_ratio");
  require_positive(c, fixed_size, "fixed_size");
  require_positive(c, min_size, "min_size");
  c.require(max_size.size() <= min_size.size(), "{} max_size for {} min_size, wanted no more",
            max_size.size(), min_size.size());
  c.require(density.empty() || density.size() == fixed_size.size(),
            "{} densities for {} fixed_size, wanted as many", density.size(), fixed_size.size());
  double expected = 0;
  for (const double d : density) {
    c.require(d >= 1 && d <= 1024, "density has the value {}, wanted 1..1024", d);
    expected += d * d * static_cast<double>(1 + 2 * aspect_ratio.size() + fixed_ratio.size());
  }
  c.require(expected < 1e6, "density asks for {} boxes in a cell", expected);
  infer_boxes(c, static_cast<std::int64_t>(priors_of_cell(*this, 1).size()));
}

void PriorBox::evaluate(EvalContext& c) const {
  const auto size = c.ints(0), image = c.ints(1);
  const auto height = static_cast<float>(image.at(0)), width = static_cast<float>(image.at(1));
  auto constant_step = static_cast<float>(step);
  if (!scale_all_sizes)
    constant_step = step == -1 ? height / static_cast<float>(size[0]) : constant_step * height;
  const auto priors = priors_of_cell(*this, scale_all_sizes ? 1.0f : height);
  const bool automatic = constant_step == 0;
  const float step_x = automatic ? width / static_cast<float>(size[1]) : constant_step;
  const float step_y = automatic ? height / static_cast<float>(size[0]) : constant_step;
  const float shift = automatic ? 0.5f : static_cast<float>(offset);
  const float per_width = 1.0f / width, per_height = 1.0f / height;
  std::vector<float> out(c.out().size());
  auto to = out.begin();
  for (std::int64_t y = 0; y < size[0]; ++y)
    for (std::int64_t x = 0; x < size[1]; ++x) {
      const float center_x = (shift + static_cast<float>(x)) * step_x,
                  center_y = (shift + static_cast<float>(y)) * step_y;
      for (const auto& p : priors) {
        const float px = center_x + p.dx, py = center_y + p.dy;
        const float box[4] = {(px - p.half_width) * per_width, (py - p.half_height) * per_height,
                              (px + p.half_width) * per_width, (py + p.half_height) * per_height};
        for (int i = 0; i < 4; ++i) {
          float v = box[i];
          if (p.inside) v = i < 2 ? std::max(v, 0.0f) : std::min(v, 1.0f);
          *to++ = clip ? std::min(std::max(v, 0.0f), 1.0f) : v;
        }
      }
    }
  put_variances(out, variance);
  c.store(0, out);
}

void PriorBoxClustered::infer(InferContext& c) const {
  require_variance(c, variance);
  c.require(width.size() == height.size(), "{} widths for {} heights, wanted as many", width.size(),
            height.size());
  infer_boxes(c, static_cast<std::int64_t>(width.size()));
}

void PriorBoxClustered::evaluate(EvalContext& c) const {
  const auto size = c.ints(0), image = c.ints(1);
  const auto image_height = static_cast<float>(image.at(0)), image_width = static_cast<float>(image.at(1));
  auto step_x = static_cast<float>(step_w == 0 ? step : step_w),
       step_y = static_cast<float>(step_h == 0 ? step : step_h);
  if (step_x == 0 && step_y == 0) {
    step_x = image_width / static_cast<float>(size[1]);
    step_y = image_height / static_cast<float>(size[0]);
  }
  const auto widths = to_f32(width), heights = to_f32(height);
  const auto shift = static_cast<float>(offset);
  std::vector<float> out(c.out().size());
  auto to = out.begin();
  for (std::int64_t y = 0; y < size[0]; ++y)
    for (std::int64_t x = 0; x < size[1]; ++x) {
      const float center_x = (static_cast<float>(x) + shift) * step_x,
                  center_y = (static_cast<float>(y) + shift) * step_y;
      for (std::size_t s = 0; s < widths.size(); ++s) {
        const float box[4] = {
            (center_x - widths[s] / 2) / image_width, (center_y - heights[s] / 2) / image_height,
            (center_x + widths[s] / 2) / image_width, (center_y + heights[s] / 2) / image_height};
        for (const float v : box) *to++ = clip ? std::min(std::max(v, 0.0f), 1.0f) : v;
      }
    }
  put_variances(out, variance);
  c.store(0, out);
}

}  // namespace lamina
