#include "tests/support/written_ir.h"

#include <fstream>
#include <sstream>

#include "tests/support/mismatch.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {

RereadIr written_and_read(const Loaded& loaded, const WriteIrOptions& options) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.xml");
  RereadIr out;
  out.report = write_ir(loaded, path, options);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  out.xml = text.str();
  ReadSettings settings;
  settings.extensions = loaded.extensions;
  out.loaded = read(FileSource(path), settings);
  return out;
}

RereadIr written_and_read(const Graph& graph, const WriteIrOptions& options) {
  Loaded loaded;
  loaded.graph = graph;
  loaded.format = ModelFormat::onnx;
  return written_and_read(loaded, options);
}

std::string difference_when_written(const Graph& graph, const WriteIrOptions& options, std::uint64_t seed) {
  const auto again = written_and_read(graph, options);
  const auto inputs = random_inputs(graph, seed);
  const auto wanted = interpret(graph, inputs), got = interpret(again.loaded.graph, inputs);
  if (got.size() != wanted.size()) return fmt::format("{} results, wanted {}", got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto &name = again.loaded.graph.results()[i].name, &before = graph.results()[i].name;
    if (name != before) return fmt::format("result \"{}\", wanted \"{}\"", name, before);
    if (const auto why = mismatch(got[i], wanted[i]); !why.empty()) return fmt::format("{}: {}", name, why);
  }
  return {};
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace lamina::testing
