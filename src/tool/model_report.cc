#include "tool/model_report.h"

#include <filesystem>

#include "api/rewrite_model.h"
#include "tool/rewrite_report.h"

namespace lamina::tool {

void report_rewriting(const std::string& path, const Common& common, const Session& s) {
  Progress progress("reporting on " + common.model, common);
  const auto& loaded = s.impl().model().loaded();
  Graph graph = loaded.graph;
  const auto inputs = s.model_inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    graph.set_type(graph.inputs()[i], {inputs[i].element_type(), Shape::of(inputs[i].shape())});
  graph.infer_types();
  RewriteAlbum album;
  auto settings = s.impl().settings();
  settings.options.progress = progress.callback();
  const auto rules = s.impl().model().rules();
  const auto rewritten =
      rewrite_model(std::move(graph), settings, s.impl().program()->machine(), Logger(), rules, &album);
  auto notes = rewritten.facts.widened;
  notes.insert(notes.end(), rewritten.facts.warnings.begin(), rewritten.facts.warnings.end());
  for (const auto& u : s.impl().model().unsupported()) notes.push_back("unsupported: " + u);
  write_report(path, {.model = std::filesystem::path(common.model).filename().string(),
                      .format = format_text(loaded),
                      .before = rewritten.original,
                      .after = rewritten.model.graph,
                      .ledger = rewritten.ledger,
                      .album = album,
                      .disable = settings.options.disable,
                      .exempt = settings.options.exempt,
                      .more = rules,
                      .notes = std::move(notes)});
}

}  // namespace lamina::tool
