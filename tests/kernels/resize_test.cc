/// Interpolate against the reference: modes, coordinates, roundings, layouts, ranks.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <functional>
#include <memory>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

void check(const std::string& shape, const std::string& axes, const std::string& sizes,
           const std::string& attributes, std::uint64_t seed, const std::string& type = "f32") {
  const auto n = std::count(axes.begin(), axes.end(), ',') + 1;
  const auto text = fmt::format(
      "graph (x: {}[{}]) -> (y) {{\n s = const i64[{}] {{{}}}\n a = const i64[{}] {{{}}}\n y = "
      "Interpolate(x, s, a) "
      "{}\n}}\n",
      type, shape, n, sizes, n, axes, attributes);
  SCOPED_TRACE(text);
  const auto graph = parse(text);
  check_all_offers(graph, seed);
  for (const auto& label : run_graph(graph, random_inputs(graph, seed)).labels) EXPECT_NE(label, "reference");
}

const std::string kModes[] = {"nearest", "linear",          "linear_onnx",
                              "cubic",   "bilinear_pillow", "bicubic_pillow"};
const std::string kCoordinates[] = {"half_pixel",           "pytorch_half_pixel", "asymmetric",
                                    "tf_half_pixel_for_nn", "align_corners",      "half_pixel_symmetric",
                                    "tf_crop_and_resize"};

TEST(Resize, modes_and_coordinates) {
  std::uint64_t seed = 0;
  for (const auto& mode : kModes)
    for (const auto& coordinates : kCoordinates)
      for (const std::string size : {"10, 14", "9, 4", "3, 1", "5, 7", "17, 33"})
        check("2,3,5,7", "2, 3", size,
              fmt::format("mode={} coordinate_transformation_mode={}", mode, coordinates), ++seed);
}

/// 3 times 2.3 are 6 pixels, which lie otherwise than those of twice the size.
TEST(Resize, scales_that_are_not_what_the_sizes_say) {
  std::uint64_t seed = 50;
  for (const std::string scales : {"2.3, 2.3", "2, 2.3", "2, 2"})
    for (const std::string tail :
         {"mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor", "mode=nearest",
          "mode=linear_onnx"})
      check_kernels(
          fmt::format("graph (x: f32[1,8,3,3]) -> (y) {{\n s = const f32[2] {{{}}}\n a = const "
                      "i64[2] {{-2, 3}}\n y = Interpolate(x, s, a) shape_calculation_mode=scales {}\n}}\n",
                      scales, tail),
          ++seed);
}

TEST(Resize, nearest_roundings) {
  std::uint64_t seed = 100;
  for (const std::string rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"})
    for (const std::string coordinates : {"half_pixel", "asymmetric", "align_corners"})
      for (const std::string size : {"10, 14", "4, 3"})
        for (const std::string type : {"f32", "u8", "i64", "f16"})
          check("1,5,5,6", "2, 3", size,
                fmt::format("mode=nearest nearest_mode={} coordinate_transformation_mode={}", rounding,
                            coordinates),
                ++seed, type);
}

/// Sizes of which many quotients are ties or whole numbers.
TEST(Resize, nearest_at_ties) {
  std::uint64_t seed = 130;
  for (const std::string rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"})
    for (const auto& coordinates : kCoordinates)
      for (const std::string size : {"3, 6", "30, 9", "13, 26"})
        check("1,3,10,20", "2, 3", size,
              fmt::format("mode=nearest nearest_mode={} coordinate_transformation_mode={}", rounding,
                          coordinates),
              ++seed);
}

/// Copies of pixels of few bytes: of a line's neighbours, of what lies far apart, of lines shorter than a
/// vector.
TEST(Resize, nearest_pixels_of_few_bytes) {
  std::uint64_t seed = 150;
  for (const std::string type : {"u8", "i8", "f16", "i64"})
    for (const int columns : {3, 15, 16, 17, 40})
      for (const int to : {2, 9, 16, 17, 31, 32, 33, 80, 81, 200})
        for (const int channels : {1, 3, 4})
          check(fmt::format("1,{},3,{}", channels, columns), "2, 3", fmt::format("5, {}", to), "mode=nearest",
                ++seed, type);
}

TEST(Resize, channels) {
  std::uint64_t seed = 200;
  for (const int c : {1, 2, 3, 4, 5, 8, 16, 17, 33, 64})
    for (const std::string mode : {"nearest", "linear_onnx", "cubic"})
      for (const std::string size : {"12, 10", "40, 31"})
        check(fmt::format("1,{},6,5", c), "2, 3", size, "mode=" + mode, ++seed);
}

TEST(Resize, other_axes) {
  std::uint64_t seed = 300;
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    check("2,3,9", "2", "20", "mode=" + mode, ++seed);
    check("7", "0", "20", "mode=" + mode, ++seed);
    check("4,5", "0", "9", "mode=" + mode, ++seed);
    check("2,3,4,5,6", "2, 3, 4", "8, 9, 3", "mode=" + mode, ++seed);
    check("2,3,4,5", "1, 2", "6, 7", "mode=" + mode, ++seed);
    check("2,3,4,5", "0, 3", "5, 9", "mode=" + mode, ++seed);
    check("1,40,30,3", "1, 2", "80, 60", "mode=" + mode, ++seed);
    check("2,3,4,20", "2", "9", "mode=" + mode, ++seed);
    check("2,3,4,5", "0, 1, 2, 3", "3, 4, 5, 9", "mode=" + mode, ++seed);
  }
}

TEST(Resize, filters) {
  std::uint64_t seed = 400;
  for (const std::string mode : {"linear", "linear_onnx", "cubic"})
    for (const std::string more :
         {"antialias=true", "exclude_outside=true", "antialias=true exclude_outside=true", "cube_coeff=-0.5",
          "pads_begin=[0,0,1,2] pads_end=[0,0,2,1]"})
      for (const std::string size : {"4, 30", "3, 5", "2, 1"})
        check("1,3,40,17", "2, 3", size, "mode=" + mode + " " + more, ++seed);
  check("1,3,4,5", "2, 3", "13, 12", "mode=nearest pads_begin=[0,0,1,2] pads_end=[0,0,2,1]", ++seed);
}

TEST(Resize, scales_and_regions) {
  std::uint64_t seed = 500;
  for (const std::string mode : {"nearest", "linear_onnx", "cubic"})
    for (const std::string coordinates : {"half_pixel", "asymmetric", "half_pixel_symmetric"}) {
      check_all_offers(
          parse(fmt::format("graph (x: f32[1,3,5,7]) -> (y) {{\n s = const f32[2] {{1.7, 0.6}}\n a = "
                            "const i64[2] {{2, 3}}\n y = Interpolate(x, s, a) mode={} "
                            "shape_calculation_mode=scales coordinate_transformation_mode={}\n}}\n",
                            mode, coordinates)),
          ++seed);
    }
  for (const std::string mode : {"nearest", "linear_onnx", "cubic"})
    check_all_offers(
        parse(fmt::format(
            "graph (x: f32[1,3,5,7]) -> (y) {{\n s = const i64[2] {{9, 8}}\n a = const i64[2] {{2, "
            "3}}\n r = const f32[4] {{-0.2, 0.3, 0.8, 1.4}}\n y = Interpolate(x, s, a, r) mode={} "
            "coordinate_transformation_mode=tf_crop_and_resize extrapolation_value=3.5\n}}\n",
            mode)),
        ++seed);
}

TEST(Resize, large_on_threads) {
  check("1,8,60,70", "2, 3", "120, 140", "mode=linear_onnx", 600);
  check("1,3,200,100", "2, 3", "400, 200", "mode=nearest", 601);
  check("1,4,300,200", "2, 3", "30, 50", "mode=linear antialias=true", 602);
}

/// Infinities stay at their place.
TEST(Resize, infinities) {
  for (const std::string mode : {"nearest", "linear_onnx", "linear", "cubic"})
    for (const std::string coordinates : {"half_pixel", "asymmetric", "align_corners"})
      check_all_offers(
          parse(fmt::format(
              "graph (x: f32[1]) -> (y) {{\n b = const f32[1,1,3,3] {{1, 2, inf, 3, -inf, 4, 5, 6, "
              "nan}}\n s = const i64[2] {{6, 5}}\n a = const i64[2] {{2, 3}}\n y = Interpolate(b, s, "
              "a) mode={} coordinate_transformation_mode={}\n}}\n",
              mode, coordinates)),
          1);
}

/// Places of elements beyond what 32 bits count. Of the input only the pages that are read exist.
TEST(Resize, far_elements) {
  const std::int64_t rows = std::int64_t{1} << 30;
  const auto bytes = static_cast<std::size_t>(3 * rows) * sizeof(float);
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space";
  const std::unique_ptr<void, std::function<void(void*)>> owner(memory, [&](void* p) { ::munmap(p, bytes); });
  const auto x = Tensor::wrap(ElementType::f32, {rows, 3}, memory);
  std::vector<double> wanted;
  for (std::int64_t i = 0; i < 12; ++i) {
    static_cast<float*>(memory)[i / 3 * (rows / 4) * 3 + i % 3] = static_cast<float>(i + 1);
    wanted.push_back(static_cast<double>(i + 1));
  }
  const auto graph =
      parse(fmt::format("graph (x: f32[{},3]) -> (y) {{\n s = const i64[1] {{4}}\n a = const i64[1] {{0}}\n "
                        "y = Interpolate(x, s, "
                        "a) mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor\n}}\n",
                        rows));
  const auto run = run_graph(graph, {x});
  EXPECT_EQ(to_doubles(run.outputs[0]), wanted);
  EXPECT_NE(run.labels[0], "reference");
}

}  // namespace
}  // namespace lamina::testing
