#pragma once
/// What the lowering of a layer of the versions 2 to 7 sees of it.
#include "formats/ir/layer_context.h"
#include "formats/ir/type_table.h"

namespace lamina::ir::legacy {

class Lowering : public LayerContext {
 public:
  using LayerContext::LayerContext;

  // Attributes; without a fallback they must be there.
  std::int64_t integer(const char* name);
  std::int64_t integer(const char* name, std::int64_t fallback);
  double number(const char* name);
  double number(const char* name, double fallback);
  Ints list(const char* name);
  Floats numbers(const char* name);
  std::string word(const char* name, const std::string& fallback = {}) const;  ///< in lower case
  void want(const char* name);

  // Outputs as the file declares them. When the model is read with other shapes, sizes_hold() is false: the
  // file's sizes then only show by which rule an output's sizes follow from an input's.
  const Shape& declared(std::size_t output = 0);
  /// The input shape to which declared() belongs: the inferred one, or the file's when the model is read with
  /// other shapes; of unknown rank where the file says nothing.
  Shape declared_input(std::size_t i = 0);
  struct DeclaredSizes {
    std::int64_t in, out;
  };
  /// The sizes of an axis in declared_input() and declared(), where both are known and have the rank of the
  /// first input.
  std::optional<DeclaredSizes> declared_sizes(std::size_t axis);
  ElementType declared_element(std::size_t output = 0) const;
  bool sizes_hold() const { return !reading_of().reshaped; }

  // Inputs.
  Shape known_shape(std::size_t i);  ///< throws where it is not known
  Dims sizes(std::size_t i) { return known_shape(i).sizes(); }
  std::int64_t known_size(std::size_t i, std::size_t axis);  ///< throws where it is not known
  ValueId real(std::size_t i);                               ///< as f32
  ValueId integral(std::size_t i);                           ///< as integers
  ValueId yes_no(std::size_t i);                             ///< as boolean: other than 0
  /// All as one type: the layer's own when that is a number, else the first's.
  std::vector<ValueId> alike(std::size_t from = 0);
  /// The values of a small constant, of any type.
  std::optional<Ints> known_ints(std::size_t i);

  // What lies in the .bin for this layer.
  bool has_blob(const char* name) const { return !blob_node(name).empty(); }
  bool is_one_number(const char* name);
  ValueId blob(const char* name, const Dims& dims);
  Tensor bits(const char* name, const Dims& dims);  ///< low bit first
  /// One number for all channels, or one for each.
  ValueId per_channel(const char* name, std::int64_t channels);

  // Operators.
  ValueId reals(const std::vector<float>& values, const std::string& suffix);
  ValueId reals(const Dims& dims, const std::vector<float>& values, const std::string& suffix);
  ValueId number_like(double value, ValueId like, const std::string& suffix);
  ValueId converted(ValueId value, ElementType type, const std::string& suffix);
  ValueId reshaped(ValueId value, const Ints& pattern, const std::string& suffix);
  /// Without the first `begin` and the last `end` elements of each axis from the third one on.
  ValueId cropped(ValueId value, const Ints& begin, const Ints& end);
  /// The layer's outputs get the types and, as far as ones are concerned, the ranks that the file gives them.
  void resolve();

 private:
  const Reading& reading_of() const;
  pugi::xml_node blob_node(const char* name) const;
  ValueId resolved_type(ValueId value, std::size_t output);
  ValueId resolved_rank(ValueId value, std::size_t output);
  Tensor stored(const char* name, ElementType type, const Dims& dims, Blobs::BitOrder order);
};

using Converter = void (*)(Lowering&);

using LoweringTable = TypeTable<Converter>;

/// All types that the tables name.
const LoweringTable& lowerings();

// One function per file.
void register_windows(LoweringTable& t);      ///< convolutions, poolings
void register_linear(LoweringTable& t);       ///< products, scales, normalisations
void register_elementwise(LoweringTable& t);  ///< activations, arithmetic
void register_shaping(LoweringTable& t);      ///< layers that only move or reshape
void register_selection(LoweringTable& t);    ///< reductions, indices, what is picked by value
void register_resizing(LoweringTable& t);
void register_detection(LoweringTable& t);
void register_recurrent(LoweringTable& t);
void register_control(LoweringTable& t);  ///< TensorIterator, Memory

}  // namespace lamina::ir::legacy
