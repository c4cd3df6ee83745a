// lamina behind two C functions, for a program that has none of its symbols.
#include <cstdio>
#include <optional>
#include <string>

#include <lamina/lamina.h>

namespace {

constexpr const char* kNetwork = R"(<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,4,2" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="1" name="table" type="Table" version="test.keeps"><data step="2"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>)";

std::optional<lamina::CompiledModel> compiled;

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

/// Status: 0 when it went well.
EXPORT int engine_open(const char* library) try {
  const std::string text(kNetwork);
  compiled.emplace(lamina::Model::from_memory({.model = std::as_bytes(std::span(text.data(), text.size()))},
                                              {.extensions = {library}}),
                   lamina::Options{.streams = 1});
  return 0;
} catch (const lamina::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

/// Results for eight ones: 2, 2, 4, 4, 6, 6, 8, 8.
EXPORT int engine_run(float* out) try {
  auto request = compiled->create_request();
  std::vector<float> ones(8, 1);
  request.set_input(0, lamina::Tensor::wrap({1, 4, 2}, ones.data()));
  request.start();
  request.wait();
  const auto result = request.output(0).data<float>();
  std::copy(result.begin(), result.end(), out);
  return 0;
} catch (const lamina::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

EXPORT void engine_close() {
  compiled.reset();
  lamina::shutdown();
}
