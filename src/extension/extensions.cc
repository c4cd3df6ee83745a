#include "extension/extensions.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/nearest.h"
#include "base/no_destructor.h"
#include "extension/border.h"
#include "extension/custom_op.h"
#include "extension/registrar.h"
#include "ops/operators.h"

namespace lamina {
namespace {

constexpr const char* kEntry = "lamina_extension";

struct LinkedIn {
  std::mutex mutex;
  std::map<std::string, ExtensionEntry> entries;
};
LinkedIn& linked_in() {
  static NoDestructor<LinkedIn> all;
  return *all;
}

ExtensionEntry find_linked_in(const std::string& name) {
  auto& all = linked_in();
  const std::lock_guard lock(all.mutex);
  const auto it = all.entries.find(name);
  return it == all.entries.end() ? nullptr : it->second;
}

bool resembles(const std::string& name) {
  std::string lower;
  for (const char c : name) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  for (const auto* part : {"lamina", "extension", "customops", "register"})
    if (lower.find(part) != std::string::npos) return true;
  return false;
}

ExtensionEntry entry_of(const SharedLibrary& library) {
  if (void* const address = library.symbol(kEntry)) return reinterpret_cast<ExtensionEntry>(address);
  std::string near;
  for (const auto& name : library.functions())
    if (resembles(name) || !nearest_name(kEntry, {name}).empty()) near += (near.empty() ? "" : ", ") + name;
  fail(ErrorCode::bad_file, "{}: exports no function \"{}\"{}", library.path(), kEntry,
       near.empty() ? "" : ", but " + near);
}

/// Entries run one at a time, in all threads: what they declare is the library's own, and unguarded. One may
/// load another library.
int enter(ExtensionEntry entry, lamina_registrar& registrar) {
  static NoDestructor<std::recursive_mutex> mutex;
  const std::lock_guard lock(*mutex);
  return entry(&extension_host(), &registrar);
}

/// Runs the entry, whatever it does.
lamina_registrar declared_by(ExtensionEntry entry, const std::string& path) {
  lamina_registrar registrar;
  int status = 0;
  try {
    status = enter(entry, registrar);
  } catch (const std::exception& e) {
    fail(ErrorCode::bad_file, "{}: {} threw an exception: {}", path, kEntry, e.what());
  } catch (...) {
    fail(ErrorCode::bad_file, "{}: {} threw an exception", path, kEntry);
  }
  if (!registrar.fault.empty()) fail(ErrorCode::bad_file, "{}: {}", path, registrar.fault);
  Strings missing;
  for (const auto& need : registrar.library.needs)
    if (!extension_host().query(need.c_str())) missing.push_back(need);
  if (!missing.empty())
    fail(ErrorCode::bad_file, "{}: needs features that {} does not have: {}", path, extension_host().engine,
         fmt::join(missing, ", "));
  if (status != 0) fail(ErrorCode::bad_file, "{}: {} gave the status {}", path, kEntry, status);
  return registrar;
}

std::shared_ptr<const DeclaredOperation> kept(DeclaredOperation from, const Origin& origin) {
  auto op = std::make_shared<DeclaredOperation>(std::move(from));
  op->origin = origin;
  op->info.name = op->word;
  op->info.doc = op->doc;
  return op;
}

std::shared_ptr<const DeclaredRule> kept(DeclaredRule from, const Origin& origin) {
  from.origin = origin;
  return std::make_shared<DeclaredRule>(std::move(from));
}

/// True if both are the same file, by whatever names.
bool same_library(const Extension& a, const Extension& b) {
  const auto &x = a.origin.library, &y = b.origin.library;
  if (!x || !y) return false;
  return x == y || (x->file()->identity() && x->file()->identity() == y->file()->identity());
}

std::string version_text(const DeclaredOperation& op) { return fmt::format("{} {}", op.name(), op.since); }

}  // namespace

const Hash128& Extension::content() const {
  hashed_([&] {
    const auto file =
        origin.library ? origin.library->file() : file_with(reinterpret_cast<void (*)()>(entry));
    content_ = hash_of(file->bytes());
  });
  return content_;
}

std::shared_ptr<const Extension> load_extension(const std::string& path) {
  std::atomic<bool> rounding_changed = false;  // by what runs when the library is loaded
  const KeepsRounding keeps(rounding_changed);
  auto out = std::make_shared<Extension>();
  auto entry = find_linked_in(path);
  if (entry) {
    out->origin = {path, path, nullptr};
  } else {
    const auto library = SharedLibrary::open(path);
    out->origin = {library->name(), library->path(), library};
    entry = entry_of(*library);
  }
  out->entry = entry;
  auto registrar = declared_by(entry, out->origin.path);
  if (registrar.operations.empty() && registrar.rules.empty())
    fail(ErrorCode::bad_file, "{}: declares no operation and no rule", out->origin.path);
  out->about = std::move(registrar.library);
  out->ignored = std::move(registrar.ignored);
  for (auto& op : registrar.operations) {
    for (const auto& other : out->operations)
      if (other->name() == op.name() && other->since == op.since)
        fail(ErrorCode::bad_file, "{}: declares {} twice", out->origin.path, version_text(op));
      else if (other->name() != op.name() && other->word == op.word)
        fail(ErrorCode::bad_file, "{}: {} and {} are one name in texts, \"{}\"", out->origin.path,
             other->name(), op.name(), op.word);
    out->operations.push_back(kept(std::move(op), out->origin));
  }
  for (auto& rule : registrar.rules) out->rules.push_back(kept(std::move(rule), out->origin));
  if (out->about.never_unload && out->origin.library) out->origin.library->never_unload();
  return out;
}

void add_linked_extension(const std::string& name, ExtensionEntry entry) {
  if (name.empty() || !entry)
    fail(ErrorCode::bad_call, "an extension without a {}", name.empty() ? "name" : "function");
  auto& all = linked_in();
  const std::lock_guard lock(all.mutex);
  const auto [it, added] = all.entries.emplace(name, entry);
  if (!added && it->second != entry) fail(ErrorCode::bad_call, "there is an extension \"{}\" already", name);
}

ExtensionSet::ExtensionSet(const std::vector<std::string>& paths) {
  for (const auto& path : paths) add(load_extension(path));
  sort();
}

ExtensionSet::ExtensionSet(const std::vector<std::shared_ptr<const Extension>>& all) {
  for (const auto& extension : all) add(extension);
  sort();
}

void ExtensionSet::sort() {
  std::sort(all_.begin(), all_.end(), [](const auto& a, const auto& b) {
    return std::tie(a->name(), a->origin.path) < std::tie(b->name(), b->origin.path);
  });
}

void ExtensionSet::add(const std::shared_ptr<const Extension>& extension) {
  for (const auto& other : all_)
    if (same_library(*other, *extension)) return;
  const auto refuse = [&](const std::string& what, const Origin& first) {
    fail(ErrorCode::bad_option, "{} is given by two extensions: {} and {}", what, first.path,
         extension->origin.path);
  };
  for (const auto& op : extension->operations) {
    for (const auto& [key, other] : operations_)
      if (other->word == op->word && other->origin.path != op->origin.path) refuse(op->name(), other->origin);
    operations_.emplace(Key{op->domain, op->type, op->since}, op);
    saved_.emplace(op->saved_name(), std::make_shared<CustomOp>(op));
  }
  for (const auto& rule : extension->rules)
    if (const auto [it, added] = rules_.emplace(rule->name, rule); !added)
      refuse("rule \"" + rule->name + "\"", it->second->origin);
  all_.push_back(extension);
}

std::shared_ptr<const DeclaredOperation> ExtensionSet::find(std::string_view domain, std::string_view type,
                                                            std::int64_t version) const {
  std::shared_ptr<const DeclaredOperation> best;
  for (const auto& [key, op] : operations_)
    if (op->domain == domain && op->type == type && (version == 0 || op->since <= version) &&
        (!best || op->since > best->since))
      best = op;
  return best;
}

std::shared_ptr<const DeclaredOperation> ExtensionSet::find_word(std::string_view word) const {
  std::shared_ptr<const DeclaredOperation> best;
  for (const auto& [key, op] : operations_)
    if (op->word == word && (!best || op->since > best->since)) best = op;
  return best;
}

Registry ExtensionSet::registry() const {
  Registry out = operators();
  Strings words;
  for (const auto& [key, op] : operations_)
    if (std::find(words.begin(), words.end(), op->word) == words.end()) {
      words.push_back(op->word);
      out.add(std::make_shared<CustomOp>(find_word(op->word)));
    }
  return out;
}

const AnyOp* ExtensionSet::find_saved(std::string_view name) const {
  const auto it = saved_.find(name);
  return it != saved_.end() ? it->second.get() : operators().find(name);
}

}  // namespace lamina
