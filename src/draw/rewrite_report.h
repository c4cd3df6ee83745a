#pragma once
/// One page about what rewriting made of a model: figures before and after, and each rewrite as a drawing.
#include <memory>
#include <string>
#include <vector>

#include "draw/rewrite_album.h"
#include "formats/loaded.h"
#include "rules/rules.h"

namespace lamina {

/// What the page tells of. All that it refers to outlives it.
struct RewriteReport {
  std::string model;   ///< name of the file
  std::string format;  ///< "ONNX IR 7, opset 11, made by PaddlePaddle"
  const Graph& before;
  const Graph& after;
  const Ledger& ledger;
  const RewriteAlbum& album;                           ///< what saw the rewriting (RewriteOptions::observer)
  std::vector<std::string> disable = {}, exempt = {};  ///< what rules were told
  std::shared_ptr<const Rules> more = {};              ///< rules of libraries
  std::vector<std::string> notes = {};  ///< what else there is to say, a line each: warnings, too
};

/// The page, complete in itself: no scripts, nothing from outside. The same for the same rewriting. It stays
/// below 5 MB: of very many rewrites the first of each rule have drawings, and lists end with what is left.
std::string to_html(const RewriteReport& report);
void write_report(const std::string& path, const RewriteReport& report);

/// "ONNX IR 7, opset 11, made by PaddlePaddle"
std::string format_text(const Loaded& loaded);

}  // namespace lamina
