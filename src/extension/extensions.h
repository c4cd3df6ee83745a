#pragma once
/// Libraries of custom layers: loading, and what is found in them.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "base/once.h"
#include "extension/declaration.h"

namespace lamina {

using ExtensionEntry = int (*)(const lamina_host*, lamina_registrar*);

/// A loaded library. Immutable.
struct Extension {
  Origin origin;
  DeclaredLibrary about;
  std::vector<std::shared_ptr<const DeclaredOperation>> operations;
  std::vector<std::shared_ptr<const DeclaredRule>> rules;
  Strings ignored;  ///< what it sets and this engine does not know
  ExtensionEntry entry = nullptr;

  /// What it calls itself, else its file's name.
  const std::string& name() const { return about.name.empty() ? origin.name : about.name; }
  /// Hash of the library's file, or of the program's file that it is linked into; computed once. Thread-safe.
  const Hash128& content() const;

 private:
  mutable Once hashed_;
  mutable Hash128 content_;
};

/// Loads the library, or takes what add_linked_extension() knows under that name. Throws Error(bad_file) that
/// says what is wrong with it.
std::shared_ptr<const Extension> load_extension(const std::string& path);

/// For what is linked in: load_extension(name) finds it without a file. Thread-safe. Throws Error(bad_call)
/// for a name that is taken by another function.
void add_linked_extension(const std::string& name, ExtensionEntry entry);

/// The libraries of one model. Immutable; empty where there are none.
class ExtensionSet {
 public:
  ExtensionSet() = default;
  /// Throws as load_extension(); Error(bad_option) for an operation or a rule that two of them give.
  explicit ExtensionSet(const std::vector<std::string>& paths);
  explicit ExtensionSet(const std::vector<std::shared_ptr<const Extension>>& all);

  /// All extensions, sorted by name: the order in which they were given changes nothing.
  const std::vector<std::shared_ptr<const Extension>>& all() const { return all_; }
  bool empty() const { return all_.empty(); }
  /// The newest operation that is not newer than `version` (0: any version); null: there is none.
  std::shared_ptr<const DeclaredOperation> find(std::string_view domain, std::string_view type,
                                                std::int64_t version = 0) const;
  /// lamina's operators and these: for the text form of graphs.
  Registry registry() const;
  /// For files of compiled models: an operator of lamina's or of these, by its saved name; null: there is
  /// none.
  const AnyOp* find_saved(std::string_view name) const;
  /// The newest operation with this word in graphs ("com.example.Gate"); null if there is none.
  std::shared_ptr<const DeclaredOperation> find_word(std::string_view word) const;

 private:
  void add(const std::shared_ptr<const Extension>& extension);
  void sort();
  using Key = std::tuple<std::string, std::string, std::int64_t>;
  std::vector<std::shared_ptr<const Extension>> all_;
  std::map<Key, std::shared_ptr<const DeclaredOperation>, std::less<>> operations_;
  std::map<std::string, std::shared_ptr<const AnyOp>, std::less<>> saved_;  // by saved name
  std::map<std::string, std::shared_ptr<const DeclaredRule>> rules_;
};

}  // namespace lamina
