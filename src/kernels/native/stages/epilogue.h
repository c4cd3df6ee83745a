#pragma once
/// What native kernels do with their sums, f32 or i32. In registers: short common epilogues, of f32 sums
/// Finish and perhaps a second tensor added before it, of i32 sums IntegerFinish. All others are a program
/// over finished points, which also makes elements of other types. Where these go is the output's Rows; sums
/// that have other bytes than what is stored are kept in memory of their own, a patch of points at a time.
///
/// A kernel of i32 sums:
///
///     // while offering                             // while making
///     auto epilogue = Epilogue::of(v, layout, why);  epilogue.lay(context);
///     epilogue->add_to(offer, v);
///     // while running, in a task, for a patch of points
///     const auto sums = epilogue.sums(args.out[0], patch, memory of epilogue.apart_bytes());
///     each_sums_store(epilogue.integer_finish(), ...)  // simd/integer_finish-inl.h: to sums.memory() and on
///     if (stages) sums.apply(*stages);
#include <memory>
#include <optional>
#include <string>

#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/kernel.h"
#include "kernels/native/simd/finish.h"
#include "kernels/native/stages/integer_epilogue.h"
#include "kernels/native/stages/program.h"
#include "kernels/rows.h"

namespace lamina {

/// Some channels of `count` points, `step` points from each other, and that `sets` times, each `move` points
/// further.
struct Patch {
  std::int64_t point, count;
  std::int64_t channel, channels;
  std::int64_t step = 1, sets = 1, move = 0;
};

/// Where a kernel writes the sums of a patch: in the output itself, or apart.
class Sums {
 public:
  /// `out`: the output's point 0. `apart`: room for the sums, or null.
  Sums(const Rows& rows, void* out, const Patch& patch, void* apart)
      : rows_(rows), out_(out), patch_(patch), apart_(static_cast<std::byte*>(apart)) {}

  /// Address of the first point, at the patch's first channel.
  float* data() const { return reinterpret_cast<float*>(memory()); }
  /// Floats from point to point, and from set to set.
  std::int64_t row() const { return apart_ ? patch_.channels : patch_.step * rows_.step; }
  std::int64_t set() const { return apart_ ? patch_.count * patch_.channels : patch_.move * rows_.step; }

  /// The address if registers make the stored elements, which are not always of 32 bits.
  std::byte* memory() const {
    return apart_ ? apart_ : rows_.at<std::byte>(out_, patch_.point, patch_.channel);
  }
  std::int64_t row_bytes() const { return apart_ ? 4 * row() : rows_.bytes(row()); }
  std::int64_t set_bytes() const { return apart_ ? 4 * set() : rows_.bytes(set()); }

  /// Makes the results. `first`: element of the whole output that is the first of point 0.
  void apply(StageRun& stages, std::int64_t first = 0) const;

 private:
  const Rows& rows_;
  void* out_;
  Patch patch_;
  std::byte* apart_;
};

struct Epilogue {
  Finish finish;
  std::optional<IntegerEpilogue> integers;     ///< where sums are i32 and registers do it all
  std::optional<std::size_t> add;              ///< input of the node, of the output's shape
  std::shared_ptr<const StageProgram> stages;  ///< null when the registers do it all
  Rows out, added;                             ///< how the output lies, and what is added

  Epilogue() = default;
  /// Sums are the results.
  explicit Epilogue(const Rows& rows) : out(rows), added(rows) {}
  /// The node's epilogue for a kernel that writes output 0 in `layout`; nothing and a sentence when there is
  /// no code for it.
  static std::optional<Epilogue> of(const NodeView& v, Layout layout, std::string& why);

  bool registers_only() const { return !stages; }
  bool adds_rows() const { return integers && integers->adds_rows(); }
  /// For a kernel whose output has points of so many channels without gaps.
  void set_rows(Layout layout, std::int64_t channels) {
    out = {out.element, layout, channels};
    if (!adds_rows()) added = {added.element, layout, channels};
  }
  /// Sums need memory of their own.
  bool apart() const { return stages && bits_of(out.element) != bits_of(ElementType::f32); }
  /// Bytes of scratch memory, in whole cache lines, for so many sums.
  std::int64_t apart_bytes(std::int64_t sums) const { return apart() ? round_up(sums * 4, 64) : 0; }

  /// Layouts, consumed constants, slices and cost in an offer whose own inputs are set; inputs that the
  /// kernel packs or copies at make time are marked by the caller.
  void add_to(Offer& offer, const NodeView& v) const;
  /// Takes over where the plan has placed the tensors.
  void lay(const MakeContext& context);

  /// `memory`: of apart_bytes().
  Sums sums(void* output, const Patch& patch, void* memory) const {
    return Sums(out, output, patch, apart() ? memory : nullptr);
  }
  /// What is added to a point from that channel on, or null.
  const float* add_at(const RunArgs& args, std::int64_t point, std::int64_t channel = 0) const {
    return add ? added.at<const float>(args.in[*add], point, channel) : nullptr;
  }
  /// Address of a point in memory with the rows of `added`.
  const std::byte* add_at(const void* memory, std::int64_t point, std::int64_t channel) const {
    return added.at<const std::byte>(memory, point, adds_rows() ? 0 : channel);
  }
  /// What is stored of i32 sums: themselves, where stages follow.
  IntegerFinish integer_finish() const { return integers ? integers->finish() : IntegerFinish{}; }
  /// What add_at() gives, of any type.
  const void* added_at(const RunArgs& args, std::int64_t point, std::int64_t channel = 0) const {
    if (integers && integers->added_constant().valid())
      return add_at(integers->added_constant().raw(), point, channel);
    return add ? add_at(args.in[*add], point, channel) : nullptr;
  }
  /// Calls work(begin, end, slot, stages or null) for pieces of all units, in parallel. `in`: of the node.
  template <class F>
  void run(const void* const* in, const WorkPartition& partition, const F& work) const {
    parallel_for(partition, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      if (registers_only()) return work(begin, end, slot, static_cast<StageRun*>(nullptr));
      StageRun run(*stages, in);
      work(begin, end, slot, &run);
    });
  }
};

}  // namespace lamina
