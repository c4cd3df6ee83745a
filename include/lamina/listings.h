#pragma once
/// What this build of lamina knows, and what models and folders of compiled models hold, as JSON. Each
/// function gives the document that a verb of the command writes with --json: text in UTF-8, which ends with
/// a line break. All are thread-safe, and throw Error(out_of_memory) besides what is said.
#include <cstdint>
#include <string>
#include <vector>

#include "lamina/export.h"
#include "lamina/model.h"
#include "lamina/options.h"

namespace lamina {

/// `lamina version --json`: the versions of lamina and its libraries, this processor with its instruction
/// sets and memory, the threads that may be used, and under "machine" a description that `lamina explain
/// --machine` reads on another computer.
LAMINA_API std::string describe_build();

/// `lamina ops --json`: the operators of lamina's graphs with the kernels that take them, and the operators
/// that each format may have; under "extensions" what these libraries of custom layers declare. `extensions`:
/// as ReadOptions::extensions. Throws Error(bad_file) for a library that cannot be used, Error(bad_option)
/// for an operation or a rule that two of them declare.
LAMINA_API std::string list_operators(const std::vector<std::string>& extensions = {});

/// `lamina rules --json`: the optimisations, by the names that Options::disable takes, with those of the
/// libraries. Throws as list_operators() does.
LAMINA_API std::string list_rules(const std::vector<std::string>& extensions = {});

/// `lamina version --properties --json`: the settings that a model with these options would get, with
/// reasons, and the processors of each stream. `system_root`: the machine is the one that /proc and /sys
/// below this folder describe; "/": this machine. Warnings go to the options' log. Throws Error(bad_file) for
/// what is no folder, Error(bad_option).
LAMINA_API std::string list_settings(const Options& options = {}, const std::string& system_root = "/");

/// `lamina inspect --json`: format, inputs, outputs, variables, operators, parameters, multiply-adds,
/// warnings, and what is not supported. Weights are not read. Throws Error(bad_call) for a model that was
/// moved from.
LAMINA_API std::string describe_model(const Model& model);

/// `lamina cache list --json`: the entries of a folder of compiled models, those used longest ago first.
/// Throws Error(bad_file) when it cannot be read.
LAMINA_API std::string list_cache(const std::string& folder);
/// `lamina cache verify --json`: reads every byte of the entries; "damaged" names those that are damaged and
/// says where, "unusable" all that cannot be used here. Throws likewise.
LAMINA_API std::string verify_cache(const std::string& folder);
/// `lamina cache prune --json`: removes the entries that were used longest ago until the others take `most`
/// bytes at most. "trouble" says why one could not be removed; else it is empty. Throws likewise.
LAMINA_API std::string prune_cache(const std::string& folder, std::uint64_t most);

}  // namespace lamina
