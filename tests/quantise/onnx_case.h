#pragma once
/// ONNX models of tests, quantised.
#include <memory>
#include <string>

#include "quantise/quantise.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {

/// Text as a file.
class TextSource {
 public:
  explicit TextSource(std::string text)
      : text_(std::make_shared<const std::string>(std::move(text))),
        source_(MappedFile::in_memory("model", std::as_bytes(std::span(*text_)), text_), nullptr, {}) {}
  const ModelSource& operator*() const { return source_; }

 private:
  std::shared_ptr<const std::string> text_;
  MemorySource source_;
};

/// By six random samples of one input of the type ("f32[1,3,16,16]").
QuantiseRequest quantise_request(const std::string& input);
QuantisedModel quantised(const std::string& bytes, const QuantiseRequest& request);

}  // namespace lamina::testing
