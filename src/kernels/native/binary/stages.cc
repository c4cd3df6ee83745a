#include "kernels/native/binary/stages.h"

#include <cstring>

#include "base/work_partition.h"

namespace lamina::binary {

std::optional<Epilogue> levels_in_registers(const NodeView& v) {
  const auto type = v.out_element();
  if (type != ElementType::u8 && type != ElementType::i8) return std::nullopt;
  Epilogue e(Rows::of(type, v.out_dims(), Layout::channels_last));
  e.integers = IntegerEpilogue::of(v, 1);  // sums of signs are whole numbers
  if (!e.integers) return std::nullopt;
  const auto& f = e.integers->finish();
  if (f.stored != IntegerFinish::Stored::bytes || !f.simple()) return std::nullopt;
  return e;
}

Frame::Frame(const NodeView& v, const Epilogue& e, const std::optional<Thresholds>& t)
    : epilogue(e), thresholds(t), in(Rows::of(v.element(0), v.dims(0), Layout::channels_last)) {}

void Frame::lay(bool bits_in, bool bits_out) {
  const auto as = [](const Rows& rows, bool bits) {
    return Rows(rows.element, bits ? Layout::channels_last_bits : Layout::channels_last, rows.channels);
  };
  in = as(in, bits_in);
  epilogue.out = as(epilogue.out, bits_out);
}

Offer Frame::offer(const NodeView& v, const char* kernels, std::size_t packed_bytes, std::int64_t slots,
                   std::int64_t apart, const Cost& cost) {
  Offer o;
  o.label = fmt::format("native_binary_{}_f32", kernels);
  epilogue.add_to(o, v);
  o.inputs[0] = in.layout;
  o.consumed.push_back(1);
  if (!in.bits()) o.wide_inputs.push_back(0);
  apart_at = round_up(packed_bytes, 64u);
  o.scratch = apart_at + static_cast<std::size_t>(slots * apart);
  o.cost += cost;
  return o;
}

void Frame::clear_tails(const RunArgs& args, std::int64_t first, std::int64_t count) const {
  const auto used = (epilogue.out.channels + 7) / 8;
  if (!epilogue.out.bits() || used == sign_row()) return;
  for (auto* point = signs(args, first, 0); count > 0; --count, point += sign_row())
    std::memset(point + used, 0, static_cast<std::size_t>(sign_row() - used));
}

void Frame::make(MakeContext& context, const Tensor& weights, const Packer& packer) {
  in = context.input(0, in);
  epilogue.lay(context);
  if (!thresholds) {
    start = context.weights.moved(weights, packer.key + packer.starts_key, packer.starts_size, packer.starts);
    packed = context.weights.packed(weights, packer.key, packer.weights_size,
                                    [&](const Tensor& w) { return packer.weights(w); });
    return;
  }
  const auto turned = thresholds->turned(weights);  // others may read these weights as they are
  start = context.weights.moved(
      weights, packer.key + packer.starts_key + thresholds->turned_key() + thresholds->above_key(),
      packer.starts_size, [&](const Tensor&) {
        auto made = packer.starts(turned);
        thresholds->take_from(made, epilogue.out.channels, packer.group, packer.stride);
        return made;
      });
  packed = context.weights.moved(weights, packer.key + thresholds->turned_key(), packer.weights_size,
                                 [&](const Tensor&) { return packer.weights(turned); });
}

}  // namespace lamina::binary
