/// The document about an offline optimisation.
#include <nlohmann/json.hpp>

#include "base/guard.h"
#include "base/json_text.h"
#include "lamina/optimize.h"

namespace lamina {
namespace {

nlohmann::json json_of(const GraphFigures& g) {
  return {{"operators", g.operators},
          {"multiply_adds", g.multiply_adds},
          {"flops", g.flops},
          {"flops_complete", g.complete},
          {"flops_of_one", g.for_batch_1}};
}

}  // namespace

std::string OptimizeReport::json() const {
  return guarded("OptimizeReport::json", [&] {
    auto fusions = nlohmann::json::object();
    for (const auto& fusion : rules) fusions[fusion.rule] = fusion.count;
    const nlohmann::json document{{"model", model},
                                  {"format", format},
                                  {"xml", xml},
                                  {"bin", bin},
                                  {"version", ir_version},
                                  {"layers", layers},
                                  {"constants", constants},
                                  {"shared_constants", shared_constants},
                                  {"xml_bytes", xml_bytes},
                                  {"bin_bytes", bin_bytes},
                                  {"compressed_to_fp16", compressed_to_fp16},
                                  {"keeps_halves", keeps_halves},
                                  {"seconds", seconds},
                                  {"rewrites", rewrites},
                                  {"rules", fusions},
                                  {"before", json_of(before)},
                                  {"after", json_of(after)},
                                  {"unused_inputs", unused_inputs},
                                  {"dropped_inputs", dropped_inputs},
                                  {"exempt", exempt},
                                  {"notes", notes},
                                  {"warnings", warnings}};
    return json_text(document);
  });
}

}  // namespace lamina
