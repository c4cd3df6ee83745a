// Runs a small network whose layers come from two libraries, and prints what was done to them.
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include <lamina/lamina.h>

namespace {

constexpr int kChannels = 4, kSize = 6;

/// x -> 1x1 convolution -> Gate -> ChannelShuffle -> relu(y)^2, all of one library's domain.
std::string network(const std::string& domain) {
  const auto layer = [](int id, const std::string& name, const std::string& type, const std::string& version,
                        const std::string& data, int inputs) {
    std::string out = "<layer id=\"" + std::to_string(id) + "\" name=\"" + name + "\" type=\"" + type +
                      "\" version=\"" + version + "\"><data " + data + "/><input>";
    for (int i = 0; i < inputs; ++i) out += "<port id=\"" + std::to_string(i) + "\"/>";
    return out + "</input><output><port id=\"9\"/></output></layer>";
  };
  const auto edge = [](int from, int to, int port) {
    return "<edge from-layer=\"" + std::to_string(from) + "\" from-port=\"9\" to-layer=\"" +
           std::to_string(to) + "\" to-port=\"" + std::to_string(port) + "\"/>";
  };
  return "<net name=\"example\" version=\"11\"><layers>" +
         layer(0, "x", "Parameter", "opset1", R"(shape="1,4,6,6" element_type="f32")", 0) +
         layer(1, "w", "Const", "opset1", R"(element_type="f32" shape="4,4,1,1" offset="0" size="64")", 0) +
         layer(2, "conv", "Convolution", "opset1",
               R"(strides="1,1" dilations="1,1" pads_begin="0,0" pads_end="0,0")", 2) +
         layer(3, "gate", "Gate", domain, R"(slope="0.25")", 1) +
         layer(4, "shuffle", "ChannelShuffle", domain, R"(groups="2")", 1) +
         layer(5, "relu", "ReLU", "opset1", "", 1) + layer(6, "square", "Multiply", "opset1", "", 2) +
         "<layer id=\"7\" name=\"r\" type=\"Result\" version=\"opset1\"><input><port "
         "id=\"0\"/></input></layer>"
         "</layers><edges>" +
         edge(0, 2, 0) + edge(1, 2, 1) + edge(2, 3, 0) + edge(3, 4, 0) + edge(4, 5, 0) + edge(5, 6, 0) +
         edge(5, 6, 1) + edge(6, 7, 0) + "</edges></net>";
}

float gate(float x, float slope) { return x > 0 ? x * x : slope * x; }

/// What the network ought to give.
std::vector<float> expected(const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<float> out(x.size());
  constexpr int kPoints = kSize * kSize;
  for (int c = 0; c < kChannels; ++c)
    for (int p = 0; p < kPoints; ++p) {
      float sum = 0;
      for (int k = 0; k < kChannels; ++k) sum += w[c * kChannels + k] * x[k * kPoints + p];
      const int to = c % 2 * 2 + c / 2;
      out[to * kPoints + p] = gate(gate(sum, 0.25F), 0);
    }
  return out;
}

bool try_library(const std::string& domain, const std::string& path) {
  std::vector<float> x(kChannels * kSize * kSize), w(kChannels * kChannels);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 5) / 4 - 0.5F;
  const auto text = network(domain);
  const lamina::Model model = lamina::Model::from_memory(
      {.model = std::as_bytes(std::span(text.data(), text.size())), .weights = std::as_bytes(std::span(w))},
      {.extensions = {path}});
  lamina::Options options;
  options.profile = true;
  const lamina::CompiledModel compiled(model, options);
  auto request = compiled.create_request();
  request.set_input(0, lamina::Tensor::wrap({1, kChannels, kSize, kSize}, x.data()));
  request.run();
  const auto got = request.output(0).data<float>();
  const auto wanted = expected(x, w);
  float worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) worst = std::max(worst, std::fabs(got[i] - wanted[i]));
  std::cout << domain << ": largest difference " << worst << "\n";
  for (const auto& layer : request.layer_times())
    std::cout << "  " << layer.name << "  " << layer.kernel << "\n";
  std::size_t rule = 0;
  for (const auto& fusion : compiled.fusions())
    if (fusion.rule == domain + ".squared-relu") rule = fusion.count;
  if (rule != 1) std::cout << "  the rule did not fire\n";
  return worst < 1e-4F && rule == 1;
}

}  // namespace

int main() {
  try {
    const bool c = try_library("com.example.c", LAYERS_C);
    const bool cpp = try_library("com.example.cpp", LAYERS_CPP);
    return c && cpp ? 0 : 1;
  } catch (const lamina::Error& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
