#pragma once
/// Writing OpenVINO IR: the .xml with the network and the .bin with its constants.
#include <map>
#include <string>

#include "formats/loaded.h"

namespace lamina {

struct WriteIrOptions {
  int version = 11;  ///< or 10
  /// Numbers of f32 and f64 are stored as f16. Version 11 converts them back (what is beyond f16's range, or
  /// decides sizes or levels, stays); version 10 says f16 wherever the model says f32, as Model Optimizer
  /// did.
  bool compress_to_fp16 = false;
  /// Version 11 stores numbers that f16 holds exactly as f16, so that f16 numbers of the model stay f16.
  bool keep_halves = false;
  /// "MO_version" and the like, by dotted key; besides what the graph's file carried.
  std::map<std::string, std::string> rt_info = {};
};

struct WrittenIr {
  std::size_t layers = 0, constants = 0;
  std::size_t shared_constants = 0;  ///< constants whose bytes were in the file already
  std::size_t xml_bytes = 0, bin_bytes = 0;
  Strings warnings;
};

/// Writes the network to `xml_path` and its constants beside it, under the same name with .bin: both
/// completely or not at all. lamina's own operators are legalised: replaced by OpenVINO's. Throws Error:
/// unsupported for a node that IR has no operators for, bad_option for a version that is none, bad_file for
/// paths that cannot be written.
WrittenIr write_ir(const Loaded& loaded, const std::string& xml_path, const WriteIrOptions& options = {});

/// FILE.bin of FILE.xml.
std::string bin_path_of(const std::string& xml_path);

}  // namespace lamina
