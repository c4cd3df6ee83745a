/// The picture is packed to bits by lines first, then outputs are computed by rows
/// (binary_depthwise_lines.h).
#include "kernels/native/binary_depthwise.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/native/binary_depthwise_lines.h"
#include "kernels/native/binary_packing.h"
#include "kernels/native/binary_stages.h"
#include "ops/convolution.h"

namespace lamina {
namespace {

using binary::Block;
using binary::DepthwiseKernels;
using binary::Picture;

struct Depthwise : Picture {
  const DepthwiseKernels* kernels = nullptr;
  gemm::Epilogue epilogue;
  std::optional<binary::Thresholds> thresholds;
  std::vector<Block> blocks;
  std::vector<std::int64_t> taps;   ///< bytes behind a window's first
  std::vector<std::int64_t> kinds;  ///< of outputs along a row, in floats
  std::int64_t channels = 0;        ///< whole vectors of them
  Tensor packed, start;             ///< weights and what counts are taken from
  binary::Elements in{}, out{};
  std::int64_t add_row = 0;                ///< floats from point to point
  std::int64_t grain = 1, pack_grain = 1;  ///< rows, lines

  std::int64_t lines() const { return g.images * padded[0] * padded[1]; }
  std::int64_t block_bytes() const { return lines() * line; }
};

std::vector<Block> blocks_of(std::int64_t channels, std::int64_t floats) {
  std::vector<Block> blocks;
  for (std::int64_t first = 0; first < channels; first += 32 * floats) {
    const auto count = std::min(channels - first, 32 * floats), bits = (count + floats - 1) / floats;
    blocks.push_back({first, count, bits, 32 / bits});
  }
  return blocks;
}

/// Signs as the windows' vectors have them: [block][tap], repeated in every slot.
Tensor packed_weights(const Depthwise& b, const Tensor& weights) {
  const auto signs = binary::signs_of(weights);
  const std::int64_t floats = b.kernels->floats, taps = b.g.taps();
  Tensor out(ElementType::u32, {static_cast<std::int64_t>(b.blocks.size()) * taps * floats});
  auto* to = out.data<std::uint32_t>().data();
  for (const auto& block : b.blocks)
    for (std::int64_t tap = 0; tap < taps; ++tap, to += floats)
      for (std::int64_t c = 0; c < block.channels; ++c)
        for (std::int64_t slot = 0; slot < block.slots; ++slot)
          to[c % floats] |= static_cast<std::uint32_t>(signs[(block.first + c) * taps + tap])
                            << (slot * block.bits + c / floats);
  return out;
}

std::vector<std::int64_t> taps_of(const Picture& b) {
  std::vector<std::int64_t> taps;
  for (std::int64_t z = 0; z < b.g.kernel[0]; ++z)
    for (std::int64_t y = 0; y < b.g.kernel[1]; ++y)
      for (std::int64_t x = 0; x < b.g.kernel[2]; ++x)
        taps.push_back(z * b.g.dilation[0] * b.plane + y * b.g.dilation[1] * b.line +
                       x * b.g.dilation[2] * b.point);
  return taps;
}

double microseconds(const Depthwise& b) {
  const auto& g = b.g;
  const double outputs = static_cast<double>(g.images * g.out_points() * b.channels),
               moved = static_cast<double>(b.out.bytes(g.images * g.out_points() * g.outputs) +
                                           b.in.bytes(g.images * g.in_points() * g.inputs));
  // Measured beside the other kernels of the family.
  return cost_of(Family::native_binary, 2.3 * outputs * static_cast<double>(g.taps()), moved / 2);
}

/// Line `index` of all packed pictures.
void pack_line(const Depthwise& b, const std::byte* in, std::uint8_t* bits, std::int64_t index) {
  const auto& g = b.g;
  const std::int64_t y = index % b.padded[1] - g.pad[1], z = index / b.padded[1] % b.padded[0] - g.pad[0],
                     image = index / b.padded[1] / b.padded[0];
  const bool inside = y >= 0 && y < g.in[1] && z >= 0 && z < g.in[0];
  binary::DepthwiseLine l{};
  l.booleans = b.in.booleans;
  l.in_step = b.in.row;
  l.left = std::min(g.pad[2], b.padded[2]);
  l.count = std::min(g.in[2], b.padded[2] - l.left);
  l.points = b.padded[2];
  l.stride = g.stride[2];
  l.out = bits + index * b.line;
  for (const auto& block : b.blocks) {
    l.block = block;
    const auto first = ((image * g.in[0] + z) * g.in[1] + y) * g.in[2] * b.in.row + block.first;
    l.in = inside ? in + b.in.bytes(first) : nullptr;
    b.kernels->pack(l);
    l.out += b.block_bytes();
  }
}

void run_row(const Depthwise& b, const RunArgs& args, std::int64_t index, StageRun* stages) {
  const auto& g = b.g;
  const std::int64_t y = index % g.out[1], z = index / g.out[1] % g.out[0],
                     image = index / g.out[1] / g.out[0], point = index * g.out[2];
  const auto &pz = b.places[0][static_cast<std::size_t>(z)], &py = b.places[1][static_cast<std::size_t>(y)];
  const binary::Sums sums(args.out[0], b.out, b.thresholds.has_value(), g.outputs, point, g.out[2]);
  binary::DepthwiseRow r{};
  r.x = static_cast<const std::uint8_t*>(args.scratch) + image * b.image + pz.offset + py.offset;
  r.x_step = g.stride[2] * b.point;
  r.count = g.out[2];
  r.taps = b.taps.data();
  r.tap_count = g.taps();
  r.w = reinterpret_cast<const std::uint8_t*>(b.packed.raw());
  r.kinds = b.kinds.data();
  r.out_step = sums.row();
  r.add_step = b.add_row;
  r.finish = b.epilogue.finish;
  for (const auto& block : b.blocks) {
    r.block = block;
    r.start = b.start.data<float>().data() + (pz.kind + py.kind) * b.channels + block.first;
    if (b.thresholds)
      r.signs = sums.signs() + block.first;
    else
      r.out = sums.data() + block.first;
    if (b.epilogue.add)
      r.add = static_cast<const float*>(args.in[*b.epilogue.add]) + point * b.add_row + block.first;
    b.kernels->row(r);
    r.x += b.block_bytes();
    r.w += g.taps() * b.kernels->bytes();
  }
  if (stages) sums.apply(*stages);
}

void run(const Depthwise& b, const RunArgs& args) {
  auto* bits = static_cast<std::uint8_t*>(args.scratch);
  const auto* in = static_cast<const std::byte*>(args.in[0]);
  parallel_for(b.lines(), b.pack_grain, [&](auto begin, auto end) {
    for (auto i = begin; i < end; ++i) pack_line(b, in, bits, i);
  });
  parallel_for(b.g.images * b.g.out[0] * b.g.out[1], b.grain, [&](auto begin, auto end) {
    if (b.epilogue.registers_only()) {
      for (auto i = begin; i < end; ++i) run_row(b, args, i, nullptr);
    } else {
      StageRun stages(*b.epilogue.stages, args.in);
      for (auto i = begin; i < end; ++i) run_row(b, args, i, &stages);
    }
  });
}

}  // namespace

void offer_binary_depthwise(const NodeView& v, Answers& answers, const gemm::Epilogue& epilogue,
                            const std::optional<binary::Thresholds>& thresholds) {
  const auto g = windows::geometry_of(v);
  const auto& kernels = binary::depthwise_kernels(g.outputs);
  auto blocks = blocks_of(g.outputs, kernels.floats);
  const auto picture = Picture::of(g, static_cast<int>(v.op<BinaryConvolution>()->pad_value), kernels.bytes(),
                                   static_cast<std::int64_t>(blocks.size()) * kernels.bytes());
  if (!picture) return answers.refuse("native", "windows reach far outside of the picture");
  Depthwise b;
  static_cast<Picture&>(b) = *picture;
  b.kernels = &kernels;
  b.epilogue = epilogue;
  b.thresholds = thresholds;
  b.blocks = std::move(blocks);
  b.taps = taps_of(b);
  b.channels = (g.outputs + kernels.floats - 1) / kernels.floats * kernels.floats;
  for (const auto& place : b.places[2]) b.kinds.push_back(place.kind * b.channels);
  b.in = {v.element(0) == ElementType::boolean, g.inputs};
  b.out = {v.out_element() == ElementType::boolean, g.outputs};
  b.add_row = g.outputs;
  const double total = microseconds(b), rows = static_cast<double>(g.images * g.out[0] * g.out[1]);
  b.grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kWorthAThread * rows / total));
  const double line_us = static_cast<double>(g.in[2] * g.inputs) / 8000 + 0.01;
  b.pack_grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kWorthAThread / line_us));
  Offer o;
  o.label = fmt::format("native_binary_{}_f32", kernels.name);
  epilogue.add_to(o, v, Layout::channels_last);
  o.inputs[0] = Layout::channels_last;
  o.consumed.push_back(1);
  o.wide_inputs.push_back(0);
  if (epilogue.add) o.wide_inputs.push_back(*epilogue.add);
  o.wide_outputs.push_back(0);
  o.scratch = b.blocks.size() * static_cast<std::size_t>(b.block_bytes());
  o.cost += total;
  o.make = [b, weights = *v.constant(1)](MakeContext& context) mutable -> std::unique_ptr<Executable> {
    if (const auto row = context.input_row(0)) b.in.row = row;
    if (const auto row = context.output_row()) b.out.row = row;
    if (b.epilogue.add)
      if (const auto row = context.input_row(*b.epilogue.add)) b.add_row = row;
    if (b.thresholds) {
      const auto turned = b.thresholds->turned(weights);  // others may read these weights as they are
      b.start = b.starts(turned, 1, b.channels);
      b.thresholds->take_from(b.start, b.g.outputs, b.g.outputs, b.channels);
      b.packed = packed_weights(b, turned);
    } else {
      b.start = b.starts(weights, 1, b.channels);
      b.packed = context.weights.packed(weights, fmt::format("native_binary {}", b.kernels->name),
                                        [&] { return packed_weights(b, weights); });
    }
    return executable([b](const RunArgs& args) { run(b, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
