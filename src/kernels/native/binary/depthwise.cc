/// Lines of the picture are packed to bits when the first row of outputs wants them
/// (depthwise_lines.h). A thread keeps those that its windows reach, one per line modulo their number.
#include "kernels/native/binary/depthwise.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/binary/depthwise_lines.h"
#include "kernels/native/binary/packing.h"
#include "kernels/native/binary/stages.h"
#include "ops/convolution.h"

namespace lamina {
namespace {

using binary::DepthwiseKernels;
using binary::Frame;
using binary::Picture;

struct BinaryDepthwise : Picture, Frame {
  const DepthwiseKernels* kernels = nullptr;
  std::vector<binary::Block> blocks = {};
  std::vector<std::int64_t> kinds = {};  ///< of outputs along a row, in floats
  std::int64_t channels = 0;             ///< whole vectors of them
  std::int64_t reach = 1;                ///< lines of a plane that a window reaches, holes included
  WorkPartition rows{};
  std::int64_t line_bytes = 0;  ///< of a packed line

  /// A vector for each tap of a line, not for each point.
  bool by_tap(const binary::Block& block) const {
    return block.slots >= 8 && g.kernel[2] <= block.slots * g.stride[2];
  }
  std::int64_t vectors(const binary::Block& block) const {
    return by_tap(block) ? ceil_div(g.out[2], block.slots) * g.kernel[2] : padded[2];
  }
  std::int64_t block_bytes() const { return g.kernel[0] * reach * line_bytes; }
  std::int64_t kept_bytes() const { return static_cast<std::int64_t>(blocks.size()) * block_bytes(); }
  /// Bytes of a row's sums that are kept in scratch memory.
  std::int64_t apart_bytes() const { return epilogue.apart_bytes(g.out[2] * g.outputs); }
};

std::vector<binary::Block> blocks_of(std::int64_t channels, std::int64_t floats) {
  std::vector<binary::Block> blocks;
  for (std::int64_t first = 0; first < channels; first += 32 * floats) {
    const auto count = std::min(channels - first, 32 * floats), bits = ceil_div(count, floats);
    blocks.push_back({first, count, bits, 32 / bits});
  }
  return blocks;
}

/// Signs as the windows' vectors have them: [block][tap], repeated in every slot.
Tensor packed_weights(const BinaryDepthwise& b, const Tensor& weights) {
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

Cost cost_of(const Machine& machine, const BinaryDepthwise& b) {
  const auto& g = b.g;
  const double outputs = static_cast<double>(g.images * g.out_points() * b.channels),
               moved = static_cast<double>(b.epilogue.out.bytes(g.images * g.out_points() * g.outputs) +
                                           b.in.bytes(g.images * g.in_points() * g.inputs));
  return cost_of(machine, Family::binary_depthwise, outputs * static_cast<double>(g.taps()), moved);
}

/// Line y of plane z of a packed picture, for the windows' plane `tap`.
void pack_line(const BinaryDepthwise& b, const std::byte* in, std::uint8_t* kept, std::int64_t image,
               std::int64_t tap, std::int64_t z, std::int64_t y) {
  const auto& g = b.g;
  const auto slot = tap * b.reach + y % b.reach;
  z -= g.pad[0];
  y -= g.pad[1];
  const bool inside = y >= 0 && y < g.in[1] && z >= 0 && z < g.in[0];
  binary::DepthwiseLine l{};
  l.booleans = b.in.element == ElementType::boolean;
  l.bits = b.in.bits();
  l.in_step = b.in.step;
  l.left = std::min(g.pad[2], b.padded[2]);
  l.count = std::min(g.in[2], b.padded[2] - l.left);
  l.points = b.padded[2];
  l.stride = g.stride[2];
  l.outputs = g.out[2];
  l.dilation = g.dilation[2];
  l.out = kept + slot * b.line_bytes;
  for (const auto& block : b.blocks) {
    l.block = block;
    l.taps = b.by_tap(block) ? g.kernel[2] : 0;
    const auto first = ((image * g.in[0] + z) * g.in[1] + y) * g.in[2];
    l.in = inside ? b.in.at<const void>(in, first, block.first) : nullptr;
    b.kernels->pack(l);
    l.out += b.block_bytes();
  }
}

/// Bytes of the kept lines at which the taps of a row's first window lie.
void find_taps(const BinaryDepthwise& b, std::int64_t y, bool by_tap, std::int64_t* taps) {
  const auto& g = b.g;
  const auto step = by_tap ? b.kernels->bytes() : g.dilation[2] * b.point;
  for (std::int64_t i = 0; i < g.kernel[0]; ++i)
    for (std::int64_t j = 0; j < g.kernel[1]; ++j)
      for (std::int64_t k = 0; k < g.kernel[2]; ++k) {
        const auto slot = i * b.reach + (y * g.stride[1] + j * g.dilation[1]) % b.reach;
        *taps++ = slot * b.line_bytes + k * step;
      }
}

void run_row(const BinaryDepthwise& b, const RunArgs& args, const std::uint8_t* kept, std::int64_t index,
             std::int64_t slot, StageRun* stages) {
  const auto& g = b.g;
  const std::int64_t y = index % g.out[1], z = index / g.out[1] % g.out[0], point = index * g.out[2];
  std::int64_t taps[binary::kMostDepthwiseTaps];
  const auto &pz = b.places[0][static_cast<std::size_t>(z)], &py = b.places[1][static_cast<std::size_t>(y)];
  const auto sums = b.sums(args, point, g.out[2], slot, b.apart_bytes());
  binary::DepthwiseRow r{};
  r.x = kept;
  r.count = g.out[2];
  r.taps = taps;
  r.tap_count = g.taps();
  r.w = reinterpret_cast<const std::uint8_t*>(b.packed.raw());
  r.kinds = b.kinds.data();
  r.out_step = b.thresholds ? b.sign_row() : sums.row();
  r.add_step = b.epilogue.added.step;
  r.finish = b.epilogue.finish;
  r.bits = b.epilogue.out.bits();
  for (const auto& block : b.blocks) {
    r.block = block;
    find_taps(b, y, b.by_tap(block), taps);
    r.x_step = b.by_tap(block) ? g.kernel[2] * b.kernels->bytes() : block.slots * g.stride[2] * b.point;
    r.start = b.start.data<float>().data() + (pz.kind + py.kind) * b.channels + block.first;
    if (b.thresholds)
      r.signs = b.signs(args, point, block.first);
    else
      r.out = sums.data() + block.first;
    r.add = b.epilogue.add_at(args, point, block.first);
    b.kernels->row(r);
    r.x += b.block_bytes();
    r.w += g.taps() * b.kernels->bytes();
  }
  b.clear_tails(args, point, g.out[2]);
  if (stages) sums.apply(*stages);
}

/// Rows [first, last), from lines that are kept in the slot.
void run_rows(const BinaryDepthwise& b, const RunArgs& args, std::int64_t first, std::int64_t last,
              std::int64_t slot, StageRun* stages) {
  const auto& g = b.g;
  const auto* in = static_cast<const std::byte*>(args.in[0]);
  auto* kept = static_cast<std::uint8_t*>(args.scratch) + slot * b.kept_bytes();
  std::int64_t packed = 0;  // lines of the planes
  for (auto row = first; row < last; ++row) {
    const std::int64_t y = row % g.out[1] * g.stride[1], z = row / g.out[1] % g.out[0] * g.stride[0],
                       image = row / g.out[1] / g.out[0];
    if (y == 0) packed = 0;
    for (packed = std::max(packed, y); packed < y + b.reach; ++packed)
      for (std::int64_t tap = 0; tap < g.kernel[0]; ++tap)
        pack_line(b, in, kept, image, tap, z + tap * g.dilation[0], packed);
    run_row(b, args, kept, row, slot, stages);
  }
}

void run(const BinaryDepthwise& b, const RunArgs& args) {
  b.epilogue.run(args.in, b.rows, [&](auto begin, auto end, auto slot, StageRun* stages) {
    run_rows(b, args, begin, end, slot, stages);
  });
}

void offer_with(const NodeView& v, Answers& answers, BinaryDepthwise b) {
  const auto& g = b.g;
  const auto total = cost_of(v.machine(), b);
  b.rows = partitioned_here(g.images * g.out[0] * g.out[1], total.us());
  auto o = b.offer(v, b.kernels->name, static_cast<std::size_t>(b.rows.slots * b.kept_bytes()), b.rows.slots,
                   b.apart_bytes(), total);
  o.make = [b, weights = *v.constant(1)](MakeContext& context) mutable -> std::unique_ptr<Executable> {
    b.make(context, weights,
           {fmt::format("native_binary {}", b.kernels->name),
            b.starts_key(),
            {ElementType::u32, static_cast<std::int64_t>(b.blocks.size()) * b.g.taps() * b.kernels->floats},
            b.starts_size(1, b.channels),
            [&](const Tensor& w) { return packed_weights(b, w); },
            [&](const Tensor& w) { return b.starts(w, 1, b.channels); },
            b.g.outputs,
            b.channels});
    return executable([b](const RunArgs& args) { run(b, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace

void offer_binary_depthwise(const NodeView& v, Answers& answers, const Epilogue& epilogue,
                            const std::optional<binary::Thresholds>& thresholds) {
  const auto g = windows::geometry_of(v);
  const auto& kernels = binary::depthwise_kernels(v.machine().isa(), g.outputs);
  auto blocks = blocks_of(g.outputs, kernels.floats);
  const auto picture = Picture::of(g, static_cast<int>(v.op<BinaryConvolution>()->pad_value), kernels.bytes(),
                                   static_cast<std::int64_t>(blocks.size()) * kernels.bytes());
  if (!picture) return answers.refuse("native", "windows reach far outside the input");
  BinaryDepthwise b{*picture, Frame(v, epilogue, thresholds)};
  b.kernels = &kernels;
  b.blocks = std::move(blocks);
  b.reach = (g.kernel[1] - 1) * g.dilation[1] + 1;
  for (const auto& block : b.blocks)
    b.line_bytes = std::max(b.line_bytes, b.vectors(block) * kernels.bytes());
  b.channels = round_up(g.outputs, kernels.floats);
  for (const auto& place : b.places[2]) b.kinds.push_back(place.kind * b.channels);
  b.for_layouts(true, true, [&](bool bits_in, bool bits_out) {
    b.lay(bits_in, bits_out);
    offer_with(v, answers, b);
  });
}

}  // namespace lamina
