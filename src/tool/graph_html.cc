/// Pictures as one HTML file: the SVG, with zoom, search and a panel.
#include "tool/graph_draw.h"
#include "tool/text.h"

namespace lamina::tool {
namespace {

constexpr std::string_view kPage = R"(
html,body{margin:0;height:100%;overflow:hidden;background:#ffffff;font:13px Helvetica,Arial,sans-serif;color:#23282e}
#view{position:absolute;inset:0;overflow:hidden;cursor:grab}
#view.drag{cursor:grabbing}
#view svg{transform-origin:0 0;display:block}
#bar{position:absolute;top:10px;right:10px;display:flex;gap:6px;align-items:center}
#bar input{width:190px;padding:5px 8px;border:1px solid #b9c0c8;border-radius:5px;font:inherit}
#bar button{padding:5px 9px;border:1px solid #b9c0c8;border-radius:5px;background:#ffffff;font:inherit;cursor:pointer}
#found{min-width:52px;text-align:right;color:#6a727b}
#panel{position:absolute;right:10px;bottom:10px;max-width:460px;max-height:60%;overflow:auto;margin:0;padding:10px 12px;
 border:1px solid #c9ced4;border-radius:6px;background:#ffffff;box-shadow:0 1px 6px #0003;white-space:pre-wrap;overflow-wrap:anywhere;
 font:12px/1.45 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
#panel:empty{display:none}
.n{cursor:pointer}
.n.hit rect{stroke:#e0004d;stroke-width:3}
.n.pair rect{stroke:#0a8f3c;stroke-width:3}
.n.chosen rect{stroke:#111418;stroke-width:2.5}
.e.near{stroke:#e0660c;stroke-width:2.4}
)";

constexpr std::string_view kScript = R"(
'use strict';
const view = document.getElementById('view'), svg = view.querySelector('svg'), panel = document.getElementById('panel');
const box = document.getElementById('search'), found = document.getElementById('found');
const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
let scale = 1, x = 0, y = 0, chosen = null, hits = [], at = -1;
const texts = new Map();
for (const g of svg.querySelectorAll('.n')) {
  const title = g.querySelector('title');
  texts.set(g, title.textContent);
  title.remove();
}
function show() { svg.style.transform = `translate(${x}px,${y}px) scale(${scale})`; }
function zoom(factor, cx, cy) {
  const next = Math.min(8, Math.max(0.02, scale * factor));
  x = cx - (cx - x) * next / scale;
  y = cy - (cy - y) * next / scale;
  scale = next;
  show();
}
function fit() {
  scale = Math.min(1.5, view.clientWidth / width, view.clientHeight / height);
  x = (view.clientWidth - width * scale) / 2;
  y = (view.clientHeight - height * scale) / 2;
  show();
}
function begin() {
  scale = Math.min(1, view.clientWidth / width);
  if (scale < 0.35) scale = Math.min(1, Math.max(view.clientHeight / height, 0.35));
  x = Math.max(0, (view.clientWidth - width * scale) / 2);
  y = 0;
  show();
}
function tell(g) {
  for (const e of svg.querySelectorAll('.near')) e.classList.remove('near');
  for (const e of svg.querySelectorAll('.pair')) e.classList.remove('pair');
  panel.textContent = g ? texts.get(g) : '';
  if (g) for (const e of svg.querySelectorAll(`[data-f="${g.id}"],[data-t="${g.id}"]`)) e.classList.add('near');
  // In a comparison: what belongs together.
  if (g && g.dataset.g) for (const e of svg.querySelectorAll(`.n[data-g="${g.dataset.g}"]`)) e.classList.add('pair');
}
function choose(g) {
  if (chosen) chosen.classList.remove('chosen');
  chosen = g;
  if (g) g.classList.add('chosen');
  tell(g);
}
function centre(g) {
  const r = g.getBoundingClientRect(), v = view.getBoundingClientRect();
  if (scale < 0.7) {
    const factor = 1 / scale;
    zoom(factor, r.x + r.width / 2 - v.x, r.y + r.height / 2 - v.y);
    return centre(g);
  }
  x += v.x + v.width / 2 - (r.x + r.width / 2);
  y += v.y + v.height / 2 - (r.y + r.height / 2);
  show();
}
function look() {
  const words = box.value.trim().toLowerCase().split(/\s+/).filter(w => w);
  for (const g of hits) g.classList.remove('hit');
  hits = words.length ? [...texts.keys()].filter(g => {
    const all = (g.dataset.name + ' ' + texts.get(g)).toLowerCase();
    return words.every(w => all.includes(w));
  }) : [];
  for (const g of hits) g.classList.add('hit');
  at = -1;
  found.textContent = words.length ? String(hits.length) : '';
}
function next(step) {
  if (!hits.length) return;
  at = (at + step + hits.length) % hits.length;
  found.textContent = `${at + 1} of ${hits.length}`;
  choose(hits[at]);
  centre(hits[at]);
}
view.addEventListener('wheel', e => {
  e.preventDefault();
  const v = view.getBoundingClientRect();
  if (e.ctrlKey || !e.shiftKey) zoom(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0015)), e.clientX - v.x, e.clientY - v.y);
  else { x -= e.deltaY; show(); }
}, {passive: false});
let from = null;
view.addEventListener('pointerdown', e => { from = {x: e.clientX - x, y: e.clientY - y, sx: e.clientX, sy: e.clientY}; });
window.addEventListener('pointermove', e => {
  if (!from) return;
  view.classList.add('drag');
  x = e.clientX - from.x;
  y = e.clientY - from.y;
  show();
});
window.addEventListener('pointerup', e => {
  if (from && Math.hypot(e.clientX - from.sx, e.clientY - from.sy) < 4 && view.contains(e.target))
    choose(e.target.closest('.n'));
  from = null;
  view.classList.remove('drag');
});
svg.addEventListener('pointerover', e => {
  if (from) return;
  const g = e.target.closest('.n');
  if (g) tell(g); else if (!chosen) tell(null); else tell(chosen);
});
box.addEventListener('input', look);
box.addEventListener('keydown', e => {
  if (e.key === 'Enter') next(e.shiftKey ? -1 : 1);
  if (e.key === 'Escape') { box.value = ''; look(); box.blur(); choose(null); }
});
window.addEventListener('keydown', e => {
  if (e.target === box) return;
  if (e.key === '/') { e.preventDefault(); box.focus(); }
  if (e.key === 'Escape') choose(null);
  const mx = view.clientWidth / 2, my = view.clientHeight / 2;
  if (e.key === '+' || e.key === '=') zoom(1.25, mx, my);
  if (e.key === '-') zoom(0.8, mx, my);
  if (e.key === '0') fit();
  const step = {ArrowUp: [0, 80], ArrowDown: [0, -80], ArrowLeft: [80, 0], ArrowRight: [-80, 0]}[e.key];
  if (step) { x += step[0]; y += step[1]; show(); }
});
document.getElementById('in').onclick = () => zoom(1.25, view.clientWidth / 2, view.clientHeight / 2);
document.getElementById('out').onclick = () => zoom(0.8, view.clientWidth / 2, view.clientHeight / 2);
document.getElementById('fit').onclick = fit;
begin();
)";

}  // namespace

std::string to_html(const std::vector<Picture>& pictures, const DrawOptions& options) {
  auto svg = to_svg(pictures, options);
  svg.erase(0, svg.find("<svg"));  // without the XML declaration
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
      "charset=\"utf-8\">\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n<div id=\"view\">\n{}</div>\n"
      "<div id=\"bar\"><span id=\"found\"></span><input id=\"search\" type=\"search\" placeholder=\"search ( "
      "/ ), Enter: next\" "
      "aria-label=\"search\"><button id=\"in\">+</button><button id=\"out\">&#8722;</button>"
      "<button id=\"fit\">fit</button></div>\n<pre "
      "id=\"panel\"></pre>\n<script>{}</script>\n</body>\n</html>\n",
      escape_xml(pictures[0].title), kPage, svg, kScript);
}

}  // namespace lamina::tool
