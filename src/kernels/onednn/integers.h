#pragma once
/// Products of integers of 8 bits with sums of 32, which oneDNN computes exactly by VNNI or AMX only: below
/// that it adds neighbouring products in 16 bits, and halves the weights of signed sources.
#include "base/element_types.h"
#include "kernels/onednn/onednn.h"
#include "kernels/zero_points.h"

namespace lamina::onednn {

/// The machine has instructions for them.
Verdict multiplies_bytes(const Machine& machine);

/// "f32", "bf16", "u8s8", "s8s8": what the node multiplies, as oneDNN says it.
std::string_view operands_name(const NodeView& v);

/// Where the weights' channels lie in memory: `inner` elements from one to the next of `count`, or of the
/// `count` of each group.
struct WeightChannels {
  std::int64_t count, inner;
  std::int64_t groups = 1, group = 0;  ///< `group`: elements of one, where channels are counted by group

  std::int64_t total() const { return count * groups; }
  std::int64_t of(std::int64_t element) const {
    return element / inner % count + (group == 0 ? 0 : element / group * count);
  }
};

/// Zero points and weights of a product of integers.
class Integers {
 public:
  /// `packed`: the weights, if they are packed when the kernel is made. `keeps_zero`: oneDNN may be given a
  /// zero point of the weights (matrix products).
  static Verdict describe(const NodeView& v, const Tensor* packed, WeightChannels channels, bool keeps_zero,
                          Integers& out);

  void set(dnnl::primitive_attr& attr) const;
  /// Zero points.
  const std::vector<Arg>& args() const { return args_; }
  /// Inputs that are read when the kernel is made.
  const std::vector<std::size_t>& consumed() const { return consumed_; }
  /// How weights come before oneDNN packs them: with a sign, and without what is subtracted from them. Null:
  /// as they are.
  const WeightStore::Make& prepare() const { return prepare_; }
  /// Tells packings apart whose descriptors look the same.
  const std::string& key() const { return key_; }
  /// What is offered depends on the weights' elements: they cannot be left out of a plan in a file.
  bool looks_at_weights() const { return looks_at_weights_; }
  /// Whether the implementation stores exact i32 sums of so many products: some have been f32 before.
  bool stores_sums(std::string_view implementation, std::int64_t products) const;

 private:
  void set_source_zero(const NodeView& v, const ZeroPoints& zeros);
  Verdict set_weights(const NodeView& v, const ZeroPoints& zeros, const Tensor* packed,
                      WeightChannels channels, bool keeps_zero);

  std::vector<Arg> args_;
  std::vector<std::size_t> consumed_;
  WeightStore::Make prepare_;
  std::string key_;
  bool looks_at_weights_ = false, unsigned_source_ = false;
};

/// What the epilogue of integer sums begins with: scale * sum + bias in f32, which oneDNN does itself.
struct Scaling {
  std::vector<float> scales, bias;  ///< none, one, or one per channel

  /// The result in steps of another tensor's, above its zero point.
  void count_in(const Dequantized& steps);
  std::vector<float> bias_of_channels(std::int64_t channels) const;
};

}  // namespace lamina::onednn
