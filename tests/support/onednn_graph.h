#pragma once
/// Small graphs in oneDNN Graph's JSON, written by tests.
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"
#include "lamina/tensor.h"

namespace lamina::testing {

/// A logical tensor.
std::string logical(int id, const std::string& dtype, const Dims& shape);
/// "name": {"type": ..., "value": ...}
std::string attribute(const std::string& name, const std::string& type, const std::string& value);

/// A graph that grows by operations, whose ids count up from 1000 and whose names are "op1000", ...
class OneDnnGraph {
 public:
  OneDnnGraph& op(const std::string& kind, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const std::vector<std::string>& attributes = {});
  /// A field of the file itself: "input_ports": [1, 0]
  OneDnnGraph& field(const std::string& text);
  std::string text() const;

 private:
  int next_ = 1000;
  std::string fields_, ops_;
};

Loaded read_onednn_text(std::string_view text, const ReadSettings& settings = {});
/// Reads, rewrites as a run does, and interprets; one tensor per output. The graph as read must give the
/// same.
std::vector<Tensor> run_onednn(std::string_view text, const std::vector<Tensor>& inputs);
/// One operation on tensors 0, 1, ... of the inputs' types.
std::vector<Tensor> run_onednn_op(const std::string& kind, const std::vector<Tensor>& inputs,
                                  const std::vector<std::string>& outputs,
                                  const std::vector<std::string>& attributes = {});
/// What reading throws, without "graph.json: "; "" when it does not throw.
std::string onednn_refusal(std::string_view text);

}  // namespace lamina::testing
