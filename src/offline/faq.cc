#include "offline/faq.h"

namespace lamina {

int question_of(const Error& error, std::string_view path) {
  if (const auto* known = dynamic_cast<const FaqError*>(&error)) return known->question;
  const std::string_view text = error.what();
  const auto says = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (error.code() == ErrorCode::unsupported) return 45;
  if (error.code() != ErrorCode::bad_file) return 0;
  const bool caffe = path.ends_with(".caffemodel") || path.ends_with(".prototxt");
  if (caffe && says("holds weights only")) return 20;
  if (says("no such file")) return 0;
  if (says("cycle")) return 97;
  if (caffe && says("has no layer")) return says(".prototxt: ") ? 7 : 103;
  if (caffe && says(".caffemodel: ")) return 103;
  if (caffe && says("input_dim for")) return 8;
  if (caffe) return 11;
  return path.ends_with(".pb") || path.ends_with(".pbtxt") ? 43 : 0;
}

}  // namespace lamina
