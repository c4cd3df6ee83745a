// The operations of layers.c, with the C++ wrapper.
#include <lamina/extension.hpp>

using namespace lamina::extension;

namespace {

/// Channel g * n + c becomes channel c * groups + g, where n is the channels of a group.
struct ChannelShuffle {
  explicit ChannelShuffle(const Node& node) : groups(node.integer("groups")) {
    if (groups < 1 || node.in(0).rank != 4 || node.size(0, 1) % groups != 0)
      refuse("wanted four axes and channels that the groups divide");
  }

  void run(const Call& call) const {
    const auto &x = call.in(0), &y = call.out(0);
    const auto channels = x.dims[1], n = channels / groups;
    call.parallel_for(x.dims[0] * channels, 16, [&](std::int64_t begin, std::int64_t end) {
      for (auto k = begin; k < end; ++k) {
        const auto i = k / channels, c = k % channels, to = c % n * groups + c / n;
        const float* from = call.input<float>(0) + i * x.strides[0] + c * x.strides[1];
        float* out = call.output<float>(0) + i * y.strides[0] + to * y.strides[1];
        for (std::int64_t h = 0; h < x.dims[2]; ++h)
          for (std::int64_t w = 0; w < x.dims[3]; ++w)
            out[h * y.strides[2] + w * y.strides[3]] = from[h * x.strides[2] + w * x.strides[3]];
      }
    });
  }

  std::int64_t groups;
};

/// x^2 where x is positive, slope * x elsewhere.
struct Gate {
  explicit Gate(const Node& node) : slope(static_cast<float>(node.real("slope"))) {}
  void apply(const float* in, float* out, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) out[i] = in[i] > 0 ? in[i] * in[i] : slope * in[i];
  }
  float slope;
};

}  // namespace

LAMINA_EXTENSION(library) {
  library.about("example in C++", "1.0", "as lamina");
  library.add(Operation("com.example.cpp", "ChannelShuffle")
                  .doc("channels of groups, interleaved")
                  .input("x")
                  .output("y")
                  .attribute("groups", LAMINA_INT)
                  .sample("x=f32[2,6,3,5] groups=2")
                  .sample("x=f32[1,12,4,4] groups=3")
                  .configuration({.name = "plain"})
                  .configuration({.name = "channels_last", .in_layouts = {LAMINA_CHANNELS_LAST}})
                  .kernel<ChannelShuffle>());
  library.add(Operation("com.example.cpp", "Gate")
                  .doc("x^2, or slope * x where that is negative")
                  .input("x")
                  .output("y")
                  .real("slope", 0.1)
                  .elementwise<Gate>());
  library.add_rule("com.example.cpp.squared-relu", LAMINA_BEFORE_FUSING, "r = Relu(x); y = Multiply(r, r)",
                   "y = com.example.cpp.Gate(x) slope=0", "relu(x)^2 is a gate without a slope");
}
