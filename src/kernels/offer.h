#pragma once
/// Offers: kernel candidates for a node. The plan selects one offer per node and makes it executable.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/cost.h"
#include "kernels/executable.h"
#include "kernels/node_view.h"
#include "kernels/rows.h"
#include "kernels/weights.h"

namespace lamina {

/// What the plan has decided about the tensors of a node when its kernel is made.
struct MakeContext {
  WeightStore& weights;
  /// Elements from one pixel of a channels-last tensor to the next when it is a slice of a wider one's
  /// channels; 0 (or missing): dense. Only where the offer allows it (wide_inputs, wide_outputs).
  std::vector<std::int64_t> input_rows = {}, output_rows = {};
  /// Inputs that lie in their place in the output already (Concat); only where the offer allows it.
  std::vector<bool> in_place = {};
  /// Set by a kernel that runs another way than its offer says, having seen the weights: how.
  std::string label = {};
  std::int64_t input_row(std::size_t i) const { return i < input_rows.size() ? input_rows[i] : 0; }
  std::int64_t output_row(std::size_t i = 0) const { return i < output_rows.size() ? output_rows[i] : 0; }
  /// How a tensor lies that is dense where the plan has not decided otherwise.
  Rows input(std::size_t i, Rows rows) const {
    return rows.step = input_row(i) ? input_row(i) : rows.step, rows;
  }
  Rows output(Rows rows) const { return rows.step = output_row() ? output_row() : rows.step, rows; }
};

/// `output` may be written over `input` (same bytes, element i is read before or when element i is written).
struct InPlace {
  std::size_t input = 0, output = 0;
};

/// A kernel for a node, with its layouts and stages: plain data from which the offer can be made again
/// (offer_of).
struct Recipe {
  std::string kernel;             ///< key of the registry: "onednn.convolution"; ask_kernels() fills it in
  std::string label;              ///< variant, in the field's style: "jit_avx512_1x1_f32", "native_transpose"
  std::vector<Layout> inputs;     ///< one per node input
  std::vector<Layout> outputs;    ///< one per node output
  std::size_t stages = SIZE_MAX;  ///< how many stages of the epilogue it takes, from the front
  bool operator==(const Recipe&) const = default;
};
/// "native.matmul plain,plain -> plain all native_gemm_avx2_f32"; and back. Throws Error(bad_input).
std::string to_text(const Recipe& recipe);
Recipe recipe_of(std::string_view text);

struct Offer : Recipe {
  Offer() = default;
  /// Input 0 and all outputs lie in that layout, other inputs plain.
  Offer(const NodeView& v, std::string label, Layout layout);

  std::vector<InPlace> in_place;
  std::vector<std::size_t> consumed;  ///< constant inputs that the executable does not read at run time
  std::vector<std::size_t> packed;    ///< of these, those that it reads through MakeContext::weights alone
  /// Inputs and outputs that may be slices of a wider tensor's channels, see MakeContext.
  std::vector<std::size_t> wide_inputs = {}, wide_outputs = {};
  bool skips_in_place = false;  ///< leaves out inputs that MakeContext::in_place names
  std::size_t scratch = 0;      ///< bytes, 64-byte aligned
  bool is_view = false;         ///< output 0 is input 0's memory (Reshape): nothing runs
  bool last_resort = false;     ///< taken only when nothing else offers
  bool unwanted = false;        ///< others are wanted, whatever is estimated (plan/kernel_overrides.h)
  Cost cost;                    ///< estimated, on one thread
  std::function<std::unique_ptr<Executable>(MakeContext&)> make;
};

/// What the kernels say about one node.
struct Answers {
  std::vector<Offer> offers;
  std::string forced = {};  ///< for this node (plan/kernel_overrides.h), or empty
  struct Refusal {
    std::string kernel, reason;
    bool decomposed = false;  ///< `kernel` is the node that this one was part of
  };
  std::vector<Refusal> refusals;
  template <class... A>
  void refuse(std::string kernel, fmt::format_string<A...> text, A&&... args) {
    refusals.push_back({std::move(kernel), fmt::format(text, std::forward<A>(args)...)});
  }
};

}  // namespace lamina
