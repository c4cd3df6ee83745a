#pragma once
/// What comes between a model and the data of its users: element types, layouts, the order of channels, means
/// and scales.
#include <map>
#include <optional>

#include "graph/graph.h"
#include "offline/request.h"

namespace lamina {

struct PreprocessingRequest {
  std::map<std::string, ElementType, std::less<>> types = {};  ///< of inputs, where it is not the model's
  std::map<std::string, ElementType, std::less<>> result_types = {};  ///< types of results
  std::vector<LayoutRequest> layouts = {};
  std::vector<NamedNumbers> means = {}, scales = {};
  std::optional<double> scale = {};        ///< divides all inputs of floats
  Tensor mean_image = {};                  ///< [C,H,W]; invalid: none
  bool reverse_channels = false;           ///< of inputs with 3
  bool channels_last = false;              ///< where nothing else says which axis has the channels
  std::vector<std::string> unscaled = {};  ///< inputs that `scale` leaves alone
};

/// Puts nodes behind the inputs: a Convert, a Transpose from the layout of the file that is written, a Gather
/// that reverses channels, then means and scales in the model's own layout; and before the results. Returns
/// what is odd. Throws FaqError.
std::vector<std::string> add_preprocessing(Graph& graph, const PreprocessingRequest& request);

/// The axis of the channels, of which there are `count` (1: any number): what the letters say ("" or '?'
/// where nothing is said), else the last one with `last`, else the first behind the batch that fits, else the
/// last. npos: none fits.
std::size_t channel_axis(const Shape& shape, const std::string& letters, std::size_t count,
                         bool last = false);

/// A letter per axis, '?' where nothing is said: of an input of that rank by its name.
std::string letters_of(const std::vector<LayoutRequest>& layouts, const std::string& input, std::size_t rank);

}  // namespace lamina
