#include "offline/faq.h"

namespace lamina {

int question_of(const Error& error, std::string_view path) {
  if (const auto* known = dynamic_cast<const FaqError*>(&error)) return known->question;
  const std::string_view text = error.what();
  const auto says = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (error.code() == ErrorCode::unsupported) return 45;
  if (error.code() != ErrorCode::bad_file || says("no such file")) return 0;
  if (says("cycle")) return 97;
  if (says(".caffemodel")) return 103;
  if (says(".prototxt") || path.ends_with(".prototxt")) return says("no layer") ? 7 : 11;
  return path.ends_with(".pb") || path.ends_with(".pbtxt") ? 43 : 0;
}

}  // namespace lamina
