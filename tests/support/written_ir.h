#pragma once
/// Graphs written as IR and read again.
#include <string>

#include "formats/ir/writer.h"
#include "tests/support/ir_text.h"

namespace lamina::testing {

/// Writes the graph as IR and reads it.
struct RereadIr {
  WrittenIr report;
  Loaded loaded;
  std::string xml;  ///< the file's text
};
RereadIr written_and_read(const Loaded& loaded, const WriteIrOptions& options = {});
RereadIr written_and_read(const Graph& graph, const WriteIrOptions& options = {});

/// What differs between the results of the graph and of what was written of it, on random inputs; empty when
/// nothing does.
std::string difference_when_written(const Graph& graph, const WriteIrOptions& options, std::uint64_t seed);

/// How often the word occurs in the text.
std::size_t count_of(const std::string& text, const std::string& word);

}  // namespace lamina::testing
