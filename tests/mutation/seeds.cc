#include "tests/mutation/seeds.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "formats/ir/writer.h"
#include "graph/text.h"
#include "ops/operators.h"
#include "tests/ops/operator_examples.h"
#include "tests/support/ir_text.h"

namespace lamina::testing {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

bool is_legacy(const std::string& xml) {
  const auto net = xml.find("<net ");
  const auto version = xml.find(" version=\"", net);
  return version != std::string::npos && std::atoi(xml.c_str() + version + 10) < 10;
}

std::optional<TreeFormat> format_of(const std::string& extension, const std::string& bytes) {
  if (extension == ".onnx") return TreeFormat::onnx;
  if (extension == ".pb") return TreeFormat::tensorflow;
  if (extension == ".prototxt") return TreeFormat::caffe;
  if (extension == ".json" && bytes.find("\"graph\"") != std::string::npos) return TreeFormat::onednn_graph;
  if (extension == ".xml" && bytes.find("<net ") != std::string::npos)
    return is_legacy(bytes) ? TreeFormat::legacy_ir : TreeFormat::ir;
  return std::nullopt;
}

const char* extension_of(TreeFormat format) {
  constexpr const char* names[] = {".onnx", ".xml", ".xml", ".prototxt", ".pb", ".json"};
  return names[static_cast<std::size_t>(format)];
}

const char* weights_extension_of(TreeFormat format) {
  return format == TreeFormat::caffe ? ".caffemodel" : ".bin";
}

void append(std::vector<Seed>& to, std::vector<Seed> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

std::vector<Seed> seed_of(const std::filesystem::path& file) {
  Seed seed;
  seed.files.model = bytes_of(file);
  const auto format = format_of(file.extension().string(), seed.files.model);
  if (!format) return {};
  seed.format = *format;
  seed.name = file.stem().string();
  auto weights = file;
  weights.replace_extension(weights_extension_of(*format));
  if (std::filesystem::exists(weights)) seed.files.weights = bytes_of(weights);
  return {std::move(seed)};
}

std::vector<Seed> seeds_in(const std::filesystem::path& folder, std::size_t most_bytes) {
  std::vector<std::filesystem::path> paths;
  if (!std::filesystem::is_directory(folder)) return {};
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder))
    if (e.is_regular_file() && e.file_size() <= most_bytes) paths.push_back(e.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Seed> seeds;
  for (const auto& path : paths)
    for (auto& seed : seed_of(path))
      if (seed.files.weights.size() <= most_bytes) seeds.push_back(std::move(seed));
  return seeds;
}

std::vector<Seed> operator_seeds() {
  std::vector<Seed> seeds;
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < operator_examples().size(); ++i) {
    const auto graph = parse_graph(operator_examples()[i], operators());
    Loaded loaded;
    loaded.graph = graph;
    try {
      (void)write_ir(loaded, folder.file("m.xml"), {});
    } catch (const Error&) {  // IR has no operator for it
      continue;
    }
    Seed seed{fmt::format("{}_{}", graph.node(graph.order()[0]).op.name(), i), TreeFormat::ir, {}};
    seed.files = {bytes_of(folder.file("m.xml")), bytes_of(folder.file("m.bin"))};
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

std::vector<Seed> own_seeds() {
  auto seeds = operator_seeds();
  const char* folder = std::getenv("LAMINA_SEED_MODELS");
  append(seeds, seeds_in(folder ? folder : LAMINA_SEED_MODELS));
  return seeds;
}

std::vector<Seed> all_seeds() {
  auto seeds = own_seeds();
  append(seeds, seeds_in(LAMINA_SHARED "/cases"));
  append(seeds, seeds_in(LAMINA_SHARED "/models"));
  return seeds;
}

std::string save(const Seed& seed, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto path = folder / (seed.name + extension_of(seed.format));
  write_file(path.string(), seed.files.model);
  if (!seed.files.weights.empty())
    write_file((folder / (seed.name + weights_extension_of(seed.format))).string(), seed.files.weights);
  return path.string();
}

}  // namespace lamina::testing
