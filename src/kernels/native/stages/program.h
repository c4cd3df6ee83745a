#pragma once
/// Element-wise operators as one list of vector loops that run over small pieces of a tensor, one loop per
/// stage, with everything between them in buffers that stay in the L1 cache. This is how chains of
/// element-wise nodes run, and how any native kernel applies the epilogue of its node to values it has just
/// computed:
///
///     // once, while making an offer
///     std::string why;
///     const auto stages = StageProgram::of_epilogue(view, layout, why);   // layout of output 0
///     if (!stages) return answers.refuse("native", "{}", why);
///     Offer o;  o.inputs = ...; o.outputs = {layout}; o.cost = own cost;
///     stages->add_to(o, v.machine());   // layouts of the extra inputs, consumed constants, cost
///
///     // at run time, in each task of parallel_for: one StageRun on the stack
///     StageRun run(*stages, args.in);
///     for (pieces of the output) {
///       compute `count` values into `tile`, those of elements [first, first + count) of the dense output as
///       it lies in memory in `layout` (for channels_last: pixel after pixel, channels innermost); run(tile,
///       output + first, first, count);
///     }
///
/// A node without an epilogue gives a program without stages (`empty()`): skip it. Pieces may start anywhere
/// and have any length; long ones (256 elements and more) cost least per element. Types, shapes and
/// broadcasts of operands are anything with whole bytes. Results follow the reference: NaN, infinities and
/// integers that wrap included.
///
/// Programs are immutable and shared by threads. Running allocates nothing and takes no lock.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace lamina {

namespace stages {
struct Routine;
struct Instruction;
}  // namespace stages

class StageProgram {
 public:
  /// The node's epilogue for output 0 in that layout, or null and a sentence that says why not. Its base
  /// result must have the shape of the output.
  static std::shared_ptr<const StageProgram> of_epilogue(const NodeView& v, Layout layout, std::string& why);
  /// The program after the first `kept` stages, whose results are the base.
  static std::shared_ptr<const StageProgram> of_later_stages(const NodeView& v, std::size_t kept,
                                                             Layout layout, std::string& why);
  /// An element-wise node, or an Elementwise with its epilogue: all inputs are operands that may broadcast.
  static std::shared_ptr<const StageProgram> of_elementwise(const NodeView& v, Layout layout,
                                                            std::string& why);
  explicit StageProgram(std::unique_ptr<const stages::Routine> code);
  ~StageProgram();

  /// Nothing to do: the base result is the result.
  bool empty() const;
  /// Loops that run per piece.
  std::size_t loops() const;
  /// Estimated, on one thread, for the whole tensor, without moving the base result.
  Cost cost(const Machine& machine) const;
  /// Sets the layouts of the inputs that the program reads, marks those that it does not read as consumed,
  /// and adds its cost. `offer.inputs` is enlarged where needed.
  void add_to(Offer& offer, const Machine& machine) const;
  /// Inputs that the result may overwrite: dense, of the output's shape and bytes.
  const std::vector<std::size_t>& may_overwrite() const;
  /// Inputs of the output's shape, which may be slices of wider channels-last tensors.
  const std::vector<std::size_t>& whole_inputs() const;
  /// The program of_elementwise as it runs: with the rows of its inputs, large constants in its layout.
  std::shared_ptr<const StageProgram> made(const MakeContext& context) const;
  const stages::Routine& code() const { return *code_; }

 private:
  std::unique_ptr<const stages::Routine> code_;
};

/// A program with the pointers of one run and its buffers, on the stack of one thread (about 37 KiB). Values
/// that are the same for many pieces are computed once for them: make one per task, not one per piece.
class StageRun {
 public:
  /// `in`: the inputs of the node (RunArgs::in), alive as long as this is.
  StageRun(const StageProgram& program, const void* const* in);
  StageRun(const StageRun&) = delete;
  StageRun& operator=(const StageRun&) = delete;

  /// Elements [first, first + count) of the output: reads the base results from `values` (dense; not used by
  /// programs of_elementwise) and writes results to `out`, which may be `values` when an element has as many
  /// bytes before and after.
  void operator()(const void* values, void* out, std::int64_t first, std::int64_t count);

  static constexpr std::size_t kBufferBytes = 32768;  ///< on the stack of each thread
  static constexpr std::size_t kMostViews = 512;

 private:
  /// `count` elements that begin `from` elements behind the block's begin, `inner` of them in their row.
  struct Piece {
    const std::byte* values;
    std::byte* out;
    std::int64_t from, inner, count;
  };
  void enter(std::int64_t block);
  void execute(const stages::Instruction& instruction, const Piece& piece);

  const stages::Routine& code_;
  const void* const* in_;
  std::int64_t block_ = -1;
  const std::byte* views_[kMostViews];  ///< where each view's block begins
  alignas(64) std::byte buffers_[kBufferBytes];
};

}  // namespace lamina
