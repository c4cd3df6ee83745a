#include "draw/rewrite_report.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>

#include "base/atomic_file.h"
#include "base/table_text.h"
#include "base/words.h"
#include "draw/graph_draw.h"
#include "draw/report_list.h"
#include "draw/report_page.h"
#include "draw/text.h"
#include "draw/totals.h"
#include "ops/unused_inputs.h"
#include "rewrite/exemptions.h"

namespace lamina {
namespace {

constexpr std::size_t kDrawingBytes = 3'200'000, kListBytes = 1'200'000;
constexpr std::size_t kListed = 200;      // entries of a list
constexpr std::size_t kRowNames = 12;     // names in a row
constexpr std::size_t kOperators = 24;    // rows of the table of operators
constexpr std::size_t kTextLength = 300;  // of what a rewrite made
constexpr std::string_view kTextArrow = "\xE2\x86\x92";

std::string text_html(std::string_view text, std::size_t most = kTextLength) {
  return escape_xml(clipped(printable(text), most));
}

/// "2,097,152"
std::string with_commas(std::uint64_t number) {
  auto out = std::to_string(number);
  for (auto at = std::ssize(out) - 3; at > 0; at -= 3) out.insert(static_cast<std::size_t>(at), ",");
  return out;
}

std::string counted_with_commas(std::size_t n, std::string_view what) {
  return fmt::format("{} {}{}", with_commas(n), what, n == 1 ? "" : "s");
}

/// A row with the change in per cent where there were some before.
std::string figures_row(const std::string& head, const std::string& before, const std::string& after,
                        double was, double is) {
  const auto change = was > 0 ? 100 * (is / was - 1) : 0;
  const auto percent = was == is || was == 0 ? "" : fmt::format("{:+.1f} %", change);
  return fmt::format("<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n", head, before, after,
                     percent == "-0.0 %" || percent == "+0.0 %" ? "" : percent);
}

std::string figures_row(const std::string& head, std::uint64_t was, std::uint64_t is) {
  return figures_row(head, with_commas(was), with_commas(is), static_cast<double>(was),
                     static_cast<double>(is));
}

/// All of one rule.
struct RuleStory {
  std::string name, doc, set, library;
  std::vector<std::pair<std::size_t, const LedgerEntry*>> fired;  // with the number of the firing
  std::vector<const LedgerEntry*> refused;
  std::vector<const LedgerEntry*> former;  // refusals of nodes that are gone
  std::size_t drawings = 0;                // of the first so many that have one
};

class Page {
 public:
  explicit Page(const RewriteReport& r)
      : r_(r), before_(graph_totals(r.before)), after_(graph_totals(r.after)), entries_(r.ledger.entries()) {
    tell_stories();
    choose_drawings();
  }

  std::string html() {
    const auto title = fmt::format("{}: what was rewritten", printable(r_.model));
    return report_page(title, header() + figures() + remarks() + overview() + rules());
  }

 private:
  void tell_stories() {
    const auto counts = r_.ledger.counts();
    std::map<std::string, std::size_t> index;
    const Rules none;
    for (const auto* rules : {r_.more ? r_.more.get() : &none, &all_rules()})
      for (const auto& rule : *rules) {
        if (!counts.contains(rule.name) || !index.try_emplace(rule.name, stories_.size()).second) continue;
        stories_.push_back({rule.name, rule.doc, std::string(name_of(rule.set)), rule.library, {}, {}, {}});
      }
    std::size_t number = 0;
    for (const auto& e : entries_) {
      const bool fired = e.kind == LedgerEntry::Kind::fired;
      const auto at = index.find(e.rule);
      if (at != index.end()) {
        auto& story = stories_[at->second];
        if (fired) story.fired.emplace_back(number, &e);
        if (e.kind == LedgerEntry::Kind::refused) story.refused.push_back(&e);
      }
      number += fired;
    }
    for (auto& story : stories_) tell_former(story);
    std::erase_if(stories_, [](const RuleStory& s) {
      return s.fired.empty() && s.refused.empty() && s.former.empty();
    });
  }

  /// Tells a refusal at a node that computed several layers once.
  void tell_former(RuleStory& story) {
    std::set<std::pair<std::string, std::string>> told;
    for (std::uint32_t i = 0; i < r_.before.sources.size(); ++i) {
      auto e = r_.ledger.former_refusal(story.name, SourceId{i});
      if (!e || !told.emplace(e->node, e->text).second) continue;
      former_.push_back(std::move(*e));
      story.former.push_back(&former_.back());
    }
  }

  /// In turns, so that each rule has its share of the bytes.
  void choose_drawings() {
    std::size_t left = kDrawingBytes;
    for (bool more = true; more;) {
      more = false;
      for (auto& story : stories_) {
        if (story.drawings >= story.fired.size()) continue;
        const auto* p = r_.album.of(story.fired[story.drawings].first);
        if (!p || p->bytes() > left) continue;
        left -= p->bytes();
        ++story.drawings;
        more = true;
      }
    }
  }

  std::string header() const {
    std::size_t rules = 0;
    for (const auto& s : stories_) rules += !s.fired.empty();
    auto out =
        fmt::format("<h1>{}</h1>\n<p class=\"sub\">{}</p>\n", text_html(r_.model), text_html(r_.format));
    out +=
        fmt::format("<p class=\"lead\">{} by {}: {} {} {}</p>\n",
                    counted_with_commas(r_.ledger.rewrites(), "rewrite"), counted_with_commas(rules, "rule"),
                    counted_with_commas(before_.nodes, "operator"), kTextArrow, with_commas(after_.nodes));
    return out;
  }

  /// "4.12 G", with a mark where shapes are unknown.
  static std::string amount(double value, bool known) {
    const auto text = value >= 1e9   ? fmt::format("{:.4g} G", value / 1e9)
                      : value >= 1e6 ? fmt::format("{:.4g} M", value / 1e6)
                                     : with_commas(static_cast<std::uint64_t>(value));
    return (known ? "" : "at least ") + text;
  }
  std::string figures() const {
    const auto &b = before_, &a = after_;
    const auto work = [&](const char* head, double was, double is) {
      return figures_row(head, amount(was, b.all_known), amount(is, a.all_known), was, is);
    };
    std::string out =
        "<h2>Before and after</h2>\n<table class=\"figures\">\n<tr><th></th><th>before</th><th>after"
        "</th><th>change</th></tr>\n";
    out += figures_row("operators", b.nodes, a.nodes);
    if (b.stages + a.stages > 0) out += figures_row("fused into others as stages", b.stages, a.stages);
    out += figures_row("elements of constants", b.parameters, a.parameters);
    out += figures_row("bytes of constants", human_bytes(static_cast<double>(b.parameter_bytes)),
                       human_bytes(static_cast<double>(a.parameter_bytes)),
                       static_cast<double>(b.parameter_bytes), static_cast<double>(a.parameter_bytes));
    out += work("multiply-adds", b.multiply_adds, a.multiply_adds);
    out += work("FLOPs (a multiply-add counts as two)", b.flops(), a.flops());
    out += work("other operations", b.others, a.others);
    out +=
        figures_row("bytes read and written", human_bytes(b.bytes), human_bytes(a.bytes), b.bytes, a.bytes);
    out += "</table>\n";
    if (b.of_one || a.of_one)
      out += "<p class=\"note\">The batch is open: the figures are for a batch of 1.</p>\n";
    if (!b.all_known || !a.all_known)
      out +=
          "<p class=\"note\">Shapes of some layers are known only with those of the inputs: their figures "
          "are missing here.</p>\n";
    return out + "<div class=\"side\">\n" + families() + operators() + "</div>\n";
  }
  std::string families() const {
    std::map<OpFamily, std::pair<std::size_t, std::size_t>> all;
    for (const auto& [family, n] : before_.families) all[family].first = n;
    for (const auto& [family, n] : after_.families) all[family].second = n;
    std::string out =
        "<table class=\"figures\">\n<tr><th>operators by family</th><th>before</th><th>after</th>"
        "<th>change</th></tr>\n";
    for (const auto& [family, n] : all)
      out += figures_row(fmt::format("<i style=\"background:{}\"></i>{}", colour_of(family), name_of(family)),
                         n.first, n.second);
    return out + "</table>\n";
  }
  std::string operators() const {
    std::map<std::string, std::pair<std::size_t, std::size_t>> all;
    for (const auto& [name, n] : before_.operators) all[name].first = n;
    for (const auto& [name, n] : after_.operators) all[name].second = n;
    std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> rows(all.begin(), all.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
      return std::max(x.second.first, x.second.second) > std::max(y.second.first, y.second.second);
    });
    std::string out =
        "<table class=\"figures\">\n<tr><th>operator</th><th>before</th><th>after</th><th>change"
        "</th></tr>\n";
    for (std::size_t i = 0; i < std::min(rows.size(), kOperators); ++i)
      out += figures_row(text_html(rows[i].first, 60), rows[i].second.first, rows[i].second.second);
    out += "</table>\n";
    if (rows.size() > kOperators)
      out += fmt::format("<p class=\"note\">and {} more kinds of operators</p>\n", rows.size() - kOperators);
    return out;
  }

  /// What the user asked for, and what a person should look at.
  std::string remarks() const {
    std::string out;
    std::set<std::string> said;
    const auto item = [&](const std::string& html) {
      if (said.insert(html).second) out += "<li>" + html + "</li>\n";
    };
    for (const auto& input : unused_inputs(r_.before)) item(text_html(to_string(input)));
    if (!r_.disable.empty()) item("switched off: " + names_html(r_.disable, kListed));
    exemptions(item);
    for (const auto& note : r_.notes) item(text_html(note));
    return out.empty() ? "" : "<h2>Notes</h2>\n<ul>\n" + out + "</ul>\n";
  }
  template <class Item>
  void exemptions(const Item& item) const {
    for (const auto& pattern : r_.exempt) {
      const auto names = exempt_names(Exemptions(std::vector<std::string>{pattern}), r_.before);
      if (names.empty()) continue;  // there is a warning
      item(text_html(fmt::format("exempt by \"{}\", left as they are: ", as_said(pattern))) +
           names_html(names, kListed));
    }
  }

  static std::size_t refused(const RuleStory& s) { return s.refused.size() + s.former.size(); }
  std::string overview() const {
    if (stories_.empty()) return "<p>No rule found anything to do.</p>\n";
    std::string out =
        "<h2>Rules</h2>\n<table class=\"rules\">\n<tr><th>rule</th><th>fired</th><th>refused</th>"
        "<th></th></tr>\n";
    for (const auto& s : stories_)
      out += fmt::format("<tr><th><a href=\"#{0}\">{0}</a></th><td>{1}</td><td>{2}</td><td>{3}</td></tr>\n",
                         escape_xml(s.name), s.fired.empty() ? "" : with_commas(s.fired.size()),
                         refused(s) == 0 ? "" : with_commas(refused(s)), text_html(s.doc));
    return out + "</table>\n";
  }

  std::string rules() {
    std::string out;
    for (const auto& s : stories_) {
      out += fmt::format(
          "<section id=\"{0}\">\n<h3>{0}</h3>\n<p class=\"sub\">{1}. Set: {2}{3}; fired {4}, refused "
          "{5}.</p>\n",
          escape_xml(s.name), text_html(s.doc), s.set,
          s.library.empty() ? "" : fmt::format(", of {}", text_html(s.library)),
          counted_with_commas(s.fired.size(), "time"), counted_with_commas(refused(s), "node"));
      for (std::size_t i = 0; i < s.drawings; ++i) out += figure(i, s);
      out += others(s) + refusals(s) + "</section>\n";
    }
    return out;
  }

  static std::string what(const LedgerEntry& e) {
    return fmt::format("<b>{}</b> {} {}", text_html(e.node, 100), kTextArrow, text_html(e.text));
  }
  static std::string drawing(const Scene& s, std::string_view words, const LedgerEntry& e) {
    if (s.svg.empty()) return fmt::format("<div class=\"pic\"><p>{}</p><p>nothing</p></div>", words);
    return fmt::format(
        "<div class=\"pic\"><p>{0}</p><svg width=\"{1}\" height=\"{2}\" viewBox=\"0 0 {1} {2}\" role=\"img\" "
        "aria-label=\"{3}: {0}\">\n{4}</svg></div>",
        words, short_number(s.width), short_number(s.height), text_html(e.node, 100), s.svg);
  }
  std::string figure(std::size_t i, const RuleStory& s) const {
    const auto& [firing, e] = s.fired[i];
    const auto& p = *r_.album.of(firing);
    auto caption = fmt::format("{}. {}", i + 1, what(*e));
    if (!p.where.empty()) caption += fmt::format("<br>{}", text_html(p.where));
    if (!e->sources.empty()) caption += "<br>layers of the file: " + names_html(e->sources, kRowNames);
    return fmt::format("<figure><figcaption>{}</figcaption>\n<div class=\"pair\">{}{}</div></figure>\n",
                       caption, drawing(p.before, "before", *e), drawing(p.after, "after", *e));
  }

  /// Rewrites without drawings.
  std::string others(const RuleStory& s) {
    if (s.fired.size() == s.drawings) return "";
    std::string items;
    auto i = s.drawings;
    for (; i < s.fired.size() && i - s.drawings < kListed; ++i) {
      const auto& e = *s.fired[i].second;
      auto item = fmt::format("<li value=\"{}\">{}{}</li>\n", i + 1, what(e),
                              e.sources.empty() ? "" : "; layers: " + names_html(e.sources, kRowNames));
      if (!budget_.take(item)) break;
      items += item;
    }
    if (i < s.fired.size())
      items += fmt::format("<li value=\"{}\">and {} more</li>\n", i + 1, s.fired.size() - i);
    return fmt::format("<details><summary>and {} more</summary>\n<ol>\n{}</ol></details>\n",
                       s.fired.size() - s.drawings, items);
  }

  std::string refusals(const RuleStory& s) {
    return refusals("Refused:", s.refused) +
           refusals("Refused at nodes that other rules have changed since:", s.former);
  }
  std::string refusals(std::string_view title, const std::vector<const LedgerEntry*>& entries) {
    if (entries.empty()) return "";
    const auto groups = grouped(entries);
    auto out = fmt::format("<p>{}</p>\n", title);
    std::size_t g = 0;
    for (; g < groups.size() && g < kListed; ++g) {
      const auto text = refusal(groups[g]);
      if (!budget_.take(text)) break;
      out += text;
    }
    if (g < groups.size()) out += fmt::format("<p>and {} more reasons</p>\n", groups.size() - g);
    return out;
  }
  static std::string refusal(const RefusalGroup& group) {
    const auto head = fmt::format("{} {}", counted_with_commas(group.entries.size(), "node"),
                                  text_html(": " + group.reason));
    std::string items;
    std::size_t i = 0;
    for (; i < group.entries.size() && i < kListed / 4; ++i) {
      const auto& e = *group.entries[i];
      items += fmt::format("<li><b>{}</b>{}</li>\n", text_html(e.node, 100),
                           e.text == group.reason ? "" : ": " + text_html(e.text));
    }
    if (i < group.entries.size()) items += fmt::format("<li>and {} more</li>\n", group.entries.size() - i);
    return fmt::format("<details><summary>{}</summary>\n<ul>\n{}</ul></details>\n", head, items);
  }

  const RewriteReport& r_;
  const Totals before_, after_;
  const std::vector<LedgerEntry> entries_;
  std::deque<LedgerEntry> former_;
  std::vector<RuleStory> stories_;
  ListBudget budget_{kListBytes};
};

}  // namespace

std::string to_html(const RewriteReport& report) { return Page(report).html(); }

std::string format_text(const Loaded& loaded) {
  return fmt::format("{} {}{}", name_of(loaded.format), loaded.version,
                     loaded.producer.empty() ? "" : ", made by " + loaded.producer);
}

void write_report(const std::string& path, const RewriteReport& report) { write_file(path, to_html(report)); }

}  // namespace lamina
