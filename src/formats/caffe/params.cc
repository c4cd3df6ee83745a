#include "formats/caffe/params.h"

namespace lamina::caffe {

std::int64_t count_of(const ProtoText::Field& field) {
  const auto value = field.natural();
  if (value > UINT32_MAX) field.refuse("a whole number of 32 bits");
  return static_cast<std::int64_t>(value);
}

std::int64_t integer_of(const ProtoText::Field& field) {
  const auto value = field.integer();
  if (value > std::int64_t{UINT32_MAX} || value < INT32_MIN) field.refuse("a whole number of 32 bits");
  return value;
}

Params::Params(const ProtoText::Message& layer, std::string_view name) {
  for (const auto field : layer)
    if (field.name() == name) messages_.push_back(field.message());
}

template <class Use>
void Params::each(std::string_view name, Use use) const {
  for (const auto& message : messages_)
    for (const auto field : message)
      if (field.name() == name) use(field);
}

std::optional<ProtoText::Field> Params::find(std::string_view name) const {
  std::optional<ProtoText::Field> last;
  each(name, [&](const auto& field) { last.emplace(field); });
  return last;
}

std::int64_t Params::integer(std::string_view name, std::int64_t fallback) const {
  const auto field = find(name);
  return field ? integer_of(*field) : fallback;
}

std::int64_t Params::count(std::string_view name, std::int64_t fallback) const {
  const auto field = find(name);
  return field ? count_of(*field) : fallback;
}

double Params::number(std::string_view name, double fallback) const {
  const auto field = find(name);
  return field ? field->number() : fallback;
}

bool Params::flag(std::string_view name, bool fallback) const {
  const auto field = find(name);
  return field ? field->boolean() : fallback;
}

std::string Params::text(std::string_view name, std::string_view fallback) const {
  const auto field = find(name);
  return std::string(field ? field->string() : fallback);
}

Ints Params::counts(std::string_view name) const {
  Ints out;
  each(name, [&](const auto& field) { out.push_back(count_of(field)); });
  return out;
}

Ints Params::integers(std::string_view name) const {
  Ints out;
  each(name, [&](const auto& field) { out.push_back(field.integer()); });
  return out;
}

Floats Params::numbers(std::string_view name) const {
  Floats out;
  each(name, [&](const auto& field) { out.push_back(field.number()); });
  return out;
}

Params Params::message(std::string_view name) const {
  Params out;
  each(name, [&](const auto& field) { out.messages_.push_back(field.message()); });
  return out;
}

std::size_t Params::choice(std::string_view name, std::initializer_list<std::string_view> words,
                           std::size_t fallback) const {
  const auto field = find(name);
  if (!field) return fallback;
  std::size_t index = 0;
  std::string all;
  for (const auto word : words) {
    const bool is_it = field->kind() == ProtoText::Kind::number ? !word.empty() && field->natural() == index
                                                                : field->word() == word;
    if (is_it && !word.empty()) return index;
    if (!word.empty()) all += (all.empty() ? "" : ", ") + std::string(word);
    ++index;
  }
  field->refuse("one of " + all);
}

}  // namespace lamina::caffe
