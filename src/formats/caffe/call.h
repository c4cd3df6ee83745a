#pragma once
/// One layer on its way into the graph: what a converter reads and builds with.
#include <string>
#include <string_view>
#include <vector>

#include "formats/building.h"
#include "formats/caffe/net.h"
#include "formats/caffe/params.h"
#include "formats/caffe/weights.h"
#include "formats/type_table.h"

namespace lamina::caffe {

using Values = std::vector<ValueId>;

class Call : public Building {
 public:
  Call(Graph& graph, int& folding_budget, const LayerDef& layer, Values inputs, const Weights& weights,
       Strings& warnings)
      : Building(graph, folding_budget),
        layer_(layer),
        inputs_(std::move(inputs)),
        weights_(weights),
        blobs_(weights.find(layer.name)),
        warnings_(warnings) {}

  const LayerDef& layer() const { return layer_; }
  Params params(std::string_view name) const { return Params(layer_.message, name); }
  void warn(const std::string& text) const;

  // Bottoms and tops.
  std::size_t inputs() const { return inputs_.size(); }
  std::size_t outputs() const { return layer_.tops.size(); }
  const Values& all() const { return inputs_; }
  ValueId in(std::size_t i) const;  ///< throws when absent
  /// A parameter `axis`, which may be negative, as one of the value's.
  std::size_t axis(std::int64_t axis, ValueId v) const;
  /// The size of an axis; NotSupported while it is not known.
  std::int64_t size(ValueId v, std::size_t axis) const;

  // Blobs.
  std::size_t blobs() const { return blobs_ == nullptr ? 0 : blobs_->size(); }
  const Blob& blob(std::size_t i) const;  ///< throws when there is none, naming the file that lacks it
  /// The blob's values with these dims. Throws if it has another number of them.
  Tensor tensor(std::size_t i, const Dims& dims) const;
  /// The blob's values along one axis.
  Tensor vector(std::size_t i) const;

  // Building.
  ValueId number(double value) const;  ///< f32 scalar
  ValueId floats(const Dims& dims, const Floats& values) const;
  /// The elements of `v` in another shape: a pattern of Reshape, where 0 keeps a size.
  ValueId reshape(ValueId v, const Ints& pattern) const;

 private:
  const LayerDef& layer_;
  Values inputs_;
  const Weights& weights_;
  const Blobs* blobs_;
  Strings& warnings_;
};

/// Builds the layer's meaning and returns its tops in order.
using Converter = Values (*)(const Call&);
using ConverterTable = TypeTable<Converter>;

/// The table of all converters; it is built on first use.
const ConverterTable& converters();

// One function per family, each in the file of its name.
void register_activation(ConverterTable& t);
void register_convolution(ConverterTable& t);
void register_detection(ConverterTable& t);
void register_elementwise(ConverterTable& t);
void register_normalization(ConverterTable& t);
void register_pooling(ConverterTable& t);
void register_resize(ConverterTable& t);
void register_shape(ConverterTable& t);
void register_sorting(ConverterTable& t);

}  // namespace lamina::caffe
