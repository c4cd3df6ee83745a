#include "kernels/native/gemm/strips.h"
#include "base/work_partition.h"

namespace lamina::gemm {
namespace {}  // namespace

Cut::Cut(const Region& r, const std::function<std::int64_t(std::int64_t)>& rows_of_length,
         std::int64_t most_sets)
    : down(r.width < 6 && r.lines > r.width),
      length(down ? r.lines : r.width),
      others(down ? r.width : r.lines),
      rows(rows_of_length(length)),
      sets(length / rows),
      rest(length % rows),
      most(most_sets),
      per_line(ceil_div(sets, most)),
      together(std::max<std::int64_t>(1, most / sets)) {}

std::int64_t Cut::strips() const {
  const auto groups = ceil_div(others, together);
  return groups == 0 ? 0 : (groups - 1) * all(together) + all(lines_of(groups - 1));
}

std::int64_t Cut::strip_at(std::int64_t point) const {
  const auto group = point / (together * length), inside = point % (together * length), line = sets * rows;
  const auto lines = lines_of(group);
  auto strip = group * all(together);
  if (inside >= lines * line) return strip + whole(lines);
  if (sets > 1) strip += inside / line * per_line + inside % line / (most * rows);
  return strip;
}

void Strips::add(const Cut& cut) {
  first_strip_.push_back(count_);
  first_point_.push_back(points_);
  cuts_.push_back(cut);
  count_ += cut.strips();
  points_ += cut.length * cut.others;
}

std::int64_t Strips::bound(std::int64_t index, std::int64_t pieces) const {
  if (index == pieces) return count_;
  const auto point = points_ * index / pieces;
  const auto region =
      std::upper_bound(first_point_.begin(), first_point_.end(), point) - first_point_.begin() - 1;
  const auto i = static_cast<std::size_t>(region);
  return first_strip_[i] + cuts_[i].strip_at(point - first_point_[i]);
}

StripWalk::StripWalk(const Strips& strips, std::int64_t first) : cuts_(strips.cuts_) {
  const auto& begins = strips.first_strip_;
  region_ =
      static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), first) - begins.begin()) - 1;
  const auto& cut = cuts_[region_];
  const auto inside = first - begins[region_];
  enter(inside / cut.all(cut.together));
  at_ = inside % cut.all(cut.together);
  line_ = at_ / cut.per_line;
  part_ = at_ % cut.per_line;
}

void StripWalk::enter(std::int64_t group) {
  group_ = group;
  lines_ = cuts_[region_].lines_of(group);
  at_ = line_ = part_ = 0;
}

Strip StripWalk::next() {
  if (at_ == cuts_[region_].all(lines_)) {
    if ((group_ + 1) * cuts_[region_].together < cuts_[region_].others) {
      enter(group_ + 1);
    } else {
      ++region_;
      enter(0);
    }
  }
  const auto& cut = cuts_[region_];
  const auto strip = [&](std::int64_t across, std::int64_t along, std::int64_t rows, std::int64_t repeat,
                         std::int64_t across_move, std::int64_t along_move) -> Strip {
    if (cut.down) return {region_, true, along, across, rows, repeat, along_move, across_move};
    return {region_, false, across, along, rows, repeat, across_move, along_move};
  };
  const auto first_line = group_ * cut.together;
  if (at_++ == cut.whole(lines_)) return strip(first_line, cut.sets * cut.rows, cut.rest, lines_, 1, 0);
  if (cut.sets == 1) return strip(first_line, 0, cut.rows, lines_, 1, 0);
  const auto line = first_line + line_, set = part_ * cut.most;
  if (++part_ == cut.per_line) part_ = 0, ++line_;
  return strip(line, set * cut.rows, cut.rows, std::min(cut.most, cut.sets - set), 0, cut.rows);
}

}  // namespace lamina::gemm
