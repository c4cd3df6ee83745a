/// What is in a model.
#include "api/at_work.h"
#include "api/inside.h"
#include "base/guard.h"
#include "base/json_text.h"
#include "draw/totals.h"
#include "lamina/listings.h"
#include "ops/unused_inputs.h"

namespace lamina {
namespace {

nlohmann::json ports_json(const std::vector<Port>& ports) {
  auto out = nlohmann::json::array();
  for (const auto& p : ports)
    out.push_back({{"name", p.name},
                   {"type", name_of(p.type)},
                   {"shape", p.shape},
                   {"dimensions", p.dimension_names},
                   {"text", to_string(p)}});
  return out;
}

}  // namespace

std::string describe_model(const Model& model) {
  return guarded("describe_model", [&] {
    const AtWork here;
    const auto& inside = Inside::of(model);
    const auto& loaded = inside.described();
    const auto t = graph_totals(loaded.graph);
    std::vector<std::string> unused;
    for (const auto& input : unused_inputs(loaded.graph)) unused.push_back(to_string(input));
    return json_text(nlohmann::json{{"model", inside.path()},
                                    {"format", name_of(loaded.format)},
                                    {"version", loaded.version},
                                    {"producer", loaded.producer},
                                    {"inputs", ports_json(inside.inputs())},
                                    {"outputs", ports_json(inside.outputs())},
                                    {"variables", ports_json(inside.variables())},
                                    {"compiled_for", inside.compiled_for()},
                                    {"operators", t.operators},
                                    {"parameters", t.parameters},
                                    {"parameter_bytes", t.parameter_bytes},
                                    {"parameter_types", t.parameter_types},
                                    {"flops", t.flops()},
                                    {"flops_complete", t.all_known},
                                    {"flops_of_one", t.of_one},
                                    {"multiply_adds", work_text(t)},
                                    {"unused", unused},
                                    {"unsupported", inside.unsupported()},
                                    {"warnings", inside.warnings()}});
  });
}

}  // namespace lamina
