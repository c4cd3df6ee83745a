#pragma once
/// Models that are mutated: small ones of every format.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/mutation/tree.h"

namespace lamina::testing {

struct Seed {
  std::string name;
  TreeFormat format = TreeFormat::onnx;
  ModelFiles files;
};

/// All models of up to so many bytes in a folder and below, in the order of their names. None where there is
/// no such folder.
std::vector<Seed> seeds_in(const std::filesystem::path& folder, std::size_t most_bytes = 32 << 10);
/// One model of one or two files; nothing for files that are no models.
std::vector<Seed> seed_of(const std::filesystem::path& file);

/// Each operator's example as IR.
std::vector<Seed> operator_seeds();

/// The operators' examples, and what tests/formats has kept (support/kept_models.h).
std::vector<Seed> own_seeds();
/// The seeds above and those in ../shared.
std::vector<Seed> all_seeds();

/// Writes the model's files as FOLDER/NAME.EXTENSION; gives the first one's path.
std::string save(const Seed& seed, const std::filesystem::path& folder);

}  // namespace lamina::testing
