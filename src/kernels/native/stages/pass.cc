#include "kernels/native/stages/pass.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/native/stages/code.h"

namespace lamina {

StagePass::StagePass(std::shared_ptr<const StageProgram> program, double microseconds, const Rows& out)
    : program_(std::move(program)), out_(out) {
  const auto& code = program_->code();
  total_ = code.total;
  unit_ = std::max<std::int64_t>(1, code.most);
  units_ = partitioned_here(ceil_div(total_, unit_), microseconds);
}

const void* StagePass::at(const void* values, std::int64_t element) const {
  const auto bytes = static_cast<std::int64_t>(program_->code().tile_bytes);
  return values ? static_cast<const std::byte*>(values) + element * bytes : nullptr;
}

void StagePass::run(const RunArgs& args, const void* values) const {
  parallel_for(units_, [&](std::int64_t begin, std::int64_t end) {
    const auto first = begin * unit_, last = std::min(end * unit_, total_);
    StageRun stages(*program_, args.in);
    if (!out_.dense()) return run_rows(stages, values, args.out[0], first, last);
    auto* out = static_cast<std::byte*>(args.out[0]) + out_.bytes(first);
    stages(at(values, first), out, first, last - first);
  });
}

/// Piece by piece in a buffer, where they lie in the output from its rows, and back to them.
void StagePass::run_rows(StageRun& stages, const void* values, void* out, std::int64_t first,
                         std::int64_t last) const {
  constexpr std::int64_t kTile = 1024;
  alignas(64) std::byte tile[kTile * 8];
  const auto each_row = [&](std::int64_t count, auto&& copy) {
    for (std::int64_t i = 0; i < count;) {
      const auto pixel = (first + i) / out_.channels, channel = (first + i) % out_.channels;
      const auto n = std::min(out_.channels - channel, count - i);
      copy(out_.at<std::byte>(out, pixel, channel), tile + out_.bytes(i),
           static_cast<std::size_t>(out_.bytes(n)));
      i += n;
    }
  };
  for (; first < last; first = std::min(last, first + kTile)) {
    const auto count = std::min(kTile, last - first);
    if (values == out)
      each_row(count, [](std::byte* row, std::byte* part, std::size_t n) { std::memcpy(part, row, n); });
    stages(values == out ? tile : at(values, first), tile, first, count);
    each_row(count, [](std::byte* row, std::byte* part, std::size_t n) { std::memcpy(row, part, n); });
  }
}

}  // namespace lamina
