#include "tests/support/damaged_ir.h"

#include <gtest/gtest.h>

#include "interpreter/interpreter.h"
#include "lamina/error.h"

namespace lamina::testing {
namespace {

/// An honest large size may take its time.
bool is_small(const TensorType& type) {
  return type.element != ElementType::undefined && type.shape.known() &&
         element_count(type.shape.sizes()) <= 100000;
}

void run_when_small(const Loaded& loaded) {
  const Graph& graph = loaded.graph;
  std::vector<Tensor> inputs;
  for (const auto input : graph.inputs()) {
    const auto& type = graph.type(input);
    if (!is_small(type)) return;
    inputs.emplace_back(type.element, type.shape.sizes());
  }
  for (std::uint32_t i = 0; i < graph.value_slots(); ++i)
    if (!is_small(graph.type(ValueId{i}))) return;
  if (loaded.unsupported.empty()) (void)interpret(graph, inputs);
}

}  // namespace

std::string damaged(std::string xml, const std::vector<std::string>& words, std::mt19937& random) {
  constexpr std::string_view kFavourites = "0123456789-,.\"<>/ex";
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t n = 1 + below(3); n > 0; --n) {
    const std::size_t at = below(xml.size());
    switch (below(5)) {
      case 0:
        xml[at] = static_cast<char>(xml[at] ^ (1 << below(8)));
        break;
      case 1:
        xml[at] = kFavourites[below(kFavourites.size())];
        break;
      case 2:
        xml.erase(at, 1 + below(20));
        break;
      case 3:
        xml.insert(at, xml.substr(below(xml.size()), below(60)));
        break;
      default:
        if (const auto from = xml.find("=\"", at), to = xml.find('"', from + 2);
            from != std::string::npos && to != std::string::npos)
          xml.replace(from + 2, to - from - 2, words[below(words.size())]);
    }
  }
  return xml;
}

bool survive(const TemporaryFolder& folder, const std::string& xml) {
  write_file(folder.file("m.xml"), xml);
  bool read = false;
  try {
    const auto loaded = read_ir(folder.file("m.xml"));
    read = true;
    run_when_small(loaded);
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::internal) << error.what() << "\n" << xml;
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
  return read;
}

}  // namespace lamina::testing
