#pragma once
/// The report about the rewriting of a model that a verb has compiled.
#include "tool/session.h"

namespace lamina::tool {

/// Rewrites the model once more, with the sizes of the session's inputs, and writes the rewrites as one page
/// (tool/rewrite_report.h). Throws Error(bad_file).
void report_rewriting(const std::string& path, const Common& common, const Session& session);

}  // namespace lamina::tool
