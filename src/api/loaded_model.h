#pragma once
/// What stands behind the public Model.
#include <mutex>

#include "api/input_shapes.h"
#include "api/ports.h"
#include "base/once.h"
#include "base/work_bounds.h"
#include "formats/loaded.h"
#include "lamina/model.h"
#include "rules/rules.h"
#include "saved/container.h"
#include "saved/model.h"

namespace lamina {

class LoadedModel {
 public:
  LoadedModel(const ModelSource& source, const ReadOptions& options);
  /// A copy of `base` with another graph, whose inputs and results may have other types.
  LoadedModel(const LoadedModel& base, Graph graph);
  const std::string& path() const { return path_; }  ///< or what the user calls a model in memory
  /// Checks the weights of a compiled model's file first. Throws Error(bad_file) when they are damaged, or
  /// not there.
  const Loaded& loaded() const;
  /// The loaded model, of which large constants must not be read.
  const Loaded& described() const { return loaded_; }
  /// The file of a compiled model; null: a model of another format.
  const std::shared_ptr<const CompiledFile>& compiled() const { return compiled_; }
  /// Shapes of the inputs that a compiled model has plans for; each list has one for every input.
  const std::vector<InputShapes>& compiled_for() const { return compiled_for_; }
  /// The files that it was read from, and as what.
  struct Part {
    std::string role;
    std::shared_ptr<const MappedFile> file;
    bool named_by_model = false;  ///< it is a file that the caller did not name
  };
  const std::vector<Part>& parts() const { return parts_; }
  const Strings& settable() const { return settable_; }
  /// The shapes of inputs that it was read with in place of the file's.
  const NamedShapes& input_shapes() const { return input_shapes_; }
  /// The limits that the model was read with.
  const ModelLimits& limits() const { return limits_; }
  /// The limits of work on the model; nodes are no longer counted.
  const WorkBounds& bounds() const { return bounds_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  /// See Model::output_ports.
  std::vector<Port> output_ports(const NamedShapes& shapes) const;
  /// A printable line each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<Port>& variables() const { return variables_; }
  const std::vector<std::string>& unsupported() const { return unsupported_; }
  /// True if the graph is not that of the files.
  bool derived() const { return derived_; }
  /// The rules of its libraries; null if there are none.
  const std::shared_ptr<const Rules>& rules() const { return rules_; }
  /// Throws Error(unsupported) that names all types that it has room for.
  void require_supported() const;

 private:
  void read_within_limits(const ModelSource& source, const ReadOptions& options);
  void read(const ModelSource& source, const ReadOptions& options);
  void read_file(const ModelSource& source, const ReadOptions& options);
  void read_compiled(const ModelSource& source, const ReadOptions& options);
  /// Fixes open sizes of a compiled model: it is then compiled like any other.
  void fix_sizes();
  /// Ports, warnings and variables of what was read.
  void describe();
  /// The graph if inputs have these shapes. Readers make constants of sizes that the file fixes: where others
  /// are asked for, the file is read again.
  Graph graph_with(const ShapesByName& shapes) const;

  std::string path_;
  ModelLimits limits_;
  WorkBounds bounds_;
  Strings settable_;
  NamedShapes input_shapes_;
  std::vector<Part> parts_;
  std::shared_ptr<const CompiledFile> compiled_;
  std::vector<InputShapes> compiled_for_;
  bool has_weights_ = true, derived_ = false;
  mutable Once checked_;
  Loaded loaded_;
  std::vector<Port> inputs_, outputs_, variables_;
  std::vector<std::string> warnings_, unsupported_;
  std::shared_ptr<const Rules> rules_;
};

/// The files of a model that was read from its own format, opened again or as they lie in memory. Throws
/// Error(unsupported) for a compiled model, and for one whose graph was changed.
std::unique_ptr<const ModelSource> source_of(const LoadedModel& model);

/// `onnx:Foo-13 ("node a", "node b"): reason`
std::string to_string(const Unsupported& unsupported);

}  // namespace lamina
