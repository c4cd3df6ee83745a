#include "kernels/native/binary/stages.h"

#include "base/divide.h"
#include "kernels/bits.h"

namespace lamina::binary {

Frame::Frame(const NodeView& v, const windows::Geometry& g, const gemm::Epilogue& e,
             const std::optional<Thresholds>& t)
    : epilogue(e),
      thresholds(t),
      out_channels(g.outputs),
      out_points(g.images * g.out_points()),
      add_row(g.outputs) {
  in.booleans = v.element(0) == ElementType::boolean;
  out.booleans = v.out_element() == ElementType::boolean;
  lay(g, false, false);
}

void Frame::lay(const windows::Geometry& g, bool bits_in, bool bits_out) {
  const auto row = [](std::int64_t channels, bool bits) {
    return bits ? 8 * bits::point_bytes(channels) : channels;
  };
  in.bits = bits_in;
  in.row = row(g.inputs, bits_in);
  out.bits = bits_out;
  out.row = row(g.outputs, bits_out);
}

Offer Frame::offer(const NodeView& v, const char* kernels, std::size_t packed_bytes, double microseconds) {
  Offer o;
  o.label = fmt::format("native_binary_{}_f32", kernels);
  epilogue.add_to(o, v, Layout::channels_last);
  o.inputs[0] = in.layout();
  o.outputs[0] = out.layout();
  o.consumed.push_back(1);
  if (!in.bits) o.wide_inputs.push_back(0);
  if (epilogue.add) o.wide_inputs.push_back(*epilogue.add);
  if (!out.bits) o.wide_outputs.push_back(0);
  sums_at = round_up(packed_bytes, 64u);
  o.scratch = sums_at;
  if (out.booleans && !thresholds)
    o.scratch += static_cast<std::size_t>(out_points * out_channels) * sizeof(float);
  o.cost += microseconds;
  return o;
}

void Frame::make(MakeContext& context, const Tensor& weights, const Packer& packer) {
  if (const auto row = context.input_row(0)) in.row = row;
  if (const auto row = context.output_row()) out.row = row;
  if (epilogue.add)
    if (const auto row = context.input_row(*epilogue.add)) add_row = row;
  if (!thresholds) {
    start = packer.starts(weights);
    packed = context.weights.packed(weights, packer.key, [&](const Tensor& w) { return packer.weights(w); });
    return;
  }
  const auto turned = thresholds->turned(weights);  // others may read these weights as they are
  start = packer.starts(turned);
  thresholds->take_from(start, out_channels, packer.group, packer.stride);
  packed = context.weights.moved(weights, packer.key + thresholds->turned_key(),
                                 [&](const Tensor&) { return packer.weights(turned); });
}

}  // namespace lamina::binary
