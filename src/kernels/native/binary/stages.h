#pragma once
/// What native binary convolutions have around their counts: where they read and write, the stages behind
/// them, and the layouts that they offer.
#include <functional>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "kernels/native/binary/packing.h"
#include "kernels/native/binary/thresholds.h"
#include "kernels/native/convolution/window.h"
#include "kernels/native/gemm/epilogue.h"
#include "kernels/native/stages/program.h"

namespace lamina::binary {

/// Some finished points: sums in the output itself, or in memory of their own when stages make booleans.
class Sums {
 public:
  /// `signs`: the kernel makes the booleans itself. `memory`: else room for the sums of the whole output
  /// where stages make booleans.
  Sums(void* out, const Elements& elements, bool signs, std::int64_t channels, std::int64_t first,
       std::int64_t count, float* memory = nullptr)
      : elements_(elements), channels_(channels), first_(first), count_(count) {
    out_ = static_cast<std::byte*>(out) + elements.bytes(first * elements.row);
    if (elements.booleans && !signs) memory_ = memory + first * channels;
  }
  float* data() const { return memory_ ? memory_ : reinterpret_cast<float*>(out_); }
  /// Those of a channel that is the first bit of its byte.
  std::uint8_t* signs(std::int64_t channel = 0) const {
    return reinterpret_cast<std::uint8_t*>(out_) + elements_.bytes(channel);
  }
  /// From point to point of data(), or bytes of signs().
  std::int64_t row() const {
    if (memory_) return channels_;
    return elements_.bits ? elements_.row / 8 : elements_.row;
  }

  void apply(StageRun& stages) const {
    if (elements_.row == channels_) return stages(data(), out_, first_ * channels_, count_ * channels_);
    for (std::int64_t i = 0; i < count_; ++i)
      stages(data() + i * row(), out_ + elements_.bytes(i * elements_.row), (first_ + i) * channels_,
             channels_);
  }

  /// The whole bytes of bits behind the last channel.
  void clear_tails() const {
    const auto used = (channels_ + 7) / 8;
    if (!elements_.bits || used == row()) return;
    for (std::int64_t i = 0; i < count_; ++i)
      for (auto byte = used; byte < row(); ++byte) signs()[i * row() + byte] = 0;
  }

 private:
  Elements elements_;
  std::int64_t channels_, first_, count_;
  std::byte* out_;
  float* memory_ = nullptr;
};

/// How a kernel packs weights, of u1 or numbers.
struct Packer {
  std::string key;  ///< of the packed weights in a WeightStore
  std::function<Tensor(const Tensor&)> weights;
  std::function<Tensor(const Tensor&)> starts;  ///< what counts are taken from, [kind][group][stride]
  std::int64_t group, stride;                   ///< outputs of a group, and room for them
};

/// Of one node.
struct Frame {
  gemm::Epilogue epilogue;
  std::optional<Thresholds> thresholds;           ///< the kernel makes signs, and the epilogue is empty
  std::int64_t out_channels = 0, out_points = 0;  ///< these of all images
  Elements in, out;
  std::int64_t add_row = 0;  ///< floats from point to point
  std::size_t sums_at = 0;   ///< bytes of the scratch before the sums that stages make booleans of
  Tensor packed, start;      ///< weights and what counts are taken from

  Frame() = default;
  Frame(const NodeView& v, const windows::Geometry& g, const gemm::Epilogue& epilogue,
        const std::optional<Thresholds>& thresholds);

  /// Input and output lie as bits or, what is always possible, as elements of their own.
  void lay(const windows::Geometry& g, bool bits_in, bool bits_out);
  /// Calls offer(bits_in, bits_out) for all ways to lay them, of a kernel that reads and makes bits or not.
  template <class F>
  void for_layouts(bool reads_bits, bool makes_bits, const F& offer) const {
    for (const bool bits_in : {false, true})
      for (const bool bits_out : {false, true})
        if ((!bits_in || (reads_bits && in.booleans)) && (!bits_out || (makes_bits && thresholds)))
          offer(bits_in, bits_out);
  }

  /// All but how it is made, behind `packed` bytes of scratch. Sets where sums lie.
  Offer offer(const NodeView& v, const char* kernels, std::size_t packed, double microseconds);
  /// What the plan has decided, and the weights, some outputs' turned for thresholds.
  void make(MakeContext& context, const Tensor& weights, const Packer& packer);

  /// Points [first, first + count) of the output.
  Sums sums(const RunArgs& args, std::int64_t first, std::int64_t count) const {
    auto* memory = reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + sums_at);
    return Sums(args.out[0], out, thresholds.has_value(), out_channels, first, count, memory);
  }
  /// What is added to a point, or null.
  const float* add(const RunArgs& args, std::int64_t point) const {
    return epilogue.add ? static_cast<const float*>(args.in[*epilogue.add]) + point * add_row : nullptr;
  }
  /// Calls work(begin, end, slot, stages or null) for pieces of all tasks, in parallel.
  template <class F>
  void run(const RunArgs& args, const Division& tasks, const F& work) const {
    parallel_for(tasks, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      if (epilogue.registers_only()) return work(begin, end, slot, static_cast<StageRun*>(nullptr));
      StageRun stages(*epilogue.stages, args.in);
      work(begin, end, slot, &stages);
    });
  }
};

}  // namespace lamina::binary
