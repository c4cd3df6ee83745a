#pragma once
/// What native binary convolutions have around their counts: where they read and write, the stages behind
/// them, and the layouts that they offer.
#include <functional>
#include <optional>
#include <vector>

#include "kernels/native/binary/packing.h"
#include "kernels/native/binary/thresholds.h"
#include "kernels/native/convolution/window.h"
#include "kernels/native/stages/epilogue.h"

namespace lamina::binary {

/// How a kernel packs weights, of u1 or numbers.
struct Packer {
  std::string key, starts_key;  ///< in a WeightStore
  PackedSize weights_size, starts_size;
  std::function<Tensor(const Tensor&)> weights;
  std::function<Tensor(const Tensor&)> starts;  ///< what counts are taken from, [kind][group][stride]
  std::int64_t group, stride;                   ///< outputs of a group, and room for them
};

/// Epilogues that end in integers of 8 bits, scaled, shifted and bounded; nothing for others.
std::optional<Epilogue> levels_in_registers(const NodeView& v);

/// The stages of one node.
struct Frame {
  Epilogue epilogue;
  std::optional<Thresholds> thresholds;  ///< the kernel makes signs, and the epilogue is empty
  Rows in;
  std::size_t apart_at = 0;  ///< bytes of the scratch before the sums that lie apart
  Tensor packed, start;      ///< weights and what counts are taken from

  Frame() = default;
  Frame(const NodeView& v, const Epilogue& epilogue, const std::optional<Thresholds>& thresholds);

  /// Input and output lie as bits or, what is always possible, as elements of their own.
  void lay(bool bits_in, bool bits_out);
  /// Calls offer(bits_in, bits_out) for all ways to lay them, of a kernel that reads and makes bits or not.
  template <class F>
  void for_layouts(bool reads_bits, bool makes_bits, const F& offer) const {
    for (const bool bits_in : {false, true})
      for (const bool bits_out : {false, true})
        if ((!bits_in || (reads_bits && in.element == ElementType::boolean)) &&
            (!bits_out || (makes_bits && thresholds)))
          offer(bits_in, bits_out);
  }

  /// All but how it is made. Scratch memory: `packed` bytes, then `apart` bytes in each of `slots`.
  Offer offer(const NodeView& v, const char* kernels, std::size_t packed, std::int64_t slots,
              std::int64_t apart, const Cost& cost);
  /// What the plan has decided, and the weights, some outputs' turned for thresholds.
  void make(MakeContext& context, const Tensor& weights, const Packer& packer);

  /// Points [first, first + count) of the output, of a task's slot with `apart` bytes.
  Sums sums(const RunArgs& args, std::int64_t first, std::int64_t count, std::int64_t slot,
            std::int64_t apart) const {
    auto* memory = static_cast<std::byte*>(args.scratch) + apart_at;
    const auto channels = epilogue.out.channels;
    return epilogue.sums(args.out[0], {first, count, 0, channels}, memory + slot * apart);
  }
  /// Booleans that the kernel makes of them: from a channel on that is the first bit of its byte, and bytes
  /// from point to point.
  std::uint8_t* signs(const RunArgs& args, std::int64_t point, std::int64_t channel) const {
    return epilogue.out.at<std::uint8_t>(args.out[0], point, channel);
  }
  std::int64_t sign_row() const { return epilogue.out.bytes(epilogue.out.step); }
  /// The whole bytes of bits behind the last channel.
  void clear_tails(const RunArgs& args, std::int64_t first, std::int64_t count) const;
};

}  // namespace lamina::binary
