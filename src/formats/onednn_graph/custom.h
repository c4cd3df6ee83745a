#pragma once
/// Operations that a library of custom layers has, under the domain "onednn_graph".
#include "extension/custom_op.h"
#include "formats/onednn_graph/call.h"

namespace lamina::onednn_graph {

inline constexpr std::string_view kDomain = "onednn_graph";

/// Attributes that the operation does not declare are left out.
Values make_custom(const Call& c, std::shared_ptr<const DeclaredOperation> operation);

}  // namespace lamina::onednn_graph
