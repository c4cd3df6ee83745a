// Layers of ExperimentalDetectron that become several operators, by value.
#include <gtest/gtest.h>

#include "tests/support/ir_text.h"

namespace lamina::testing::ir_detectron_test {
namespace {

using Values = std::vector<float>;

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "wanted \"" << part << "\", got \"" << text << "\"";
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

/// Priors [1,4], a feature map and a picture.
IrText grid(const std::string& data, const std::string& map = "1,1,1,2",
            const std::string& picture = "1,1,4,8", const std::string& priors = "1,4") {
  IrText ir;
  const int p = ir.parameter("p", priors), m = ir.parameter("m", map), i = ir.parameter("i", picture);
  ir.result({ir.layer("ExperimentalDetectronPriorGridGenerator", "opset6", data, {{p}, {m}, {i}})});
  return ir;
}

std::vector<Tensor> grid_inputs() {
  return {floats({1, 4}, {-1, -1, 1, 1}), floats({1, 1, 1, 2}, Values(2)), floats({1, 1, 4, 8}, Values(32))};
}

TEST(IrDetectron, PriorsInEachCell) {
  const auto flat = run(grid(""), grid_inputs()).at(0);
  EXPECT_EQ(flat.shape(), (Dims{2, 4}));
  EXPECT_EQ(values(flat), (Values{1, 1, 3, 3, 5, 1, 7, 3}));
  const auto deep = run(grid("flatten=\"false\" stride_x=\"2.0\""), grid_inputs()).at(0);
  EXPECT_EQ(deep.shape(), (Dims{1, 2, 1, 4}));
  EXPECT_EQ(values(deep), (Values{0, 1, 2, 3, 2, 1, 4, 3}));
  EXPECT_EQ(values(run(grid("w=\"1\" h=\"1\""), grid_inputs()).at(0)), (Values{3, 1, 5, 3}));
}

TEST(IrDetectron, PriorsOfUnknownSizes) {
  const auto ir = grid("", "1,1,-1,-1", "1,1,-1,-1", "-1,4");
  EXPECT_EQ(values(run(ir, grid_inputs()).at(0)), (Values{1, 1, 3, 3, 5, 1, 7, 3}));
}

TEST(IrDetectron, PriorsThatDoNotFit) {
  const auto refused = [](const IrText& ir) { return refusal(ir.text(), ir.bin); };
  expect_part(refused(grid("w=\"-1\"")), "w=\"-1\", wanted 0..");
  expect_part(refused(grid("stride_y=\"-2.5\"")), "stride_y=\"-2.5\", wanted 0 or more");
  expect_part(refused(grid("stride_y=\"x\"")), "stride_y=\"x\", wanted 0 or more");
  expect_part(refused(grid("", "1,1,2")), "input 1 has shape [1,1,2], wanted rank 4");
  expect_part(refused(grid("", "1,1,1,2", "1,1,4,8", "1,5")), "priors have shape [1,5], wanted [n,4]");
}

TEST(IrDetectron, TopRegions) {
  const auto top = [](const std::string& count, const std::string& most) {
    IrText ir;
    const int r = ir.parameter("r", count + ",4"), p = ir.parameter("p", count);
    ir.result({ir.layer("ExperimentalDetectronTopKROIs", "opset6", "max_rois=\"" + most + "\"", {{r}, {p}})});
    return ir;
  };
  const std::vector<Tensor> inputs{floats({3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}),
                                   floats({3}, {2, 1, 3})};
  EXPECT_EQ(values(run(top("3", "2"), inputs).at(0)), (Values{4, 4, 5, 5, 0, 0, 1, 1}));
  EXPECT_EQ(values(run(top("-1", "1"), inputs).at(0)), (Values{4, 4, 5, 5}));
  EXPECT_EQ(run(top("-1", "9"), inputs).at(0).shape(), (Dims{3, 4}));
  const auto ir = top("3", "0");
  expect_part(refusal(ir.text(), ir.bin), "max_rois=\"0\", wanted 1..");
}

}  // namespace
}  // namespace lamina::testing::ir_detectron_test
