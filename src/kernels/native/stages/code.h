#pragma once
/// What a StageProgram is inside. lower.cc turns a body into operations, emit.cc lays the operations out over
/// buffers, run.cc runs them.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "extension/kernel.h"
#include "kernels/kernel.h"
#include "kernels/native/stages/loops.h"

namespace lamina::stages {

inline constexpr int kMostOperands = 5;
inline constexpr std::size_t kNoInput = SIZE_MAX;

/// A parameter or constant of the body as an operator sees it: broadcast to the output.
struct View {
  std::size_t input = kNoInput;  ///< of the node
  Tensor constant;               ///< when it is no input; as the model has it until arrange_constants()
  ElementType carried = ElementType::f32;  ///< type that loops read
  bool reorders = false;                   ///< the constant is to lie as the target
  bool is_tile = false;                    ///< the base result, given piece by piece
  std::size_t bytes = 4;                   ///< of an element
  Dims axis_strides;                       ///< per axis of the output, in elements

  // Set by emit().
  Dims strides;  ///< per merged dimension of the output (Routine::dims)
  enum class Access : std::uint8_t { scalar, direct, filled };
  Access access = Access::direct;
  bool steady = false;         ///< the same for every piece of a block
  bool moves_outside = false;  ///< it differs from block to block
};

/// One loop over a value. Values are numbered: first views, then operations.
struct Operation {
  Loop loop = nullptr;
  const void* function = nullptr;
  std::vector<int> in;
  std::size_t bytes = 4;  ///< of an element of the result
  double cycles = 0.1;    ///< per element
  bool spreads = false;   ///< one element becomes a vector
};

/// A body in the order of its operations; the last one makes the result.
struct Lowered {
  std::vector<View> views;
  std::vector<Operation> operations;
  std::vector<std::shared_ptr<float>> numbers;                   ///< parameters that loops point to
  std::vector<std::shared_ptr<const ElementwiseKernel>> custom;  ///< of libraries, the same
  std::size_t result_bytes = 4;
};

/// Where an instruction finds an operand.
struct Place {
  enum class Kind : std::uint8_t { view, tile, buffer, out };
  Kind kind = Kind::view;
  bool shifts = false;      ///< of a direct view, a steady vector: the piece begins inside of it
  std::uint32_t index = 0;  ///< of the view, or the buffer's first byte
  std::uint32_t bytes = 4;  ///< of an element
};

struct Instruction {
  Loop loop = nullptr;  ///< null: fill the buffer from `view`
  const void* function = nullptr;
  std::array<Place, kMostOperands> in;
  std::uint8_t operands = 0;
  bool scalar = false;  ///< one element
  unsigned vectors = 0;
  std::uint32_t view = 0;
  Place out;
};

/// How the parameters of a body are given.
struct Parameter {
  std::size_t input = kNoInput;
  const Tensor* constant = nullptr;
  bool is_tile = false;
};
struct Target {
  Dims dims;
  Layout layout = Layout::plain;
};

struct Routine {
  Target target;
  Lowered body;
  Dims dims;                   ///< of the output in its order in memory, merged
  std::size_t block_axis = 0;  ///< pieces are ranges of this dimension with all of those after it
  std::int64_t inner = 1;      ///< elements of the dimensions after block_axis
  std::int64_t block = 1;      ///< inner * dims[block_axis]: no piece goes beyond
  std::int64_t most = 1;       ///< elements of a piece at most, a multiple of inner
  std::int64_t total = 1;
  std::vector<Instruction> once, each;  ///< run once per block, and per piece
  std::size_t tile_bytes = 4;           ///< of an element of the base result
  std::vector<std::size_t> whole, overwritable;
  struct Input {
    std::size_t index;
    bool consumed;
    Layout layout;
  };
  std::vector<Input> inputs;
  /// Rough cycles per element: all, gathering and the overhead of pieces included; what is arithmetic of
  /// them.
  struct Cycles {
    double all = 0, math = 0;
  } cycles;
  double bytes_read = 0;  ///< of operands besides the tile
};

/// The body's operators as loops, or a sentence in `why`.
bool lower(const Graph& body, const std::vector<Parameter>& parameters, const Target& target, Lowered& out,
           std::string& why);
/// The strides by which a tensor of shape `dims` broadcasts to the target: per axis of the target. `row`:
/// elements from pixel to pixel in channels-last, 0: dense.
Dims strides_to(const Dims& dims, const Target& target, std::int64_t row = 0);

/// Brings constants into the types and layouts that loops read, through the store.
void arrange_constants(Routine& code, WeightStore& weights);

/// Blocks, buffers and instructions for code.body and code.target; false when the buffers are too small.
bool emit(Routine& code, std::string& why);

/// Copies the elements [from, from + count) of the block into `to`, where `data` is the view's element at the
/// block's begin.
void fill(const View& view, const Routine& code, const std::byte* data, std::int64_t from, std::int64_t count,
          std::byte* to);
/// Loops of one element size: copies; one element to all.
Loop copy_loop(std::size_t bytes);
Loop splat_loop(std::size_t bytes);

}  // namespace lamina::stages
