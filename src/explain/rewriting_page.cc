#include "explain/rewriting_page.h"

#include "api/rewrite_model.h"
#include "draw/rewrite_report.h"

namespace lamina {

std::string rewriting_page(const std::string& name, const Compiled& compiled,
                           const std::vector<Tensor>& inputs, const ProgressCallback& progress) {
  const auto& loaded = compiled.model().loaded();
  Graph graph = loaded.graph;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    graph.set_type(graph.inputs()[i], {inputs[i].element_type(), Shape::of(inputs[i].shape())});
  graph.infer_types();
  RewriteAlbum album;
  auto settings = compiled.settings();
  settings.options.progress = progress;
  const auto rules = compiled.model().rules();
  const auto rewritten =
      rewrite_model(std::move(graph), settings, compiled.program()->machine(), Logger(), rules, &album);
  auto notes = rewritten.facts.widened;
  notes.insert(notes.end(), rewritten.facts.warnings.begin(), rewritten.facts.warnings.end());
  for (const auto& u : compiled.model().unsupported()) notes.push_back("unsupported: " + u);
  return to_html(RewriteReport{.model = name,
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

}  // namespace lamina
