#pragma once
/// From a model's file to the graph that `lamina optimize` writes: cut, frozen, resized, with what comes
/// before it, and optimised as far as files can hold it.
#include <functional>
#include <optional>

#include "formats/loaded.h"
#include "offline/cut.h"
#include "offline/preprocessing_layers.h"
#include "rules/optimize.h"

namespace lamina {

struct ConversionRequest {
  CutRequest cut = {};
  std::vector<Shape> shapes = {};  ///< of cut.inputs in their order, else of the model's inputs
  std::map<std::string, Shape, std::less<>> own_shapes = {};  ///< of the model's inputs by name
  std::optional<std::int64_t> batch = {};                     ///< of all inputs
  PreprocessingRequest preprocessing = {};
  std::string mean_file = {};
  std::optional<std::pair<std::int64_t, std::int64_t>> mean_file_offsets = {};
  RuleOptions rewriting = {};  ///< its `last` and `more` are not looked at
  /// Nodes that stay, beside those of `rewriting`: expressions for a part of the name.
  std::vector<std::string> finegrain = {};
  /// What is being done, and how much of it all is done, from 0 to 1. May be empty.
  std::function<void(std::string_view stage, double done)> progress = {};
};

struct Conversion {
  Loaded loaded;  ///< with the optimised graph
  Graph before;   ///< as the rules got it
  Ledger ledger;
  RuleOptions rewriting;                    ///< what the rules were told
  bool has_halves = false;                  ///< most of the model's floats were f16
  std::vector<std::string> exempt;          ///< layers that were left alone because the user asked
  std::vector<std::string> unused_inputs;   ///< inputs that no node reads
  std::vector<std::string> dropped_inputs;  ///< inputs that the cut left without readers
  std::vector<std::string> warnings, notes;
};

/// Reads the model, with what the settings say of its inputs; extensions are the reader's own. Readers that
/// do not freeze inputs leave them.
using Reader = std::function<Loaded(const ReadSettings&)>;

/// `path`: what errors call the model. Throws Error, FaqError among them.
Conversion convert_model(const std::string& path, const Reader& read, const ConversionRequest& request);

}  // namespace lamina
