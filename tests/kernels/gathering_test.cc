/// Gathers and scatters against the reference: constant and computed indices, types, batches, reductions.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Indices in [-size, size) as literals; where they are not to be constant, an empty parameter is added to
/// them.
std::string indices(const std::string& name, const std::string& shape, std::int64_t count,
                    const std::vector<std::int64_t>& sizes, bool constant, const std::string& type,
                    int seed) {
  std::string values;
  std::uint64_t state = static_cast<std::uint64_t>(seed) * 7919 + 13;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto size = sizes[static_cast<std::size_t>(i) % sizes.size()];
    const auto v = static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(2 * size)) - size;
    values += fmt::format("{}{}", i ? ", " : "", v);
  }
  if (constant) return fmt::format(" {} = const {}[{}] {{{}}}\n", name, type, shape, values);
  return fmt::format(" {0}c = const {1}[{2}] {{{3}}}\n {0} = Add({0}c, zero)\n", name, type, shape, values);
}

/// A graph with a parameter `zero` that is multiplied away, so that indices are known at run time only.
std::string with_zero(const std::string& type, const std::string& body, const std::string& inputs,
                      const std::string& results) {
  return fmt::format("graph ({}, z: {}[]) -> ({}) {{\n k = const {}[] {{0}}\n zero = Multiply(z, k)\n{}}}\n",
                     inputs, type, results, type, body);
}

std::int64_t count_of_shape(const std::string& shape) {
  std::int64_t n = 1;
  std::stringstream s(shape);
  for (std::string d; std::getline(s, d, ',');) n *= std::stoll(d);
  return n;
}

TEST(Gathering, slices) {
  std::uint64_t seed = 0;
  for (const std::string type : {"f32", "u8", "f16", "i64"})
    for (const bool constant : {true, false})
      for (const std::string itype : {"i64", "i32"})
        for (const auto& [data, axis, size, shape] :
             {std::tuple("5,4,6", 0, 5, "3"), std::tuple("5,4,6", 1, 4, "2,3"),
              std::tuple("5,4,6", 2, 6, "7"), std::tuple("40,33", 0, 40, "9"), std::tuple("9", 0, 9, "1")})
          check_kernels(
              with_zero(itype,
                        indices("i", shape, count_of_shape(shape), {size}, constant, itype, axis + size) +
                            fmt::format(" a = const i64[] {{{}}}\n y = Gather(x, i, a)\n", axis),
                        fmt::format("x: {}[{}]", type, data), "y"),
              ++seed);
}

TEST(Gathering, batches) {
  std::uint64_t seed = 100;
  for (const bool constant : {true, false}) {
    check_kernels(with_zero("i64",
                            indices("i", "2,3", 6, {5}, constant, "i64", 1) +
                                " a = const i64[] {1}\n y = Gather(x, i, a) batch_dims=1\n",
                            "x: f32[2,5,3]", "y"),
                  ++seed);
    check_kernels(with_zero("i64",
                            indices("i", "2,3", 6, {4}, constant, "i64", 2) +
                                " a = const i64[] {2}\n y = Gather(x, i, a) batch_dims=1\n",
                            "x: f32[2,5,4,3]", "y"),
                  ++seed);
  }
}

TEST(Gathering, tuples_and_elements) {
  std::uint64_t seed = 200;
  for (const std::string type : {"f32", "u8", "i64"})
    for (const bool constant : {true, false}) {
      check_kernels(
          with_zero("i64", indices("i", "3,2", 6, {4, 5}, constant, "i64", 3) + " y = GatherND(x, i)\n",
                    "x: " + type + "[4,5,6]", "y"),
          ++seed);
      check_kernels(
          with_zero("i64",
                    indices("i", "2,3,1", 6, {5}, constant, "i64", 4) + " y = GatherND(x, i) batch_dims=1\n",
                    "x: " + type + "[2,5,6]", "y"),
          ++seed);
      for (const int axis : {0, 1, 2})
        check_kernels(with_zero("i64",
                                indices("i", "2,3,4", 24,
                                        {std::vector<std::int64_t>{4, 5, 6}[static_cast<std::size_t>(axis)]},
                                        constant, "i64", 5) +
                                    fmt::format(" y = GatherElements(x, i) axis={}\n", axis),
                                "x: " + type + "[4,5,6]", "y"),
                      ++seed);
    }
}

TEST(Scattering, replacements) {
  std::uint64_t seed = 300;
  for (const std::string type : {"f32", "u8", "i64"})
    for (const bool constant : {true, false}) {
      check_kernels(
          with_zero("i64",
                    indices("i", "3,2", 6, {4, 5}, constant, "i64", 3) + " y = ScatterNDUpdate(x, i, u)\n",
                    fmt::format("x: {0}[4,5,6], u: {0}[3,6]", type), "y"),
          ++seed);
      check_kernels(with_zero("i64",
                              indices("i", "7,3", 21, {4, 5, 6}, constant, "i64", 3) +
                                  " y = ScatterNDUpdate(x, i, u)\n",
                              fmt::format("x: {0}[4,5,6], u: {0}[7]", type), "y"),
                    ++seed);
      for (const int axis : {0, 1, 2}) {
        const std::string updates[] = {"2,3,5,6", "4,2,3,6", "4,5,2,3"};
        const auto size = std::vector<std::int64_t>{4, 5, 6}[static_cast<std::size_t>(axis)];
        check_kernels(
            with_zero("i64",
                      indices("i", "2,3", 6, {size}, constant, "i64", 6) +
                          fmt::format(" a = const i64[] {{{}}}\n y = ScatterUpdate(x, i, u, a)\n", axis),
                      fmt::format("x: {0}[4,5,6], u: {0}[{1}]", type, updates[axis]), "y"),
            ++seed);
        check_kernels(
            with_zero(
                "i64",
                indices("i", "2,3,4", 24, {size}, constant, "i64", 7) +
                    fmt::format(" a = const i64[] {{{}}}\n y = ScatterElementsUpdate(x, i, u, a)\n", axis),
                fmt::format("x: {0}[4,5,6], u: {0}[2,3,4]", type), "y"),
            ++seed);
      }
    }
}

TEST(Scattering, reductions) {
  std::uint64_t seed = 400;
  for (const std::string type : {"f32", "i32", "i64"})
    for (const std::string how : {"sum", "sub", "prod", "min", "max"}) {
      check_kernels(with_zero("i64",
                              indices("i", "9,2", 18, {4, 5}, true, "i64", 3) +
                                  " y = ScatterNDUpdate(x, i, u) reduction=" + how + "\n",
                              fmt::format("x: {0}[4,5,6], u: {0}[9,6]", type), "y"),
                    ++seed);
      if (how != "sub")
        check_kernels(
            with_zero("i64",
                      indices("i", "2,3,4", 24, {5}, true, "i64", 8) +
                          " a = const i64[] {1}\n y = ScatterElementsUpdate(x, i, u, a) reduction=" + how +
                          "\n",
                      fmt::format("x: {0}[4,5,6], u: {0}[2,3,4]", type), "y"),
            ++seed);
    }
}

/// A block written index by index is one copy.
TEST(Scattering, whole_blocks) {
  std::string tuples;
  for (int i = 2; i < 6; ++i)
    for (int j = 0; j < 9; ++j) tuples += fmt::format("{}{}, {}", tuples.empty() ? "" : ", ", i, j);
  check_kernels(fmt::format("graph (x: f32[8,9], u: f32[4,9]) -> (y) {{\n i = const i64[4,9,2] {{{}}}\n y = "
                            "ScatterNDUpdate(x, i, u)\n}}\n",
                            tuples),
                500);
}

TEST(Gathering, slices_outside_are_zeros) {
  check_kernels(
      "graph (x: f32[4,3]) -> (y) {\n i = const i64[4] {1, 4, -5, -4}\n a = const i64[] {0}\n y = Gather(x, "
      "i, a)\n}\n",
      600);
  check_kernels(
      "graph (x: u8[2,5,3]) -> (y) {\n i = const i32[2] {-6, 4}\n a = const i64[] {1}\n y = Gather(x, i, "
      "a)\n}\n",
      601);
}

TEST(Gathering, indices_outside_are_errors) {
  for (const std::string text : {"graph (x: f32[4,3]) -> (y) {\n i = const i64[2] {1, 4}\n a = const i64[] "
                                 "{0}\n y = Gather(x, i, a) out_of_range=error\n}\n",
                                 "graph (x: f32[4,3], u: f32[3]) -> (y) {\n i = const i64[1,1] {-5}\n v = "
                                 "const i64[2] {1, 3}\n w = Reshape(u, v)\n"
                                 " y = ScatterNDUpdate(x, i, w)\n}\n"}) {
    const auto graph = parse(text);
    EXPECT_THROW(run_graph(graph, random_inputs(graph, 1)), Error);
  }
}

}  // namespace
}  // namespace lamina::testing
