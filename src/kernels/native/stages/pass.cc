#include "kernels/native/stages/pass.h"

#include <algorithm>
#include <cstring>

#include "base/divide.h"
#include "base/parallel.h"
#include "kernels/native/stages/code.h"

namespace lamina {

StagePass::StagePass(std::shared_ptr<const StageProgram> program, double microseconds, const Rows& out,
                     bool in_place)
    : program_(std::move(program)), in_place_(in_place), out_(out) {
  const auto& code = program_->code();
  total_ = code.total;
  unit_ = std::max<std::int64_t>(1, code.most);
  units_ = divided_here(ceil_div(total_, unit_), microseconds);
}

void StagePass::run(const RunArgs& args) const {
  parallel_for(units_, [&](std::int64_t begin, std::int64_t end) {
    const auto first = begin * unit_, last = std::min(end * unit_, total_);
    StageRun stages(*program_, args.in);
    if (!out_.dense()) return run_rows(stages, args.out[0], first, last);
    auto* out = static_cast<std::byte*>(args.out[0]) + out_.bytes(first);
    stages(in_place_ ? out : nullptr, out, first, last - first);
  });
}

/// Piece by piece in a buffer, from the rows and back to them.
void StagePass::run_rows(StageRun& stages, void* out, std::int64_t first, std::int64_t last) const {
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
    if (in_place_)
      each_row(count, [](std::byte* row, std::byte* part, std::size_t n) { std::memcpy(part, row, n); });
    stages(in_place_ ? tile : nullptr, tile, first, count);
    each_row(count, [](std::byte* row, std::byte* part, std::size_t n) { std::memcpy(row, part, n); });
  }
}

}  // namespace lamina
