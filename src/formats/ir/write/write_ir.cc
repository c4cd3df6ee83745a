#include <chrono>
#include <filesystem>

#include "base/threads.h"
#include "formats/ir/write/net_writer.h"
#include "formats/ir/write/text_out.h"

namespace lamina {
namespace {

using namespace ir;
namespace fs = std::filesystem;

struct StringWriter final : pugi::xml_writer {
  std::string text;
  void write(const void* data, std::size_t size) override {
    text.append(static_cast<const char*>(data), size);
  }
};

/// The element of that name, or the <info> that says it.
pugi::xml_node child_of(pugi::xml_node node, const std::string& name, bool named) {
  if (const auto child = node.child(name.c_str())) return child;
  if (!named) return node.append_child(name.c_str());
  for (const auto info : node.children("info"))
    if (info.attribute("name").value() == name) return info;
  auto info = node.append_child("info");
  info.append_attribute("name").set_value(name.c_str());
  return info;
}

/// "a.b" = value as nested elements.
void set_info(pugi::xml_node node, std::string_view key, const std::string& value, bool named) {
  for (std::size_t dot; (dot = key.find('.')) != std::string_view::npos; key.remove_prefix(dot + 1)) {
    const std::string name(key.substr(0, dot));
    node = child_of(node, name, named);
  }
  auto leaf = child_of(node, std::string(key), named);
  leaf.remove_attribute("value");
  leaf.append_attribute("value").set_value(value.c_str());
}

/// Whether all parts of the key may be names of elements.
bool is_xml_key(std::string_view key) {
  bool first = true;  // of a part
  for (const char c : key) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool further = (c >= '0' && c <= '9') || c == '-' || c == '.';
    if (!letter && (first || !further)) return false;
    first = c == '.';
  }
  return !first;
}

/// How the converter was called, in IR 11 and in IR 10.
constexpr const char *kParameters = "conversion_parameters", *kOldParameters = "cli_parameters";

/// IR 10 knows no other groups: OpenVINO refuses them.
void drop_groups(pugi::xml_node info) {
  for (auto child = info.first_child(); child;) {
    const auto next = child.next_sibling();
    if (child.first_child() && std::string_view(child.name()) != kOldParameters) info.remove_child(child);
    child = next;
  }
}

void add_net_info(pugi::xml_node net, const Loaded& loaded, const WriteIrOptions& options) {
  auto info = net.append_child(options.version == 10 ? "meta_data" : "rt_info");
  append_xml(info, loaded.ir_notes.network);
  const bool old = options.version == 10;
  if (auto parameters = info.child(old ? kParameters : kOldParameters))
    parameters.set_name(old ? kOldParameters : kParameters);
  for (const auto& [given, value] : options.rt_info) {
    std::string key = given;
    if (old && key.starts_with(std::string(kParameters) + '.'))
      key.replace(0, std::string_view(kParameters).size(), kOldParameters);
    set_info(info, key, value, !is_xml_key(key));
  }
  if (old) drop_groups(info);
}

std::string xml_of(const Loaded& loaded, const LegalGraph& legal, Writing& writing) {
  pugi::xml_document document;
  auto declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version").set_value("1.0");
  auto net = document.append_child("net");
  net.append_attribute("name").set_value(loaded.graph.name.empty() ? "model" : loaded.graph.name.c_str());
  net.append_attribute("version").set_value(writing.options.version);
  NetWriter(writing, legal, net, false).write();
  add_net_info(net, loaded, writing.options);
  StringWriter out;
  document.save(out, "\t", pugi::format_default, pugi::encoding_utf8);
  return std::move(out.text);
}

/// What stood at a path before, kept under another name until the new pair is there.
class OldFile {
 public:
  explicit OldFile(const std::string& path) : path_(path) {
    std::error_code error;
    there_ = fs::exists(fs::symlink_status(path, error));
    if (!fs::is_regular_file(fs::symlink_status(path, error))) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::string kept = fmt::format("{}.{}.tmp", path, now);
    fs::create_hard_link(path, kept, error);
    if (!error) kept_ = kept;
  }
  ~OldFile() {
    std::error_code error;
    if (!kept_.empty()) fs::remove(kept_, error);
  }
  OldFile(const OldFile&) = delete;
  OldFile& operator=(const OldFile&) = delete;

  void put_back() {
    std::error_code error;
    if (!kept_.empty()) fs::rename(kept_, path_, error);
    if (!there_) fs::remove(path_, error);
    kept_.clear();
  }

 private:
  std::string path_, kept_;
  bool there_ = false;
};

void require_paths(const std::string& xml_path, const std::string& bin_path) {
  if (xml_path == bin_path)
    fail(ErrorCode::bad_option,
         "{}: the network's file has the name of the constants', wanted another ending", xml_path);
  for (const auto& path : {xml_path, bin_path}) {
    std::error_code error;
    if (fs::is_directory(path, error))
      fail(ErrorCode::bad_file, "{}: is a folder, wanted the name of a file to write", path);
  }
}

}  // namespace

std::string bin_path_of(const std::string& xml_path) {
  return fs::path(xml_path).replace_extension(".bin").string();
}

WrittenIr write_ir(const Loaded& loaded, const std::string& xml_path, const WriteIrOptions& options) {
  if (options.version != 10 && options.version != 11)
    fail(ErrorCode::bad_option, "IR version {} cannot be written, wanted 10 or 11", options.version);
  const std::string bin_path = bin_path_of(xml_path);
  require_paths(xml_path, bin_path);
  WrittenIr report;
  const LegalGraph legal = legalise(loaded.graph, options.version);
  AtomicFile bin(bin_path), xml(xml_path);
  ConstantFile constants(bin);
  Writing writing{loaded, options, constants, report};
  const std::string text = xml_of(loaded, legal, writing);
  xml.write(text);
  if (report.constants > 0 && bin.written() == 0)
    bin.write(std::string_view("\0", 1));  // or it is no file to map
  report.shared_constants = constants.shared();
  report.xml_bytes = text.size();
  report.bin_bytes = bin.written();
  OldFile old_bin(bin_path);
  const SignalsBlocked here;  // both files, or none
  bin.commit();
  try {
    xml.commit();
  } catch (...) {
    old_bin.put_back();
    throw;
  }
  return report;
}

}  // namespace lamina
