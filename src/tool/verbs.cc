/// The list of verbs.
#include "tool/verb_list.h"

namespace lamina::tool {

const std::vector<VerbRow>& verbs() {
  static const std::vector<VerbRow> table{
      {"run", "Runs a model once", "lamina run model.onnx --input image=cat.png --top 3", setup_run},
      {"check", "Compares the optimised model with the reference interpreter",
       "lamina check model.onnx --per-layer", setup_check},
      {"benchmark", "Measures latency, throughput, load time and memory",
       "lamina benchmark model.onnx --seconds 3 --threads 2", setup_benchmark},
      {"compile", "Writes a compiled model, which is ready to run, into a file",
       "lamina compile model.onnx -o model.lamina", setup_compile},
      {"cache", "Lists, checks or prunes a folder of compiled models (CACHE_DIR)",
       "lamina cache prune ~/.cache/models --keep 1024", setup_cache},
      {"inspect", "Shows inputs, outputs, operators and sizes", "lamina inspect model.onnx", setup_inspect},
      {"explain", "Shows what was done to each layer, and why", "lamina explain model.onnx --node conv1",
       setup_explain},
      {"graph", "Draws a model as in the file, as optimised, or as it runs",
       "lamina graph model.onnx --stage optimized -o model.svg", setup_graph},
      {"optimize", "Writes the optimised model as OpenVINO IR",
       "lamina optimize model.onnx -o model_ir.xml --mean_values [123.7,116.3,103.5]", setup_optimize},
      {"quantize", "Quantises a model to 8 bits with samples of its inputs; writes ONNX or OpenVINO IR",
       "lamina quantize model.onnx --data images -o model_int8.onnx --scale 255", setup_quantize},
      {"ops", "Lists the supported operators", "lamina ops --format onnx", setup_ops},
      {"rules", "Lists the optimisations", "lamina rules", setup_rules},
      {"version", "Shows versions, the processor and its limits", "lamina version --verbose", setup_version},
  };
  return table;
}

}  // namespace lamina::tool
