#pragma once
/// lamina: runs trained neural networks on CPUs.
///
///     lamina::Model model("resnet50.onnx");
///     lamina::CompiledModel compiled(model, {.threads = 4});
///     lamina::Request request = compiled.create_request();
///     request.set_input(0, lamina::Tensor::wrap({1, 3, 224, 224}, pixels));
///     request.run();
///     std::span<const float> scores = request.output(0).data<float>();
///
/// Functions that fail throw lamina::Error, whose text is one line.
#include "lamina/error.h"
#include "lamina/model.h"
#include "lamina/options.h"
#include "lamina/tensor.h"
