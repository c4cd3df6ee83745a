#pragma once
/// OpenVINO IR, versions 2 to 7: networks of another vocabulary, lowered to lamina's operators. What these
/// files have not is added to the network as layers, so that the rest of the reader need not know: a
/// Parameter for each port that no edge leads to, a Result for each output that nobody reads.
#include "formats/ir/builder.h"

namespace lamina::ir::legacy {

/// The network of the file. Throws where ports have no sizes or an edge joins different ones.
Network read_network(const XmlFile& xml, int version);
/// The layers and edges below `node`, before any are added: some feeds may be none(), there is no order.
Network read_part(const XmlFile& xml, pugi::xml_node node);
/// A Parameter that feeds the layer's input port.
std::uint32_t add_parameter(Network& net, std::uint32_t layer, std::uint32_t port);
std::uint32_t add_result(Network& net, Feed feed);

/// Says that numbers of calibration for int8 are not used, if there are any.
void note_calibration(Reading& reading, const Network& net);
TensorType parameter_type(const Reading& reading, const Layer& layer);
/// The tensor of a Const layer, as it is stored.
Tensor constant(Reading& reading, const Layer& layer);
/// Type of a <blobs> entry: its own precision, else the layer's.
ElementType blob_type(const XmlFile& xml, const Layer& layer, pugi::xml_node blob);

/// Adds the layer's operators to the graph; an operator that lamina does not have throws NotSupported.
void lower_layer(GraphBuilder& builder, std::uint32_t index, std::vector<ValueId>& outputs);

}  // namespace lamina::ir::legacy
