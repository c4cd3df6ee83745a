#pragma once
/// The convolution before a depthwise one, as what makes lines of the tensor between (run.h).
#include <memory>
#include <string>
#include <vector>

#include "kernels/native/convolution/depthwise/lines.h"
#include "kernels/native/stages/program.h"

namespace lamina::conv_depthwise {

struct Pair;

/// Points and channels of the tensor between: lines [begin, end) of a picture in some columns.
struct Wanted {
  const RunArgs& args;
  const void* scratch;  ///< what Parent::prepare() has filled
  std::int64_t image, begin, end;
  std::size_t columns;                   ///< which of Pair::columns
  std::int64_t first_panel, last_panel;  ///< of channels
  /// The first point, at the first panel's first channel. Points are Pair::row floats apart, line after line.
  float* out;
};

/// Reads x as it lies. Channels are made in panels, which begin with whole vectors of windows.
class Parent {
 public:
  virtual ~Parent() = default;

  /// Label of the offer: the kernel and its instruction set.
  virtual std::string label() const = 0;
  /// Layout of x.
  virtual Layout layout() const = 0;
  virtual std::int64_t panels() const = 0;
  /// The first one of a panel; the number of channels for the panel behind the last.
  virtual std::int64_t channel(std::int64_t panel) const = 0;

  /// Says how the work is divided; again whenever that changes.
  virtual void partition(const Pair& code) = 0;
  /// On one thread: x is read once, and all lines are made `share` times.
  virtual Cost cost(const Pair& code, double share) const = 0;
  /// What each block of channels reads anew.
  virtual double read_bytes() const = 0;
  /// Bytes of x that are prefetched from far memory.
  virtual double fetched_bytes() const { return 0; }

  /// With packed weights, reading x as the plan has it.
  virtual std::shared_ptr<const Parent> made(const Pair& code, MakeContext& context) const = 0;

  /// For one run, besides buffers of lines.
  virtual std::int64_t scratch_bytes() const { return 0; }
  /// Before any lines are made, on the threads of the current arena.
  virtual void prepare(const RunArgs&, void* /*scratch*/) const {}
  /// `stages`: those of the epilogue that registers do not apply, or null.
  virtual void make_lines(const Pair& code, const Wanted& wanted, StageRun* stages) const = 0;
  /// What these lines read of x, and lines before them have not read, where it should be fetched ahead.
  virtual depthwise::Ahead ahead(const Pair&, const Wanted&) const { return {}; }
};

using Parents = std::vector<std::shared_ptr<Parent>>;
/// All ways to run a Convolution in f32, or none and a sentence in `why`. Its weights are constant.
Parents product_parents(const NodeView& first, std::string& why);
/// Parents for a BinaryConvolution of f32 or booleans.
Parents binary_parents(const NodeView& first, std::string& why);

}  // namespace lamina::conv_depthwise
