#include "draw/report_page.h"

#include "draw/graph_draw.h"
#include "draw/text.h"

namespace lamina {
namespace {

constexpr std::string_view kReportStyle = R"(
:root{color-scheme:light dark;--back:#ffffff;--text:#23282e;--soft:#5f6973;--line:#d5dae0;--card:#f7f8fa;--link:#2f6db5}
@media screen and (prefers-color-scheme:dark){:root{--back:#16191d;--text:#dde2e8;--soft:#98a2ad;--line:#353c44;--card:#1c2026;--link:#7db2ee}}
body{margin:0 auto;max-width:1180px;padding:24px 28px 60px;background:var(--back);color:var(--text);font:14px/1.5 Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif}
h1{font-size:24px;margin:0}
h2{font-size:18px;margin:28px 0 8px}
h3{font-size:16px;margin:0}
a{color:var(--link);text-decoration:none}
.sub,.note{color:var(--soft);margin:2px 0 10px}
.lead{font-size:16px}
table{border-collapse:collapse;margin:0 0 10px}
td,th{padding:3px 12px 3px 0;border-bottom:1px solid var(--line);text-align:right;font-variant-numeric:tabular-nums;vertical-align:top}
th:first-child{text-align:left;font-weight:normal}
tr:first-child th{color:var(--soft);font-weight:normal}
.rules td:last-child{text-align:left;color:var(--soft)}
.figures i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:7px}
.side{display:flex;flex-wrap:wrap;gap:0 48px;align-items:flex-start}
section{border-top:1px solid var(--line);padding:18px 0 6px;margin-top:10px}
figure{margin:0 0 14px;padding:10px 12px;background:var(--card);border:1px solid var(--line);border-radius:6px;break-inside:avoid}
figcaption,li,summary{overflow-wrap:anywhere}
.pair{display:flex;flex-wrap:wrap;gap:8px 40px;align-items:flex-start}
.pic{max-width:100%;overflow-x:auto}
.pic p{margin:8px 0 0;color:var(--soft);font-size:12px}
svg{max-width:none}
summary{cursor:pointer}
details{margin:2px 0}
)";

/// Drawings are made for a white page; here it may be dark, and headings of neighbours are pale.
constexpr std::string_view kDrawings = R"(
.pic rect[stroke="#b9bec5"]~.t{fill:#3a424b}
.pic g>rect[fill="#f4f4f4"]{fill:var(--back)}
@media screen and (prefers-color-scheme:dark){
text,.s{fill:#dde2e8}
.t,.c,.p{fill:#ffffff}
.o,.y{fill:#a7b1bb}
.f{fill:#e0a07e}
.e{stroke:#727c87}
.d{stroke:#6b5145}
.pic rect[fill="#ffffff"]{fill:#22272e}
.pic rect[fill="#f7d0d6"]{fill:#5b2c36}
.pic rect[fill="#d3efd0"]{fill:#25482a}
.pic rect[stroke="#b9bec5"]{stroke:#59626c}
.pic path[fill="#b9bec5"]{fill:#59626c}
.pic rect[stroke="#b9bec5"]~.t{fill:#e6e9ed}
}
@media print{
body{max-width:none;padding:0}
a{color:inherit}
.pic{overflow:visible}
.pic svg{max-width:100%;height:auto}
details::details-content{content-visibility:visible;display:block}
}
)";

}  // namespace

std::string report_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>{}</title>\n<style>{}{}{}</style>\n</head>\n<body>\n"
      "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>{}</defs></svg>\n"
      "{}</body>\n</html>\n",
      escape_xml(title), kReportStyle, drawing_style(), kDrawings, arrow_marker(), body);
}

}  // namespace lamina
