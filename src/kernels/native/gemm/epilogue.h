#pragma once
/// Epilogues of native products and convolutions: the common short ones are applied in registers, all others
/// as a program over finished rows.
#include <memory>
#include <optional>
#include <string>

#include "kernels/kernel.h"
#include "kernels/native/gemm/tiles.h"
#include "kernels/native/stages/program.h"

namespace lamina::gemm {

struct Epilogue {
  Finish finish;
  std::optional<std::size_t> add;              ///< input of the node, of the output's shape
  std::shared_ptr<const StageProgram> stages;  ///< null when the registers do it all
  bool registers_only() const { return !stages; }

  /// Layouts, consumed constants and cost in an offer whose own inputs are set; inputs that the kernel packs
  /// or copies at make time are marked by the caller.
  void add_to(Offer& offer, const NodeView& v, Layout layout) const;
};

/// The node's epilogue for a kernel that writes output 0 in `layout`; nothing and a sentence when there is no
/// code for it.
std::optional<Epilogue> read_epilogue(const NodeView& v, Layout layout, std::string& why);

/// The bias (input 2) as `groups` lists of whole vectors, each list of `columns` values padded to
/// `padded_columns`; an invalid tensor when the node has none. The bias must be constant; its values repeat
/// when they are fewer than the columns of all groups.
Tensor padded_bias(const NodeView& v, std::int64_t groups, std::int64_t columns, std::int64_t padded_columns);

}  // namespace lamina::gemm
