#pragma once
#include "formats/ir/builder.h"

namespace lamina::ir {

/// Keeps what layers, ports and the network say in <rt_info>, and further names of tensors.
IrNotes read_notes(const XmlFile& xml, const Network& net);

/// XML of a node's children; empty where there are none.
std::string inner_xml(pugi::xml_node node);

}  // namespace lamina::ir
