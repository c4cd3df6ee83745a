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
using binary::Frame;
using binary::Picture;

struct Depthwise : Picture, Frame {
  const DepthwiseKernels* kernels = nullptr;
  std::vector<Block> blocks = {};
  std::vector<std::int64_t> taps = {};     ///< bytes behind a window's first
  std::vector<std::int64_t> kinds = {};    ///< of outputs along a row, in floats
  std::int64_t channels = 0;               ///< whole vectors of them
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
  l.bits = b.in.bits;
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
  const auto sums = b.sums(args, point, g.out[2]);
  const float* add = b.add(args, point);
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
  r.bits = b.out.bits;
  for (const auto& block : b.blocks) {
    r.block = block;
    r.start = b.start.data<float>().data() + (pz.kind + py.kind) * b.channels + block.first;
    if (b.thresholds)
      r.signs = sums.signs(block.first);
    else
      r.out = sums.data() + block.first;
    r.add = add ? add + block.first : nullptr;
    b.kernels->row(r);
    r.x += b.block_bytes();
    r.w += g.taps() * b.kernels->bytes();
  }
  sums.clear_tails();
  if (stages) sums.apply(*stages);
}

void run(const Depthwise& b, const RunArgs& args) {
  auto* bits = static_cast<std::uint8_t*>(args.scratch);
  const auto* in = static_cast<const std::byte*>(args.in[0]);
  parallel_for(b.lines(), b.pack_grain, [&](auto begin, auto end) {
    for (auto i = begin; i < end; ++i) pack_line(b, in, bits, i);
  });
  b.run(args, b.g.images * b.g.out[0] * b.g.out[1], b.grain,
        [&](std::int64_t i, StageRun* stages) { run_row(b, args, i, stages); });
}

void offer_with(const NodeView& v, Answers& answers, Depthwise b) {
  const auto& g = b.g;
  const double total = microseconds(b), rows = static_cast<double>(g.images * g.out[0] * g.out[1]);
  b.grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kWorthAThread * rows / total));
  const double line_us = static_cast<double>(g.in[2] * g.inputs) / 8000 + 0.01;
  b.pack_grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kWorthAThread / line_us));
  auto o = b.offer(v, b.kernels->name, b.blocks.size() * static_cast<std::size_t>(b.block_bytes()), total);
  o.make = [b, weights = *v.constant(1)](MakeContext& context) mutable -> std::unique_ptr<Executable> {
    b.make(context, weights,
           {fmt::format("native_binary {}", b.kernels->name),
            [&](const Tensor& w) { return packed_weights(b, w); },
            [&](const Tensor& w) { return b.starts(w, 1, b.channels); }, b.g.outputs, b.channels});
    return executable([b](const RunArgs& args) { run(b, args); });
  };
  answers.offers.push_back(std::move(o));
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
  Depthwise b{*picture, Frame(v, g, epilogue, thresholds)};
  b.kernels = &kernels;
  b.blocks = std::move(blocks);
  b.taps = taps_of(b);
  b.channels = (g.outputs + kernels.floats - 1) / kernels.floats * kernels.floats;
  for (const auto& place : b.places[2]) b.kinds.push_back(place.kind * b.channels);
  b.for_layouts(true, true, [&](bool bits_in, bool bits_out) {
    b.lay(g, bits_in, bits_out);
    offer_with(v, answers, b);
  });
}

}  // namespace lamina
