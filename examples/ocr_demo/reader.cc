#include "reader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <stdexcept>

namespace {

lamina::Options plain_options(int threads) {
  lamina::Options o;
  o.threads = threads;
  o.disable = {"all"};
  return o;
}

double milliseconds(lamina::Request& request) {
  const auto begin = std::chrono::steady_clock::now();
  request.run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Planes of (pixel / 255 - mean) / deviation in the order blue, green, red, as the models were trained.
lamina::Tensor planes(const Picture& p, const float (&mean)[3], const float (&deviation)[3]) {
  lamina::Tensor t(lamina::ElementType::f32, {1, 3, p.height, p.width});
  auto data = t.data<float>();
  const std::size_t plane = static_cast<std::size_t>(p.width) * static_cast<std::size_t>(p.height);
  for (std::size_t i = 0; i < plane; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      data[c * plane + i] = (static_cast<float>(p.rgb[i * 3 + 2 - c]) / 255 - mean[c]) / deviation[c];
  return t;
}

// Connected areas of the detector's map above the threshold.
std::vector<Box> areas(std::span<const float> map, int width, int height) {
  constexpr float kThreshold = 0.3f, kScore = 0.5f;
  std::vector<bool> seen(map.size(), false);
  std::vector<Box> boxes;
  for (int start = 0; start < width * height; ++start) {
    if (seen[static_cast<std::size_t>(start)] || map[static_cast<std::size_t>(start)] < kThreshold) continue;
    Box box{width, height, 0, 0};
    std::vector<int> stack{start};
    seen[static_cast<std::size_t>(start)] = true;
    double sum = 0;
    int count = 0;
    while (!stack.empty()) {
      const int at = stack.back(), x = at % width, y = at / width;
      stack.pop_back();
      sum += map[static_cast<std::size_t>(at)];
      ++count;
      box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x + 1),
             std::max(box.bottom, y + 1)};
      for (const auto& [dx, dy] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}}) {
        const int nx = x + dx, ny = y + dy;
        if (nx < 0 || ny < 0 || nx >= width || ny >= height) continue;
        const auto next = static_cast<std::size_t>(ny * width + nx);
        if (seen[next] || map[next] < kThreshold) continue;
        seen[next] = true;
        stack.push_back(ny * width + nx);
      }
    }
    if (count >= 30 && sum / count >= kScore) boxes.push_back(box);
  }
  return boxes;
}

}  // namespace

Net::Net(const std::string& path, int threads)
    : model_(path),
      compiled_(model_, {.threads = threads}),
      plain_(model_, plain_options(threads)),
      request_(compiled_.create_request()) {}

lamina::Tensor Net::operator()(const lamina::Tensor& input) {
  request_.set_input(0, input);
  request_.run();
  return request_.output(0).clone();
}

void Net::report(const std::string& title, const lamina::Tensor& input) {
  auto plain = plain_.create_request();
  plain.set_input(0, input);
  request_.set_input(0, input);
  std::vector<double> ours, theirs;
  for (int i = 0; i < 11; ++i) {  // in turns, so that a busy machine disturbs both alike
    ours.push_back(milliseconds(request_));
    theirs.push_back(milliseconds(plain));
  }
  std::printf("\n%s, input %s\n", title.c_str(), lamina::to_string(model_.inputs()[0]).c_str());
  for (const auto& fusion : compiled_.fusions())
    std::printf("  %-28s %3zu times\n", fusion.rule.c_str(), fusion.count);
  std::printf("  latency %.2f ms with %d threads, %.2f times as fast as the unoptimised graph (%.2f ms)\n",
              median(ours), compiled_.threads(), median(theirs) / median(ours), median(theirs));
}

std::vector<Box> find_text(Net& detector, const Picture& picture, lamina::Tensor& input) {
  const auto rounded = [](int n) { return std::max(32, (n + 16) / 32 * 32); };
  const Picture fitted = resized(picture, rounded(picture.width), rounded(picture.height));
  input = planes(fitted, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f});
  const auto map = detector(input);
  const double fx = static_cast<double>(picture.width) / fitted.width,
               fy = static_cast<double>(picture.height) / fitted.height;
  std::vector<Box> boxes;
  for (const auto& b : areas(map.data<float>(), fitted.width, fitted.height)) {
    // The map shows the core of a line: it grows by area * 1.6 / perimeter on every side.
    const double w = b.right - b.left, h = b.bottom - b.top, grow = w * h * 1.6 / (2 * (w + h));
    boxes.push_back({std::max(0, static_cast<int>((b.left - grow) * fx)),
                     std::max(0, static_cast<int>((b.top - grow) * fy)),
                     std::min(picture.width, static_cast<int>(std::ceil((b.right + grow) * fx))),
                     std::min(picture.height, static_cast<int>(std::ceil((b.bottom + grow) * fy)))});
  }
  std::sort(boxes.begin(), boxes.end(),
            [](const Box& a, const Box& b) { return a.top != b.top ? a.top < b.top : a.left < b.left; });
  return boxes;
}

std::vector<std::string> alphabet_of(const lamina::Model& model) {
  const auto& metadata = model.metadata();
  const auto it = metadata.find("character");
  if (it == metadata.end()) throw std::runtime_error("the recogniser has no list of characters");
  std::vector<std::string> out{""};
  std::string line;
  for (char c : it->second) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(line);
    line.clear();
  }
  if (!line.empty()) out.push_back(line);
  out.push_back(" ");
  return out;
}

Reading read_text(Net& recogniser, const std::vector<std::string>& alphabet, const Picture& line,
                  lamina::Tensor& input) {
  constexpr int kHeight = 48;
  const int width =
      std::max(kHeight, static_cast<int>(std::ceil(static_cast<double>(line.width) * kHeight / line.height)));
  input = planes(resized(line, width, kHeight), {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f});
  const auto scores = recogniser(input);  // [1, steps, classes]
  const auto data = scores.data<float>();
  const auto classes = static_cast<std::size_t>(scores.shape()[2]);
  Reading reading;
  std::size_t before = 0, letters = 0;
  for (std::int64_t step = 0; step < scores.shape()[1]; ++step) {
    const auto* row = &data[static_cast<std::size_t>(step) * classes];
    const auto best = static_cast<std::size_t>(std::max_element(row, row + classes) - row);
    if (best != 0 && best != before && best < alphabet.size()) {
      reading.text += alphabet[best];
      reading.confidence += row[best];
      ++letters;
    }
    before = best;
  }
  if (letters) reading.confidence /= static_cast<double>(letters);
  return reading;
}
