#pragma once
/// Walks a Caffe network and builds the graph: inputs, layers in order, names, outputs. Converters give
/// layers their meaning.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/caffe/call.h"
#include "formats/loaded.h"

namespace lamina::caffe {

class Builder {
 public:
  /// `path`: that of the structure, for errors.
  Builder(const Net& net, const std::string& path, const Weights& weights, const ReadSettings& settings,
          Loaded& loaded)
      : net_(net), path_(path), weights_(weights), settings_(settings), loaded_(loaded) {}
  void run();

 private:
  /// A blob at some place in the file.
  struct Top {
    ValueId value;
    bool is_read = false;   ///< by a layer that stays, or by Silence
    bool is_input = false;  ///< or a constant: no output of the network
  };

  void note_names();
  void add_input(const std::string& name, const std::optional<Shape>& shape);
  void add_layer(std::size_t index);
  void add_input_layer(const LayerDef& layer);
  void add_data_layer(const LayerDef& layer);
  void drop(const LayerDef& layer);
  bool has_no_part(const LayerDef& layer) const;
  Values bottoms(const LayerDef& layer);
  Top& top_named(const LayerDef& layer, const std::string& name);
  Values convert(const LayerDef& layer, const Values& inputs);
  Values make_opaque(const LayerDef& layer, const Values& inputs);
  bool is_tainted(const Values& inputs) const;
  void list_unsupported(const LayerDef& layer, const std::string& reason);
  void finish(std::size_t index, const Values& values, std::size_t first_node, std::size_t first_value);
  std::string value_name(std::size_t index, std::size_t top) const;
  void add_results();

  const Net& net_;
  const std::string& path_;
  const Weights& weights_;
  const ReadSettings& settings_;
  Loaded& loaded_;
  OperatorNotes notes_{loaded_.operators, settings_.gate};
  int folding_budget_ = 200'000;  // nodes that may be evaluated while reading
  std::unordered_map<std::string, Top> tops_;
  std::unordered_map<std::string, std::size_t> last_writer_;    ///< layer, by top
  std::unordered_map<std::string, std::size_t> layer_named_;    ///< the first
  std::set<std::string, std::less<>> inputs_, labels_, later_;  ///< labels: of Data layers, and made of these
  std::map<std::pair<std::string, std::string>, std::size_t> unsupported_;
};

}  // namespace lamina::caffe
