#pragma once
/// Drawings of a model: of its graph in the file, after all optimisations, and as it runs.
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/export.h"
#include "lamina/model.h"
#include "lamina/options.h"
#include "lamina/progress.h"
#include "lamina/tensor.h"

namespace lamina {

/// original: the graph of the file. optimized: after all optimisations. both: these two side by side; nodes
/// with the same number and colour belong together. runtime: the plan, with kernels, layouts and measured
/// times.
enum class DrawStage : std::uint8_t { original, optimized, both, runtime };

/// svg: without scripts, nothing from outside. html: a page with the SVG, search, zoom, and a panel with
/// everything about a node. dot: for the program dot of Graphviz.
enum class DrawFormat : std::uint8_t { svg, html, dot };

struct DrawOptions {
  DrawStage stage = DrawStage::optimized;
  DrawFormat format = DrawFormat::svg;
  /// Columns of long graphs, at most; 0: as many as fit a page. It has no effect on DrawFormat::dot.
  std::size_t columns = 0;
  /// In the model's order. The stage runtime runs on them. The other stages use their shapes only: the graph
  /// is drawn, and optimised, for these sizes. Empty: sizes as in the file.
  std::vector<Tensor> inputs = {};
  double seconds = 0.3;  ///< how long the stage runtime measures; at least three runs
  /// Gets the progress of the rewriting.
  ProgressCallback progress = {};
  /// Cancels the work, which then throws Error(canceled).
  std::stop_token stop = {};
};

/// The stage of that name: "original", "optimized", "both", "runtime", and "before" and "after" for the first
/// two. Throws Error(bad_option), which names the stages.
LAMINA_API DrawStage draw_stage_named(std::string_view name);
/// The format of that name: "svg", "html", "dot". Throws Error(bad_option).
LAMINA_API DrawFormat draw_format_named(std::string_view name);

/// The text of a drawing. `options`: how the model is optimised, and for the stage runtime compiled; its
/// progress and stop count where DrawOptions has none. A model with unsupported operators can be drawn,
/// except at run time. Thread-safe. Throws Error(bad_input) for inputs that do not fit or are missing,
/// Error(bad_option), Error(over_limit), Error(canceled), and for the stage runtime what CompiledModel
/// throws.
LAMINA_API std::string draw(const Model& model, const Options& options = {},
                            const DrawOptions& draw_options = {});
/// The same for a model that was compiled, with the options that it was compiled with. The stage runtime runs
/// a request of its own. The other stages rewrite the graph once more. Throws Error(bad_file) where these
/// need weights that the file of a compiled model does not have.
LAMINA_API std::string draw(const CompiledModel& model, const DrawOptions& draw_options = {});

}  // namespace lamina
