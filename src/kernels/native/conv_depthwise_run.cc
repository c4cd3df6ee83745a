#include "kernels/native/conv_depthwise_run.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>

#include "base/parallel.h"

namespace lamina::conv_depthwise {
namespace {

constexpr std::int64_t kLine = 64;  // bytes of a cache line
constexpr std::int64_t kTile = 8;   // outputs of a tile of a line, mostly

/// A thread's work.
class Piece {
 public:
  Piece(const Code& code, const RunArgs& args, float* buffer) : c_(code), args_(args), buffer_(buffer) {
    if (!c_.between.registers_only()) between_.emplace(*c_.between.stages, nullptr);
    if (!c_.after.registers_only()) after_.emplace(*c_.after.stages, args.in);
    stream_ = c_.stream && !after_ && reinterpret_cast<std::uintptr_t>(args.out[0]) % kLine == 0;
  }

  void run(std::int64_t task) {
    const auto next = [&task](std::int64_t count) {
      const auto i = task % count;
      task /= count;
      return i;
    };
    const auto block = next(c_.blocks);
    columns_ = &c_.columns[static_cast<std::size_t>(next(static_cast<std::int64_t>(c_.columns.size())))];
    const auto band = next(c_.bands);
    image_ = task;
    line_ = columns_->width * c_.row;
    const auto& panels = c_.panels();
    first_panel_ = block * c_.block;
    last_panel_ = std::min(first_panel_ + c_.block, panels.count);
    channel_ = panels.column(first_panel_);
    channels_ = std::min(panels.column(last_panel_), panels.columns) - channel_;
    begin_ = end_ = 0;
    const auto last = std::min((band + 1) * c_.band, c_.second.out[1]);
    for (auto line = band * c_.band; line < last; line += c_.step) {
      const auto count = std::min(c_.step, last - line);
      keep_lines(line, count);
      run_windows(line, count, std::min(c_.step, last - line - count));
    }
  }

 private:
  /// What the windows of output lines [line, line + count) read of the tensor between is in the buffer then.
  void keep_lines(std::int64_t line, std::int64_t count) {
    const auto inside = [&](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, c_.first.out[1]); };
    const auto top = line * c_.second.stride[1] - c_.second.pad[1];
    const auto begin = inside(top), end = inside(top + (count - 1) * c_.second.stride[1] + c_.extent());
    const auto kept = std::max<std::int64_t>(0, std::min(end, end_) - begin);
    if (kept == 0) {
      begin_ = begin;
    } else if (end - begin_ > c_.capacity) {
      std::memmove(buffer_, buffer_ + (begin - begin_) * line_,
                   static_cast<std::size_t>(kept * line_) * sizeof(float));
      begin_ = begin;
    }
    end_ = std::max(begin + kept, end);
    make_lines(begin + kept, end);
  }

  void make_lines(std::int64_t begin, std::int64_t end) {
    const auto& g = c_.first;
    gemm::Operands o{};
    o.b = c_.weights.data<float>().data();
    o.bias = c_.bias.valid() ? c_.bias.data<float>().data() : nullptr;
    for (const auto& part : columns_->parts) {
      const auto last = std::min(end, part.first + part.count);
      for (auto i = std::max(begin, part.first); i < last;) {
        const bool several = part.products.size() > 1 && last - i >= c_.together();
        o.a = static_cast<const float*>(args_.in[0]) + image_ * c_.in_image + part.a_first +
              (i - part.first) * part.a_line;
        o.c = buffer_ + (i - begin_) * line_ - channel_;
        o.first = ((image_ * g.out[1] + i) * g.out[2] + columns_->from) * g.outputs;
        gemm::run_panels(part.products[several ? 1 : 0], o, first_panel_, last_panel_,
                         between_ ? &*between_ : nullptr);
        i += several ? c_.together() : 1;
      }
    }
  }

  /// Of output lines [line, line + count); behind them come `coming` lines.
  void run_windows(std::int64_t line, std::int64_t count, std::int64_t coming) {
    const auto& g = c_.second;
    const auto lanes = c_.kernels->lanes, vector = channel_ / lanes,
               vectors = (channels_ + lanes - 1) / lanes;
    const std::int64_t point = point_of(line);
    auto s = depthwise::lines_of(g);
    s.first = line;
    s.count = count;
    s.left -= columns_->first * g.stride[2];
    s.in = buffer_ - begin_ * line_ - columns_->from * c_.row;
    s.in_point = c_.row;
    s.in_line = line_;
    s.weights = c_.window_weights.data<float>().data() + vector * g.taps() * lanes;
    s.bias = c_.window_bias.valid() ? c_.window_bias.data<float>().data() + vector * lanes : nullptr;
    s.out = static_cast<float*>(args_.out[0]) + point * c_.out_row + channel_;
    s.out_width = columns_->count;
    s.out_point = c_.out_row;
    s.out_line = g.out[2] * c_.out_row;
    if (c_.after.add)
      s.add = static_cast<const float*>(args_.in[*c_.after.add]) + point * c_.add_row + channel_;
    s.add_point = c_.add_row;
    s.add_line = g.out[2] * c_.add_row;
    s.vectors = vectors;
    s.last = depthwise::first_channel(vector + vectors - 1, g.outputs, lanes) - channel_;
    s.channels = g.outputs;
    s.finish = c_.after.finish;
    s.stream = stream_;
    auto ahead = lines_ahead(coming * g.stride[1], vectors * count);
    if (ahead.count > 0) s.ahead = &ahead;
    c_.kernel(s);
    if (after_) apply_stages(line, count);
  }

  /// What so many lines between, behind those in the buffer, read of x and lines before them have not read:
  /// fetched during `vectors` vectors of output lines.
  depthwise::Ahead lines_ahead(std::int64_t lines, std::int64_t vectors) const {
    depthwise::Ahead ahead;
    if (c_.in_line == 0 || lines <= 0) return ahead;
    const auto& g = c_.first;
    const auto reach = (g.kernel[1] - 1) * g.dilation[1] - g.pad[1];  // of a line's last tap
    const auto begin = std::clamp<std::int64_t>((end_ - 1) * g.stride[1] + reach + 1, 0, g.in[1]),
               end = std::clamp<std::int64_t>((end_ - 1 + lines) * g.stride[1] + reach + 1, 0, g.in[1]);
    const auto from = std::clamp<std::int64_t>(columns_->from * g.stride[2] - g.pad[2], 0, g.in[2]),
               width = std::min(columns_->width * g.stride[2], g.in[2] - from);
    const auto* x = static_cast<const float*>(args_.in[0]) + image_ * c_.in_image;
    ahead.from = reinterpret_cast<const char*>(x + begin * c_.in_line + from * c_.in_point);
    ahead.bytes = width * c_.in_point * 4;
    ahead.stride = c_.in_line * 4;
    ahead.count = end - begin;
    const auto tiles = std::max<std::int64_t>(1, vectors * columns_->count / kTile);
    ahead.each = ahead.count * ahead.bytes / kLine / tiles + 1;
    return ahead;
  }

  /// The first of a line's points of the output that the task makes.
  std::int64_t point_of(std::int64_t line) const {
    return (image_ * c_.second.out[1] + line) * c_.second.out[2] + columns_->first;
  }

  void apply_stages(std::int64_t line, std::int64_t count) {
    const auto all = c_.second.outputs;
    const bool dense = c_.out_row == all && channels_ == all,
               whole = dense && columns_->count == c_.second.out[2];
    for (std::int64_t i = 0; i < (whole ? 1 : count); ++i) {
      const auto point = point_of(line + i), points = whole ? count * columns_->count : columns_->count;
      float* out = static_cast<float*>(args_.out[0]) + point * c_.out_row + channel_;
      if (dense) {
        (*after_)(out, out, point * all, points * all);
        continue;
      }
      for (std::int64_t k = 0; k < points; ++k, out += c_.out_row)
        (*after_)(out, out, (point + k) * all + channel_, channels_);
    }
  }

  const Code& c_;
  const RunArgs& args_;
  float* buffer_;
  std::optional<StageRun> between_, after_;
  bool stream_ = false;
  // Of the task at hand.
  const Columns* columns_ = nullptr;
  std::int64_t line_ = 0;  ///< floats of a line of the buffer
  std::int64_t image_ = 0, first_panel_ = 0, last_panel_ = 0, channel_ = 0, channels_ = 0;
  std::int64_t begin_ = 0, end_ = 0;  ///< lines of the tensor between that are in the buffer
};

/// Of the calling thread, so that it takes the buffer that is in its cache already.
std::int64_t thread_number() {
  static std::atomic<std::int64_t> next{0};
  thread_local const std::int64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

/// Buffers in the scratch memory, each for one thread at a time.
class Buffers {
 public:
  Buffers(const Code& code, void* scratch)
      : count_(code.buffers),
        bytes_(code.buffer_bytes()),
        flags_(static_cast<std::byte*>(scratch)),
        first_(flags_ + count_ * kLine) {
    for (std::int64_t i = 0; i < count_; ++i) new (flags_ + i * kLine) std::atomic_flag();
  }
  /// One that nobody uses: there are as many as threads, unless the arena is another one now.
  std::int64_t take() const {
    for (auto i = thread_number() % count_;; i = (i + 1) % count_)
      if (!flag(i).test_and_set(std::memory_order_acquire)) return i;
  }
  void give(std::int64_t i) const { flag(i).clear(std::memory_order_release); }
  float* operator[](std::int64_t i) const { return reinterpret_cast<float*>(first_ + i * bytes_); }

 private:
  std::atomic_flag& flag(std::int64_t i) const {
    return *std::launder(reinterpret_cast<std::atomic_flag*>(flags_ + i * kLine));
  }
  std::int64_t count_, bytes_;
  std::byte *flags_, *first_;
};

}  // namespace

std::int64_t scratch_bytes(const Code& code) { return code.buffers * (kLine + code.buffer_bytes()); }

void run(const Code& code, const RunArgs& args) {
  const Buffers buffers(code, args.scratch);
  parallel_for(code.tasks(), code.grain, [&](std::int64_t begin, std::int64_t end) {
    const auto buffer = buffers.take();
    Piece piece(code, args, buffers[buffer]);
    for (auto t = begin; t < end; ++t) piece.run(t);
    buffers.give(buffer);
  });
}

}  // namespace lamina::conv_depthwise
