/// lamina compile: a model and what was made of it in one file, ready to run.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "tool/session.h"
#include "tool/shape_option.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

/// --shape leaves sizes open: nothing is planned for such a model before it runs.
bool asks_for_open_sizes(const Common& c, const Model& model) {
  std::vector<std::string> names;
  for (const auto& p : model.inputs()) names.push_back(p.name);
  const auto asked = shape_sizes(c.shape, names);
  return std::any_of(asked.begin(), asked.end(), [](const auto& one) { return any_open(one.second); });
}

/// Shapes of all inputs to plan for: those of --shape, of the model, and 1 for batches that neither says.
/// Throws UsageError where a size is not known.
std::vector<Dims> shapes_to_plan(const Common& c, const Model& model) {
  InputOptions options;
  options.only_shapes = options.no_files = true;
  std::vector<std::string> notes;
  std::vector<Dims> shapes;
  for (const auto& tensor : gather_inputs(model, options, c, notes)) shapes.push_back(tensor.shape());
  return shapes;
}

int run(const Common& c, const std::string& output) {
  auto options = c.options();
  options.keep_weights = true;  // what is saved is packed from them
  const auto model = open_model(c);
  for (const auto& file : model.files())
    if (std::error_code ignored; std::filesystem::equivalent(file, output, ignored))
      throw UsageError(fmt::format("-o {}: is the model itself", output));
  const bool open = asks_for_open_sizes(c, model);
  if (open && c.tune) throw UsageError("--tune measures, so --shape must give numbers for all sizes");
  const auto shapes = open ? std::vector<Dims>() : shapes_to_plan(c, model);
  if (c.tune) {
    std::vector<std::string> notes;
    options = tuned_options(c, model, std::move(options), gather_inputs(model, {}, c, notes));
  }
  Progress progress("compiling " + c.model, c);
  options.progress = progress.callback();
  const CompiledModel compiled(model, options);
  if (!open) compiled.plan(shapes);
  compiled.save(output);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(output, error);
  const auto plans = compiled.plans();
  c.say("{}: {}, for {}; {}", output, human_bytes(error ? 0 : static_cast<double>(bytes)),
        name_of(effective_isa()),
        open || plans == 0 ? "not planned for any input sizes: the first run with each size makes a plan"
                           : fmt::format("planned for {}", inputs_text(model.inputs(), shapes)));
  write_json(c, {{"model", c.model},
                 {"output", output},
                 {"bytes", error ? 0 : bytes},
                 {"isa", name_of(effective_isa())},
                 {"plans", plans}});
  return 0;
}

}  // namespace

Verb setup_compile(OptionSet& options) {
  auto c = std::make_shared<Common>();
  auto output = std::make_shared<std::string>();
  add_model(options, *c);
  options.text("-o,--output", *output, "FILE", "The file to write, FILE.lamina").required();
  add_compile_options(options, *c);
  add_json(options, *c);
  return [=] { return run(*c, *output); };
}

}  // namespace lamina::tool
