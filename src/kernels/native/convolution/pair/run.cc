#include "kernels/native/convolution/pair/run.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/parallel.h"
#include "base/work_partition.h"

namespace lamina::conv_depthwise {
namespace {

constexpr std::int64_t kLine = 64;  // bytes of a cache line
constexpr std::int64_t kTile = 8;   // outputs of a tile of a line, mostly

/// Tasks one after the other.
class Piece {
 public:
  /// `memory`: of a slot, a buffer of lines and room for sums apart.
  Piece(const Pair& code, const RunArgs& args, std::byte* memory)
      : c_(code),
        parent_(*code.parent),
        args_(args),
        buffer_(reinterpret_cast<float*>(memory)),
        apart_(memory + code.buffer_bytes()) {
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
    column_ = static_cast<std::size_t>(next(static_cast<std::int64_t>(c_.columns.size())));
    columns_ = &c_.columns[column_];
    const auto band = next(c_.bands);
    image_ = task;
    line_ = columns_->width * c_.row;
    first_panel_ = block * c_.block;
    last_panel_ = std::min(first_panel_ + c_.block, parent_.panels());
    channel_ = parent_.channel(first_panel_);
    channels_ = parent_.channel(last_panel_) - channel_;
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
    if (begin + kept < end)
      parent_.make_lines(c_, lines_between(begin + kept, end), between_ ? &*between_ : nullptr);
  }

  Wanted lines_between(std::int64_t begin, std::int64_t end) const {
    return {args_,        args_.scratch, image_,
            begin,        end,           column_,
            first_panel_, last_panel_,   buffer_ + (begin - begin_) * line_};
  }

  /// Computes output lines [line, line + count); `coming` lines follow.
  void run_windows(std::int64_t line, std::int64_t count, std::int64_t coming) {
    const auto& g = c_.second;
    const auto lanes = c_.kernels->lanes, vector = channel_ / lanes, vectors = ceil_div(channels_, lanes);
    const auto point = (image_ * g.out[1] + line) * g.out[2] + columns_->first;
    const auto sums = c_.after.sums(
        args_.out[0], {point, columns_->count, channel_, channels_, 1, count, g.out[2]}, apart_);
    depthwise::Lines s{depthwise::line_geometry(g)};
    s.first = line;
    s.count = count;
    s.left -= columns_->first * g.stride[2];
    s.in = buffer_ - begin_ * line_ - columns_->from * c_.row;
    s.in_point = c_.row;
    s.in_line = line_;
    s.weights = c_.window_weights.data<float>().data() + vector * g.taps() * lanes;
    s.bias = c_.window_bias.valid() ? c_.window_bias.data<float>().data() + vector * lanes : nullptr;
    s.out = sums.data();
    s.out_width = columns_->count;
    s.out_point = sums.row();
    s.out_line = sums.set();
    s.add = c_.after.add_at(args_, point, channel_);
    s.add_point = c_.after.added.step;
    s.add_line = g.out[2] * s.add_point;
    s.vectors = vectors;
    s.last = depthwise::first_channel(vector + vectors - 1, g.outputs, lanes) - channel_;
    s.channels = g.outputs;
    s.finish = c_.after.finish;
    s.stream = stream_;
    auto ahead = parent_.ahead(c_, lines_between(end_, end_ + coming * g.stride[1]));
    if (ahead.count > 0) {
      const auto tiles = std::max<std::int64_t>(1, vectors * count * columns_->count / kTile);
      ahead.each = ahead.count * ahead.bytes / kLine / tiles + 1;
      s.ahead = &ahead;
    }
    c_.kernel(s);
    if (after_) sums.apply(*after_);
  }

  const Pair& c_;
  const Parent& parent_;
  const RunArgs& args_;
  float* buffer_;
  std::byte* apart_;
  std::optional<StageRun> between_, after_;
  bool stream_ = false;
  // Position of the current task.
  std::size_t column_ = 0;
  const Columns* columns_ = nullptr;
  std::int64_t line_ = 0;  ///< floats of a line of the buffer
  std::int64_t image_ = 0, first_panel_ = 0, last_panel_ = 0, channel_ = 0, channels_ = 0;
  std::int64_t begin_ = 0, end_ = 0;  ///< lines of the tensor between that are in the buffer
};

/// The parent's own scratch memory comes first, whole cache lines of it.
std::int64_t parent_bytes(const Pair& code) { return round_up(code.parent->scratch_bytes(), kLine); }

}  // namespace

std::int64_t scratch_bytes(const Pair& code) {
  return parent_bytes(code) + code.shares.slots * (code.buffer_bytes() + code.apart_bytes());
}

void run(const Pair& code, const RunArgs& args) {
  auto* const scratch = static_cast<std::byte*>(args.scratch);
  code.parent->prepare(args, scratch);
  // A buffer belongs to a slot and not to a thread: any arena may run this.
  parallel_for(code.shares, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
    Piece piece(code, args, scratch + parent_bytes(code) + slot * (code.buffer_bytes() + code.apart_bytes()));
    for (auto t = begin; t < end; ++t) piece.run(t);
  });
}

}  // namespace lamina::conv_depthwise
