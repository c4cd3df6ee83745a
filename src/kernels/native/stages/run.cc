/// Runs programs: gathers what does not lie as the output does, then loop after loop.
#include <algorithm>
#include <cstring>

#include "kernels/native/stages/code.h"
#include "kernels/native/stages/program.h"

namespace lamina {
namespace stages {
namespace {

/// Repeats the first `unit` elements until there are `count`.
template <class T>
void repeat(T* to, std::int64_t unit, std::int64_t count) {
  for (std::int64_t have = unit; have < count;) {
    const auto more = std::min(have, count - have);
    std::memcpy(to + have, to, static_cast<std::size_t>(more) * sizeof(T));
    have += more;
  }
}

template <class T>
struct Filler {
  const Dims& dims;
  const Dims& strides;

  /// Elements [from, from + count) of the box of the axes from `axis` on, of which each index has `unit`.
  void box(std::size_t axis, std::int64_t unit, const T* data, std::int64_t from, std::int64_t count,
           T* to) const {
    const auto step = strides[axis];
    if (axis + 1 == dims.size()) return line(data + from * step, step, count, to);
    const auto next = unit / dims[axis + 1];
    if (step == 0 && from == 0 && count > unit) {
      box(axis + 1, next, data, 0, unit, to);
      return repeat(to, unit, count);
    }
    auto index = from / unit, inside = from % unit;
    while (count > 0) {
      const auto n = std::min(unit - inside, count);
      box(axis + 1, next, data + index * step, inside, n, to);
      to += n;
      count -= n;
      inside = 0;
      ++index;
    }
  }

  static void line(const T* data, std::int64_t step, std::int64_t count, T* to) {
    if (step == 1)
      for (std::int64_t i = 0; i < count; ++i) to[i] = data[i];
    else if (step == 0)
      std::fill_n(to, count, *data);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = data[i * step];
  }
};

template <class T>
void fill_as(const View& view, const Routine& code, const std::byte* data, std::int64_t from,
             std::int64_t count, std::byte* to) {
  Filler<T>{code.dims, view.strides}.box(code.block_axis, code.inner, reinterpret_cast<const T*>(data), from,
                                         count, reinterpret_cast<T*>(to));
}

}  // namespace

void fill(const View& view, const Routine& code, const std::byte* data, std::int64_t from, std::int64_t count,
          std::byte* to) {
  switch (view.bytes) {
    case 1:
      return fill_as<std::uint8_t>(view, code, data, from, count, to);
    case 2:
      return fill_as<std::uint16_t>(view, code, data, from, count, to);
    case 4:
      return fill_as<std::uint32_t>(view, code, data, from, count, to);
    default:
      return fill_as<std::uint64_t>(view, code, data, from, count, to);
  }
}

}  // namespace stages

using stages::Instruction;
using stages::Place;
using stages::Routine;
using stages::View;

namespace {

const std::byte* data_of(const View& view, const void* const* in) {
  return view.constant.valid() ? view.constant.raw() : static_cast<const std::byte*>(in[view.input]);
}

/// Elements from the view's begin to block number `block`.
std::int64_t offset_of(const View& view, const Routine& code, std::int64_t block) {
  std::int64_t offset = 0;
  for (std::size_t axis = code.block_axis; axis-- > 0 && block != 0; block /= code.dims[axis])
    offset += block % code.dims[axis] * view.strides[axis];
  return offset;
}

}  // namespace

StageRun::StageRun(const StageProgram& program, const void* const* in) : code_(program.code()), in_(in) {}

void StageRun::execute(const Instruction& instruction, const Piece& piece) {
  const auto pointer = [&](const Place& p) -> std::byte* {
    const auto bytes = static_cast<std::int64_t>(p.bytes);
    switch (p.kind) {
      case Place::Kind::view:
        return const_cast<std::byte*>(views_[p.index] + (p.shifts ? piece.from * bytes : 0));
      case Place::Kind::tile:
        return const_cast<std::byte*>(piece.values);
      case Place::Kind::buffer:
        return buffers_ + p.index + (p.shifts ? piece.inner * bytes : 0);
      case Place::Kind::out:
        break;
    }
    return piece.out;
  };
  if (!instruction.loop)
    return fill(code_.body.views[instruction.view], code_, views_[instruction.view], piece.from, piece.count,
                pointer(instruction.out));
  stages::LoopArgs args;
  args.out = pointer(instruction.out);
  for (std::size_t k = 0; k < instruction.operands; ++k) args.in[k] = pointer(instruction.in[k]);
  args.count = instruction.scalar ? 1 : piece.count;
  args.vectors = instruction.vectors;
  args.function = instruction.function;
  instruction.loop(args);
}

void StageRun::enter(std::int64_t block) {
  const auto& views = code_.body.views;
  for (std::size_t v = 0; v < views.size(); ++v) {
    if (views[v].is_tile || (block_ >= 0 && !views[v].moves_outside)) continue;
    const auto offset = views[v].moves_outside ? offset_of(views[v], code_, block) : 0;
    views_[v] = data_of(views[v], in_) + offset * static_cast<std::int64_t>(views[v].bytes);
  }
  block_ = block;
  for (const auto& instruction : code_.once) execute(instruction, {nullptr, nullptr, 0, 0, code_.most});
}

void StageRun::operator()(const void* values, void* out, std::int64_t first, std::int64_t count) {
  Piece piece{static_cast<const std::byte*>(values), static_cast<std::byte*>(out), 0, 0, 0};
  while (count > 0) {
    const auto block = first / code_.block;
    if (block != block_) enter(block);
    piece.from = first - block * code_.block;
    piece.inner = code_.inner == 1 ? 0 : piece.from % code_.inner;
    piece.count = std::min({count, code_.block - piece.from, code_.most - piece.inner});
    for (const auto& instruction : code_.each) execute(instruction, piece);
    first += piece.count;
    count -= piece.count;
    if (values) piece.values += piece.count * static_cast<std::int64_t>(code_.tile_bytes);
    piece.out += piece.count * static_cast<std::int64_t>(code_.body.result_bytes);
  }
}

}  // namespace lamina
