#include "tests/mutation/text_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>
#include <stdexcept>

#include "formats/prototext.h"

namespace lamina::testing {
namespace {

constexpr std::size_t kMostValues = 64;
constexpr int kDeepest = 60;

Tree leaf(std::string name, Tree::Kind kind, std::string text) {
  Tree out{std::move(name), kind};
  out.text = std::move(text);
  return out;
}

/// How numbers of a constant lie in the .bin; 0 for types whose values are left as bytes.
struct Stored {
  int bytes = 0;
  bool real = false;
};

Stored stored_as(std::string type) {
  std::transform(type.begin(), type.end(), type.begin(), [](char c) { return std::toupper(c); });
  if (type == "F32" || type == "FP32") return {4, true};
  if (type == "I64") return {8, false};
  if (type == "I32") return {4, false};
  if (type == "U8" || type == "I8") return {1, false};
  return {};
}

std::string values_text(std::string_view bytes, Stored as) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(as.bytes)) {
    if (at) out += ',';
    float f = 0;
    std::int64_t i = 0;
    std::memcpy(&i, bytes.data() + at, static_cast<std::size_t>(as.bytes));
    std::memcpy(&f, &i, sizeof f);
    if (as.bytes == 4) i = static_cast<std::int32_t>(i);
    out += as.real ? fmt::format("{}", f) : std::to_string(i);
  }
  return out;
}

std::string values_bytes(const std::string& text, Stored as) {
  std::string out;
  if (text.empty()) return out;
  for (const auto& item : split(text, ',')) {
    const double real = std::strtod(item.c_str(), nullptr);
    const auto f = static_cast<float>(real);
    std::int64_t i = std::strtoll(item.c_str(), nullptr, 10);
    if (as.real) std::memcpy(&i, &f, sizeof f);
    out.append(reinterpret_cast<const char*>(&i), static_cast<std::size_t>(as.bytes));
  }
  return out;
}

const Tree* attribute(const Tree& element, const char* name) { return element.find(std::string("@") + name); }

std::string type_of(const Tree& element) {
  for (const auto* name : {"element_type", "precision"})
    if (const auto* type = attribute(element, name)) return type->text;
  return "FP32";
}

void take_values(Tree& element, std::string_view bin) {
  const auto *offset = attribute(element, "offset"), *size = attribute(element, "size");
  const auto as = stored_as(type_of(element));
  if (!offset || !size || as.bytes == 0) return;
  const auto from = std::strtoull(offset->text.c_str(), nullptr, 10),
             count = std::strtoull(size->text.c_str(), nullptr, 10);
  const auto width = static_cast<std::size_t>(as.bytes);
  if (count > kMostValues * width || from > bin.size() || count > bin.size() - from || count % width != 0)
    return;
  const auto text = values_text(bin.substr(from, count), as);
  std::erase_if(element.children, [](const Tree& c) { return c.name == "@offset" || c.name == "@size"; });
  element.children.push_back(leaf("@values", Tree::Kind::text, text));
}

Tree element_tree(pugi::xml_node node, std::string_view bin, int depth) {
  if (depth > kDeepest) throw std::runtime_error("too deep");
  Tree out{node.name()};
  for (const auto a : node.attributes())
    out.children.push_back(leaf(std::string("@") + a.name(), Tree::Kind::text, a.value()));
  take_values(out, bin);
  for (const auto c : node.children()) {
    if (c.type() == pugi::node_element) out.children.push_back(element_tree(c, bin, depth + 1));
    if (c.type() == pugi::node_pcdata) out.children.push_back(leaf("#text", Tree::Kind::text, c.value()));
  }
  return out;
}

void put_element(const Tree& tree, pugi::xml_node to, std::string& bin) {
  for (const auto& c : tree.children) {
    if (c.name == "@values") {
      const auto bytes = values_bytes(c.text, stored_as(type_of(tree)));
      to.append_attribute("offset") = static_cast<unsigned long long>(bin.size());
      to.append_attribute("size") = static_cast<unsigned long long>(bytes.size());
      bin += bytes;
    } else if (c.name.starts_with("@")) {
      to.append_attribute(c.name.c_str() + 1) = c.text.c_str();
    } else if (c.name == "#text") {
      to.append_child(pugi::node_pcdata).set_value(c.text.c_str());
    } else {
      put_element(c, to.append_child(c.name.c_str()), bin);
    }
  }
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (true) {
    const auto end = text.find(separator, at);
    out.emplace_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    if (end == std::string_view::npos) return out;
    at = end + 1;
  }
}

Tree xml_tree(std::string_view text, std::string_view bin) {
  pugi::xml_document document;
  if (!document.load_buffer(text.data(), text.size())) throw std::runtime_error("no XML");
  return element_tree(document.document_element(), bin, 0);
}

std::string xml_text(const Tree& tree, std::string& bin) {
  pugi::xml_document document;
  put_element(tree, document.append_child(tree.name.c_str()), bin);
  std::ostringstream out;
  document.save(out, " ");
  return out.str();
}

void repair_xml(Tree& tree) {
  auto* values = tree.find("@values");
  const auto* shape = tree.find("@shape");
  if (values && shape && shape->kind == Tree::Kind::text) {
    std::size_t count = 1;
    for (const auto& item : split(shape->text, ','))
      if (!item.empty() && count <= 4096)
        count *= std::min<std::size_t>(std::strtoull(item.c_str(), nullptr, 10), 4097);
    if (count <= 4096) {
      const auto items = split(values->text, ',');
      std::string out;
      for (std::size_t i = 0; i < count; ++i) out += (i ? "," : "") + items[i % items.size()];
      values->text = out;
    }
  }
  for (auto& c : tree.children)
    if (!c.is_leaf()) repair_xml(c);
}

namespace {

Tree json_tree_of(const std::string& name, const nlohmann::ordered_json& j, int depth) {
  if (depth > kDeepest) throw std::runtime_error("too deep");
  if (j.is_object()) {
    Tree out{name};
    for (const auto& [key, value] : j.items()) out.children.push_back(json_tree_of(key, value, depth + 1));
    return out;
  }
  if (j.is_array()) {
    Tree out{name, Tree::Kind::list};
    for (const auto& value : j) out.children.push_back(json_tree_of("item", value, depth + 1));
    return out;
  }
  if (j.is_number_integer()) {
    Tree out{name, Tree::Kind::integer};
    out.integer = j.get<std::int64_t>();
    return out;
  }
  if (j.is_number()) {
    Tree out{name, Tree::Kind::real};
    out.real = j.get<double>();
    return out;
  }
  if (j.is_string()) return leaf(name, Tree::Kind::text, j.get<std::string>());
  return leaf(name, Tree::Kind::word, j.dump());
}

nlohmann::ordered_json json_of(const Tree& tree) {
  using Json = nlohmann::ordered_json;
  switch (tree.kind) {
    case Tree::Kind::group: {
      Json out = Json::object();
      for (const auto& c : tree.children) out[c.name] = json_of(c);
      return out;
    }
    case Tree::Kind::list: {
      Json out = Json::array();
      for (const auto& c : tree.children) out.push_back(json_of(c));
      return out;
    }
    case Tree::Kind::integer:
      return tree.integer;
    case Tree::Kind::real:
      return tree.real;
    case Tree::Kind::word:
      return Json::parse(tree.text, nullptr, false);
    default:
      return tree.text;
  }
}

Tree message_tree(const std::string& name, const ProtoText::Message& message, int depth) {
  if (depth > kDeepest) throw std::runtime_error("too deep");
  Tree out{name};
  for (const auto field : message) {
    const std::string inner(field.name());
    if (field.is_message())
      out.children.push_back(message_tree(inner, field.message(), depth + 1));
    else if (field.kind() == ProtoText::Kind::string)
      out.children.push_back(leaf(inner, Tree::Kind::text, std::string(field.string())));
    else
      out.children.push_back(
          leaf(inner, Tree::Kind::word, (field.is_negative() ? "-" : "") + std::string(field.text())));
  }
  return out;
}

void write_message(const Tree& tree, std::string& out) {
  for (const auto& c : tree.children) {
    out += c.name;
    if (!c.is_leaf()) {
      out += " { ";
      write_message(c, out);
      out += "}\n";
    } else if (c.kind == Tree::Kind::text) {
      out += ": \"";
      for (const char b : c.text) {
        const auto byte = static_cast<unsigned char>(b);
        if (byte < 32 || byte > 126 || b == '"' || b == '\\')
          out += fmt::format("\\{:03o}", byte);
        else
          out += b;
      }
      out += "\" ";
    } else {
      out += ": " + (c.kind == Tree::Kind::integer ? std::to_string(c.integer) : c.text) + " ";
    }
  }
}

}  // namespace

Tree json_tree(std::string_view text) {
  return json_tree_of("graph", nlohmann::ordered_json::parse(text), 0);
}

std::string json_text(const Tree& tree) {
  return json_of(tree).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Tree prototext_tree(const std::string& text) {
  const auto owner = std::make_shared<const std::string>(text);
  const ProtoText parsed(MappedFile::in_memory("net", std::as_bytes(std::span(*owner)), owner));
  return message_tree("net", parsed.root(), 0);
}

std::string prototext(const Tree& tree) {
  std::string out;
  write_message(tree, out);
  return out;
}

}  // namespace lamina::testing
