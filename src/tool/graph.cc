/// lamina graph: drawings of a model.
#include <filesystem>

#include "base/atomic_file.h"
#include "base/option_words.h"
#include "base/words.h"
#include "lamina/draw.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct GraphOptions {
  Common common;
  InputOptions inputs;
  std::string stage = "optimized", output;
  bool compare = false;
  double seconds = 0.3;
  std::size_t columns = 0;
};

DrawFormat format_of(const std::string& path) {
  const auto ending = lower_case(std::filesystem::path(path).extension().string());
  if (ending == ".svg") return DrawFormat::svg;
  if (ending == ".dot" || ending == ".gv") return DrawFormat::dot;
  if (ending == ".html" || ending == ".htm") return DrawFormat::html;
  throw UsageError(fmt::format("--output {}: wanted a name that ends with .svg, .html or .dot", path));
}

std::string draw_still(const GraphOptions& o, const DrawOptions& how) {
  const Model model = with_shapes(open_model(o.common), o.common);
  Progress progress("drawing " + o.common.model, o.common);
  return draw(model, o.common.options(), how);
}

std::string draw_runtime(const GraphOptions& o, DrawOptions how) {
  auto options = o.common.options();
  options.profile = true;
  options.keep_weights = true;  // what rules did is not in the files of compiled models
  const Session s(o.common, o.inputs, options);
  o.common.note(s.notes);
  how.inputs = s.inputs;
  return draw(s.compiled, how);
}

int run(const GraphOptions& o, DrawFormat format) {
  const DrawOptions how{.stage = o.compare ? DrawStage::both : draw_stage_named(o.stage),
                        .format = format,
                        .columns = o.columns,
                        .seconds = o.seconds};
  write_file(o.output, how.stage == DrawStage::runtime ? draw_runtime(o, how) : draw_still(o, how));
  return 0;
}

/// A key of --set.
bool is_of_rewriting(std::string_view key) {
  const auto bare = bare_key(key);
  return bare == "DISABLE" || bare == "EXEMPT" || bare == "STOP_AFTER";
}

/// Refuses options that have no effect on the stage or the format.
void check_words(const GraphOptions& o, const OptionSet& options, DrawFormat format) {
  const auto refuse = [&](std::initializer_list<const char*> names, const char* reason) {
    for (const auto* name : names)
      if (options.given(name)) throw UsageError(fmt::format("{}: {}", name, reason));
  };
  if (o.compare && options.given("--stage"))
    throw UsageError("--compare shows original and optimized: it cannot be combined with --stage");
  if (o.stage != "runtime")
    refuse({"--seconds", "--input", "--inputs", "--mean", "--scale", "--layout", "--color", "--fit", "--seed",
            "--threads", "--max-isa", "--precision", "--force", "--tune"},
           "needs --stage runtime: nothing is planned and nothing runs for the other stages");
  if (o.stage == "original")
    refuse({"--disable", "--exempt", "--set"},
           "cannot be combined with --stage original, which shows the model of the file");
  if (o.stage == "optimized")
    for (const auto& pair : o.common.set)
      if (!is_of_rewriting(pair.substr(0, pair.find('='))))
        throw UsageError(
            fmt::format("--set {}: needs --stage runtime: only DISABLE, EXEMPT and STOP_AFTER change "
                        "the optimised graph",
                        pair));
  if (format == DrawFormat::dot)
    refuse({"--columns"}, "needs .svg or .html: the program that draws a .dot file places its nodes");
}

}  // namespace

Verb setup_graph(OptionSet& options) {
  auto o = std::make_shared<GraphOptions>();
  add_model(options, o->common);
  options.choice(
      "--stage", o->stage, {"original", "optimized", "runtime"}, "STAGE",
      "original: as in the file; optimized: after all optimisations; runtime: as it runs, with times");
  options.flag("--compare", o->compare, "Original and optimized side by side, in matching colours");
  options.text("-o,--output", o->output, "FILE", "What to write: .svg, .html (with search and zoom) or .dot")
      .required();
  options.number("--seconds", o->seconds, 0.0, 86400.0, "S", "How long to measure for the stage runtime");
  options.number("--columns", o->columns, std::size_t{0}, std::size_t{100}, "N",
                 "Columns of long graphs; 0: as many as fit a page");
  add_input_options(options, o->inputs);
  add_compile_options(options, o->common);
  return [o, options] {
    const auto format = format_of(o->output);
    o->common.options();  // keys that are wrong are that first
    check_words(*o, options, format);
    return run(*o, format);
  };
}

}  // namespace lamina::tool
