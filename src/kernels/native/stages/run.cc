/// Runs programs: gathers what does not lie as the output does, then loop after loop.
#include <algorithm>
#include <cstring>

#include "kernels/native/stage_program.h"
#include "kernels/native/stages/code.h"

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
void fill_as(const View& view, const Code& code, const std::byte* data, std::int64_t from, std::int64_t count,
             std::byte* to) {
  Filler<T>{code.dims, view.strides}.box(code.block_axis, code.inner, reinterpret_cast<const T*>(data), from,
                                         count, reinterpret_cast<T*>(to));
}

}  // namespace

void fill(const View& view, const Code& code, const std::byte* data, std::int64_t from, std::int64_t count,
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

using stages::Code;
using stages::Instruction;
using stages::Place;
using stages::View;

namespace {

const std::byte* data_of(const View& view, const void* const* in) {
  return view.constant.valid() ? view.constant.raw() : static_cast<const std::byte*>(in[view.input]);
}

/// Elements from the view's begin to block number `block`.
std::int64_t offset_of(const View& view, const Code& code, std::int64_t block) {
  std::int64_t offset = 0;
  for (std::size_t axis = code.block_axis; axis-- > 0 && block != 0; block /= code.dims[axis])
    offset += block % code.dims[axis] * view.strides[axis];
  return offset;
}

}  // namespace

StageRun::StageRun(const StageProgram& program, const void* const* in) : code_(program.code()), in_(in) {}

void StageRun::execute(const Instruction& instruction, std::int64_t inside, std::int64_t from,
                       std::int64_t count, std::byte* out) {
  const auto pointer = [&](const Place& p) -> std::byte* {
    if (p.kind == Place::Kind::view) return const_cast<std::byte*>(views_[p.index]);
    if (p.kind == Place::Kind::out) return out;
    return buffers_ + p.index + (p.shifts ? inside * static_cast<std::int64_t>(p.bytes) : 0);
  };
  if (!instruction.loop)
    return fill(code_.body.views[instruction.view], code_, views_[instruction.view], from, count,
                pointer(instruction.out));
  stages::LoopArgs args;
  args.out = pointer(instruction.out);
  for (std::size_t k = 0; k < instruction.operands; ++k) args.in[k] = pointer(instruction.in[k]);
  args.count = instruction.scalar ? 1 : count;
  args.vectors = instruction.vectors;
  args.function = instruction.function;
  instruction.loop(args);
}

void StageRun::start() {
  started_ = true;
  const auto& views = code_.body.views;
  for (std::size_t v = 0; v < views.size(); ++v)
    if (!views[v].is_tile) views_[v] = data_of(views[v], in_);
  for (const auto& instruction : code_.once) execute(instruction, 0, 0, code_.most, nullptr);
}

void StageRun::operator()(const void* values, void* out, std::int64_t first, std::int64_t count) {
  if (!started_) start();
  const auto* from = static_cast<const std::byte*>(values);
  auto* to = static_cast<std::byte*>(out);
  while (count > 0) {
    const auto inside = first % code_.block, inner = code_.inner == 1 ? 0 : first % code_.inner;
    const auto n = std::min({count, code_.block - inside, code_.most - inner});
    piece(from, to, first / code_.block, inside, inner, n);
    first += n;
    count -= n;
    if (from) from += n * static_cast<std::int64_t>(code_.tile_bytes);
    to += n * static_cast<std::int64_t>(code_.body.result_bytes);
  }
}

void StageRun::piece(const std::byte* values, std::byte* out, std::int64_t block, std::int64_t from,
                     std::int64_t inner, std::int64_t count) {
  const auto& views = code_.body.views;
  for (const auto v : code_.moving) {
    const auto& view = views[v];
    if (view.is_tile) {
      views_[v] = values;
      continue;
    }
    auto offset = view.moves_outside ? offset_of(view, code_, block) : 0;
    if (view.access == View::Access::direct) offset += from;
    views_[v] = data_of(view, in_) + offset * static_cast<std::int64_t>(view.bytes);
  }
  for (const auto& instruction : code_.each) execute(instruction, inner, from, count, out);
}

}  // namespace lamina
