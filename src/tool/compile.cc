/// lamina compile: a model and what was made of it in one file, ready to run.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tool/session.h"
#include "tool/tune.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

/// What --shape says; sizes of all inputs must be known then.
void plan_shapes(const Common& c, const Model& model, const Compiled& compiled) {
  InputOptions options;
  options.only_shapes = options.sizes_wanted = true;
  std::vector<std::string> notes;
  std::vector<Dims> shapes;
  for (const auto& tensor : gather_inputs(model.inputs(), options, c, notes))
    shapes.push_back(tensor.shape());
  compiled.plan_for(shapes);
}

int run(const Common& c, const std::string& output) {
  auto options = c.options();
  options.keep_weights = true;  // what is saved is packed from them
  const auto model = open_model(c);
  for (const auto& part : Inside::of(model).parts())
    if (std::error_code ignored; std::filesystem::equivalent(part.file->path(), output, ignored))
      throw UsageError(fmt::format("-o {}: is the model itself", output));
  if (c.tune) {
    std::vector<std::string> notes;
    options = tuned(c, model, std::move(options), gather_inputs(model.inputs(), {}, c, notes));
  }
  Progress progress("compiling " + c.model, c);
  options.progress = progress.callback();
  const CompiledModel compiled(model, options);
  if (!c.shape.empty()) plan_shapes(c, model, Inside::of(compiled));
  compiled.save(output);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(output, error);
  const auto plans = Inside::of(compiled).program()->cache()->plans();
  c.say("{}: {}, for {}{}", output, human_bytes(error ? 0 : static_cast<double>(bytes)),
        name_of(effective_isa()),
        plans == 0 ? "; sizes of inputs are known when it runs (--shape plans for some)" : "");
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
