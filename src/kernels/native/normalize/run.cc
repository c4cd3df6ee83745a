#include <algorithm>
#include <cmath>
#include <optional>

#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/native/normalize/run.h"

namespace lamina {
namespace {

/// Elements that are summed in f32, before f64 takes over: few enough for its digits, and still near when
/// they are scaled.
constexpr std::int64_t kChunk = 4096;
constexpr std::int64_t kBlock = 256;  // columns taken at once

using Measure = Normalization::Measure;
using Affine = Normalization::Affine;

/// Mean of two parts' means, `share` of all elements being in the other part. Infinite means stay.
double merged_mean(double mean, double other, double share) {
  const double difference = other - mean;
  return std::isfinite(difference) ? mean + difference * share : mean + other;
}

/// Mean and sum of squared differences to it, or the sum of squares alone.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  void add(double n, double other_mean, double other_squares) {
    if (count == 0) {
      *this = {n, other_mean, other_squares};
      return;
    }
    const double all = count + n, difference = other_mean - mean;
    mean = merged_mean(mean, other_mean, n / all);
    squares += other_squares + difference * difference * (count * n / all);
    count = all;
  }
  void add_squares(double n, double sum) {
    count += n;
    squares += sum;
  }
  void add(const Moments& m, bool squares_only) {
    if (squares_only)
      add_squares(m.count, m.squares);
    else
      add(m.count, m.mean, m.squares);
  }
};

/// Moments of numbers whose squares leave the range of f32.
Moments exact_moments(const float* x, std::int64_t count, std::int64_t stride, bool squares_only) {
  Moments m{static_cast<double>(count), 0, 0};
  for (std::int64_t i = 0; i < count && !squares_only; ++i)
    m.mean += static_cast<double>(x[i * stride]) / m.count;
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(x[i * stride]) - m.mean;
    m.squares += difference * difference;
  }
  return m;
}

/// y = (x - shift) * factor + offset; shift and offset share the mean.
struct Scaling {
  float shift, factor, offset;
};

Scaling scaling_of(const Normalization& c, const Moments& m) {
  using Divisor = Normalization::Divisor;
  const double v = c.measure == Measure::variance || c.mean_of_squares ? m.squares / m.count : m.squares;
  double divisor = 1;
  switch (c.divisor) {
    case Divisor::one:
      break;
    case Divisor::sqrt_of_v_plus_eps:
      divisor = std::sqrt(v + c.eps);
      break;
    case Divisor::sqrt_of_v_plus_eps_outside:
      divisor = std::sqrt(v) + c.eps;
      break;
    case Divisor::sqrt_of_most:
      divisor = std::sqrt(std::max(v, c.eps));
      break;
  }
  const double mean = c.measure == Measure::squares ? 0 : m.mean;
  const auto shift = static_cast<float>(mean);
  const double rest = std::isfinite(shift) ? static_cast<double>(shift) - mean : 0;
  return {shift, static_cast<float>(1 / divisor), static_cast<float>(rest / divisor)};
}

class Normalizer {
 public:
  Normalizer(const Normalization& code, const RunArgs& args)
      : c_(code),
        args_(args),
        loops_(normalize_loops()),
        x_(static_cast<const float*>(args.in[0])),
        y_(static_cast<float*>(args.out[0])) {
    scale_ = c_.scale.valid() ? c_.scale.data<float>().data()
             : c_.reads_scale ? static_cast<const float*>(args.in[1])
                              : nullptr;
    bias_ = c_.bias.valid() ? c_.bias.data<float>().data()
            : c_.reads_bias ? static_cast<const float*>(args.in[2])
                            : nullptr;
  }

  void run() {
    if (c_.columns == 1)
      c_.parts > 1 ? lines_in_parts() : is_short() ? short_lines() : whole_lines();
    else
      c_.in_passes() ? columns_in_passes() : whole_columns();
  }

 private:
  using Run = std::optional<StageRun>;
  void start(Run& run) const {
    if (c_.stages && !c_.stages->empty()) run.emplace(*c_.stages, args_.in);
  }
  static void finish(Run& run, float* y, std::int64_t first, std::int64_t count) {
    if (run) (*run)(y, y, first, count);
  }
  bool squares_only() const { return c_.measure == Measure::squares; }
  /// A sum of squares in f32 will do; those of a mean alone do not count.
  bool keeps(float squares) const { return c_.measure == Measure::mean || keeps_squares(squares, c_.eps); }

  // Lines.
  Moments line_moments(const float* x, std::int64_t count) const;
  void scale_line(std::int64_t line, std::int64_t begin, std::int64_t end, const Scaling& s, Run& run) const;
  bool is_short() const {
    return c_.rows <= kChunk && c_.affine != Affine::channel && (!c_.stages || c_.stages->empty());
  }
  void short_lines() const;
  void whole_lines() const;
  void lines_in_parts() const;

  // Columns.
  struct Columns {
    double mean[kBlock], squares[kBlock];
    float shift[kBlock], factor[kBlock], offset[kBlock];
  };
  void column_moments(const float* x, std::int64_t rows, std::int64_t columns, double* mean,
                      double* squares) const;
  Scaling channel_scaling(Scaling s, std::int64_t channel) const;
  void whole_columns() const;
  void columns_in_passes() const;
  void merge_parts(std::int64_t outer, const double* sums, float* numbers) const;

  const Normalization& c_;
  const RunArgs& args_;
  const NormalizeLoops& loops_;
  const float* x_;
  float* y_;
  const float *scale_ = nullptr, *bias_ = nullptr;
};

Moments Normalizer::line_moments(const float* x, std::int64_t count) const {
  Moments m;
  for (std::int64_t i = 0; i < count; i += kChunk) {
    const auto n = std::min(kChunk, count - i);
    float sum = 0, squares = 0;
    if (squares_only())
      squares = loops_.line_squares(x + i, n);
    else
      loops_.line_moments(x + i, n, &sum, &squares);
    if (!keeps(squares))
      m.add(exact_moments(x + i, n, 1, squares_only()), squares_only());
    else if (squares_only())
      m.add_squares(static_cast<double>(n), static_cast<double>(squares));
    else
      m.add(static_cast<double>(n),
            static_cast<double>(x[i]) + static_cast<double>(sum) / static_cast<double>(n),
            static_cast<double>(squares));
  }
  return m;
}

/// Elements [begin, end) of a line.
void Normalizer::scale_line(std::int64_t line, std::int64_t begin, std::int64_t end, const Scaling& s,
                            Run& run) const {
  const auto first = line * c_.rows;
  if (c_.affine == Affine::channel) {
    for (auto i = begin; i < end;) {
      const auto channel = (first + i) / c_.channel;
      const auto stop = std::min({end, (channel + 1) * c_.channel - first, i + kChunk});
      const auto t = channel_scaling(s, channel % c_.channels);
      loops_.scale_line(x_ + first + i, y_ + first + i, stop - i, t.shift, t.factor, t.offset, nullptr,
                        nullptr);
      finish(run, y_ + first + i, first + i, stop - i);
      i = stop;
    }
    return;
  }
  for (auto i = begin; i < end; i += kChunk) {
    const auto n = std::min(kChunk, end - i);
    loops_.scale_line(x_ + first + i, y_ + first + i, n, s.shift, s.factor, s.offset,
                      scale_ ? scale_ + i : nullptr, bias_ ? bias_ + i : nullptr);
    finish(run, y_ + first + i, first + i, n);
  }
}

void Normalizer::short_lines() const {
  NormalizeShortLines lines;
  lines.x = x_;
  lines.y = y_;
  lines.count = c_.rows;
  lines.divisor = c_.divisor;
  lines.squares = squares_only();
  lines.mean_of_squares = c_.mean_of_squares;
  lines.eps = c_.eps;
  lines.scale = scale_;
  lines.bias = bias_;
  parallel_for(c_.all, [&](std::int64_t begin, std::int64_t end) { loops_.short_lines(lines, begin, end); });
}

void Normalizer::whole_lines() const {
  parallel_for(c_.all, [&](std::int64_t begin, std::int64_t end) {
    Run run;
    start(run);
    for (auto line = begin; line < end; ++line)
      scale_line(line, 0, c_.rows, scaling_of(c_, line_moments(x_ + line * c_.rows, c_.rows)), run);
  });
}

void Normalizer::lines_in_parts() const {
  auto* moments = static_cast<Moments*>(args_.scratch);
  const auto begin_of = [&](std::int64_t part) { return c_.rows * part / c_.parts; };
  parallel_for(c_.all, [&](std::int64_t begin, std::int64_t end) {
    for (auto t = begin; t < end; ++t) {
      const auto from = begin_of(t % c_.parts), to = begin_of(t % c_.parts + 1);
      moments[t] = line_moments(x_ + t / c_.parts * c_.rows + from, to - from);
    }
  });
  parallel_for(c_.all, [&](std::int64_t begin, std::int64_t end) {
    Run run;
    start(run);
    for (auto t = begin; t < end; ++t) {
      const auto line = t / c_.parts;
      Moments all;
      for (std::int64_t p = 0; p < c_.parts; ++p) all.add(moments[line * c_.parts + p], squares_only());
      scale_line(line, begin_of(t % c_.parts), begin_of(t % c_.parts + 1), scaling_of(c_, all), run);
    }
  });
}

/// At most kBlock columns; `mean` is not written for squares.
void Normalizer::column_moments(const float* x, std::int64_t rows, std::int64_t columns, double* mean,
                                double* squares) const {
  float sums[kBlock], chunk_squares[kBlock];
  const auto most = std::max<std::int64_t>(32, kChunk / columns);
  std::fill_n(squares, columns, 0.0);
  for (std::int64_t r = 0; r < rows; r += most) {
    const auto n = std::min(most, rows - r);
    const float* from = x + r * c_.columns;
    if (squares_only()) {
      loops_.column_squares(from, n, c_.columns, columns, chunk_squares);
      for (std::int64_t i = 0; i < columns; ++i)
        squares[i] += keeps(chunk_squares[i]) ? static_cast<double>(chunk_squares[i])
                                              : exact_moments(from + i, n, c_.columns, true).squares;
      continue;
    }
    loops_.column_moments(from, n, c_.columns, columns, sums, chunk_squares);
    const auto count = static_cast<double>(n), before = static_cast<double>(r);
    const double share = count / (before + count), both = before * share;
    for (std::int64_t i = 0; i < columns; ++i) {
      Moments chunk{count, static_cast<double>(from[i]) + static_cast<double>(sums[i]) / count,
                    static_cast<double>(chunk_squares[i])};
      if (!keeps(chunk_squares[i])) chunk = exact_moments(from + i, n, c_.columns, false);
      const double difference = r == 0 ? 0 : chunk.mean - mean[i];
      squares[i] += chunk.squares + difference * difference * both;
      mean[i] = r == 0 ? chunk.mean : merged_mean(mean[i], chunk.mean, share);
    }
  }
}

Scaling Normalizer::channel_scaling(Scaling s, std::int64_t channel) const {
  if (c_.affine != Affine::channel) return s;
  s.factor *= scale_[channel];
  s.offset = s.offset * scale_[channel] + bias_[channel];
  return s;
}

void Normalizer::whole_columns() const {
  const auto blocks = ceil_div(c_.columns, kBlock);
  const auto rows_at_once = blocks == 1 ? std::max<std::int64_t>(1, kChunk / c_.columns) : 1;
  parallel_for(c_.all, [&](std::int64_t begin, std::int64_t end) {
    Run run;
    start(run);
    Columns k;
    for (auto t = begin; t < end; ++t) {
      const auto first = t % blocks * kBlock, n = std::min(kBlock, c_.columns - first);
      const auto at = t / blocks * c_.rows * c_.columns + first;
      column_moments(x_ + at, c_.rows, n, k.mean, k.squares);
      for (std::int64_t i = 0; i < n; ++i) {
        const Moments m{static_cast<double>(c_.rows), k.mean[i], k.squares[i]};
        const auto s = channel_scaling(scaling_of(c_, m), first + i);
        k.shift[i] = s.shift, k.factor[i] = s.factor, k.offset[i] = s.offset;
      }
      for (std::int64_t r = 0; r < c_.rows; r += rows_at_once) {
        const auto row = at + r * c_.columns, rows = std::min(rows_at_once, c_.rows - r);
        loops_.scale_columns(x_ + row, y_ + row, rows, c_.columns, n, k.shift, k.factor, k.offset);
        finish(run, y_ + row, row, rows * n);
      }
    }
  });
}

/// `sums`: of one outer index, [parts][2][columns]; `numbers`: [3][columns].
void Normalizer::merge_parts(std::int64_t, const double* sums, float* numbers) const {
  for (std::int64_t g = 0; g < c_.columns; g += c_.fold) {
    Moments all;
    for (std::int64_t p = 0; p < c_.parts; ++p)
      for (std::int64_t i = g; i < g + c_.fold; ++i) {
        const auto rows = c_.rows * (p + 1) / c_.parts - c_.rows * p / c_.parts;
        const double* of = sums + p * 2 * c_.columns + i;
        all.add({static_cast<double>(rows), of[0], of[c_.columns]}, squares_only());
      }
    for (std::int64_t i = g; i < g + c_.fold; ++i) {
      const auto s = channel_scaling(scaling_of(c_, all), i);
      numbers[i] = s.shift;
      numbers[c_.columns + i] = s.factor;
      numbers[2 * c_.columns + i] = s.offset;
    }
  }
}

void Normalizer::columns_in_passes() const {
  auto* sums = static_cast<double*>(args_.scratch);  // [outer][parts][2][columns]
  auto* numbers =
      reinterpret_cast<float*>(sums + c_.outer * c_.parts * 2 * c_.columns);  // [outer][3][columns]
  const auto begin_of = [&](std::int64_t part) { return c_.rows * part / c_.parts; };
  const auto first_of = [&](std::int64_t t) {
    return (t / c_.parts * c_.rows + begin_of(t % c_.parts)) * c_.columns;
  };
  parallel_for(c_.all, [&](std::int64_t begin, std::int64_t end) {
    for (auto t = begin; t < end; ++t) {
      const auto rows = begin_of(t % c_.parts + 1) - begin_of(t % c_.parts);
      for (std::int64_t i = 0; i < c_.columns; i += kBlock)
        column_moments(x_ + first_of(t) + i, rows, std::min(kBlock, c_.columns - i),
                       sums + t * 2 * c_.columns + i, sums + (t * 2 + 1) * c_.columns + i);
    }
  });
  for (std::int64_t o = 0; o < c_.outer; ++o)
    merge_parts(o, sums + o * c_.parts * 2 * c_.columns, numbers + o * 3 * c_.columns);
  parallel_for(c_.all, [&](std::int64_t begin, std::int64_t end) {
    Run run;
    start(run);
    const auto rows_at_once = std::max<std::int64_t>(1, kChunk / c_.columns);
    for (auto t = begin; t < end; ++t) {
      const auto rows = begin_of(t % c_.parts + 1) - begin_of(t % c_.parts);
      const float* of = numbers + t / c_.parts * 3 * c_.columns;
      for (std::int64_t r = 0; r < rows; r += rows_at_once) {
        const auto at = first_of(t) + r * c_.columns, n = std::min(rows_at_once, rows - r);
        loops_.scale_columns(x_ + at, y_ + at, n, c_.columns, c_.columns, of, of + c_.columns,
                             of + 2 * c_.columns);
        finish(run, y_ + at, at, n * c_.columns);
      }
    }
  });
}

}  // namespace

std::size_t plan_normalize(Normalization& c, double microseconds) {
  const auto wanted = units_wanted(microseconds, threads_here());
  const auto blocks = c.fold > 1 ? 1 : ceil_div(c.columns, kBlock);
  const auto longest = c.columns == 1 ? c.rows / kChunk : c.rows / 32;
  c.parts = std::clamp<std::int64_t>(wanted / (c.outer * blocks), 1, std::max<std::int64_t>(1, longest));
  const bool passes = c.in_passes() || (c.columns == 1 && c.parts > 1);  // two loops, each half of the work
  c.all = partitioned_here(c.outer * (passes ? c.parts : blocks), passes ? microseconds / 2 : microseconds);
  if (c.columns == 1) return c.parts > 1 ? static_cast<std::size_t>(c.outer * c.parts) * sizeof(Moments) : 0;
  if (!c.in_passes()) return 0;
  return static_cast<std::size_t>(c.outer * c.columns) *
         (static_cast<std::size_t>(c.parts) * 2 * sizeof(double) + 3 * sizeof(float));
}

void run_normalize(const Normalization& code, const RunArgs& args) { Normalizer(code, args).run(); }

}  // namespace lamina
