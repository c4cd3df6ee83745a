/// Transpose, Concat, Split, Slice, Pad, Broadcast, Tile, DepthToSpace, ...: strided copies.
#include "ops/movement.h"

#include <algorithm>

#include "kernels/cost.h"
#include "kernels/native/move/copies.h"
#include "ops/shaping.h"

namespace lamina {
namespace {

/// Concat and the splits, whose parts may lie in wider tensors.
bool slices_channels(const Op& op) { return op.is<Concat>() || op.is<Split>() || op.is<VariadicSplit>(); }

struct Channels {
  std::vector<std::int64_t> in, out;
};
Channels channels_of(const NodeView& v) {
  const auto second = [](const Dims& d) { return d.size() > 1 ? d[1] : 1; };
  Channels c;
  for (std::size_t i = 0; i < v.inputs(); ++i) c.in.push_back(v.has(i) ? second(v.dims(i)) : 1);
  for (std::size_t i = 0; i < v.outputs(); ++i) c.out.push_back(second(v.out_dims(i)));
  return c;
}

/// Strides within a pixel stay, those over pixels of `channels` elements become those over rows of `row`.
void widen(Dims& strides, std::int64_t& offset, std::int64_t channels, std::int64_t row) {
  if (row == 0 || channels == 0) return;  // a part without channels moves nothing
  for (auto& s : strides) s = s % channels + s / channels * row;
  offset = offset % channels + offset / channels * row;
}

/// Fits the copies to where the plan has put the tensors.
void arrange(Moves& moves, const Channels& channels, const MakeContext& context) {
  std::erase_if(moves.jobs, [&](const CopyJob& job) {
    return job.src < context.in_place.size() && context.in_place[job.src];
  });
  for (auto& job : moves.jobs) {
    widen(job.src_strides, job.src_offset, channels.in[job.src], context.input_row(job.src));
    widen(job.dst_strides, job.dst_offset, channels.out[job.dst], context.output_row(job.dst));
    job = simplified(job);
  }
}

/// Inputs that hold bounds, axes and the like rather than data.
bool is_parameter(const Op& op, std::size_t input) { return input > 0 && !op.is<Concat>(); }

}  // namespace

bool is_movement(const Op& op) {
  return op.is<Transpose>() || op.is<Concat>() || op.is<Split>() || op.is<VariadicSplit>() ||
         op.is<Slice>() || op.is<StridedSlice>() || op.is<Pad>() || op.is<Broadcast>() || op.is<Tile>() ||
         op.is<DepthToSpace>() || op.is<SpaceToDepth>() || op.is<ShuffleChannels>();
}

void offer_movement(const NodeView& v, Answers& answers) {
  const auto bytes = whole_bytes(v.element(0));
  if (bytes == 0) return answers.refuse("native", "packed elements");
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last &&
        (v.node().op.is<Transpose>() || v.dims(0).size() < 3 || v.out_dims().size() != v.dims(0).size()))
      continue;
    Moves moves;
    if (const auto verdict = copies_of(v, layout, moves); !verdict) {
      answers.refuse("native", "{}: {}", name_of(layout), verdict.reason());
      continue;
    }
    Offer o;
    o.label = "native_copy";
    for (std::size_t i = 0; i < v.inputs(); ++i) {
      o.inputs.push_back(is_parameter(v.node().op, i) ? Layout::plain : layout);
      if (is_parameter(v.node().op, i)) o.consumed.push_back(i);
    }
    o.outputs.assign(v.outputs(), layout);
    double moved = 0;
    for (std::size_t i = 0; i < v.outputs(); ++i)
      moved += 2.0 * static_cast<double>(element_count(v.out_dims(i)) * bytes);
    o.cost = move_cost(v.machine(), moved) * (v.node().op.is<Transpose>() ? 2 : 1);
    if (layout == Layout::channels_last && slices_channels(v.node().op)) {
      for (std::size_t i = 0; i < v.inputs(); ++i)
        if (!is_parameter(v.node().op, i)) o.wide_inputs.push_back(i);
      for (std::size_t i = 0; i < v.outputs(); ++i) o.wide_outputs.push_back(i);
    }
    o.skips_in_place = v.node().op.is<Concat>();
    const auto channels = channels_of(v);
    o.make = [moves = std::move(moves), bytes, channels](MakeContext& context) mutable {
      arrange(moves, channels, context);
      return executable([moves, bytes](const RunArgs& args) {
        for (const auto& job : moves.border)
          run_copy(job, bytes, moves.fill.raw(), static_cast<std::byte*>(args.out[0]));
        for (const auto& job : moves.jobs)
          if (args.out[job.dst])
            run_copy(job, bytes, static_cast<const std::byte*>(args.in[job.src]),
                     static_cast<std::byte*>(args.out[job.dst]));
      });
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
