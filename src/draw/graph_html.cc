/// Drawings as one HTML file: the SVG, with zoom, search and a panel.
#include <algorithm>

#include "draw/graph_draw.h"
#include "draw/text.h"

namespace lamina {
namespace {

constexpr std::string_view kPage = R"(
html,body{margin:0;height:100%;overflow:hidden;background:#ffffff;font:13px Helvetica,Arial,sans-serif;color:#23282e}
#view{position:absolute;inset:0;overflow:hidden;cursor:grab}
#view.drag{cursor:grabbing}
#view svg{transform-origin:0 0;display:block}
#bar{position:absolute;top:10px;right:10px;display:flex;gap:6px;align-items:center}
#bar input{width:230px;padding:5px 8px;border:1px solid #b9c0c8;border-radius:5px;font:inherit}
#bar button{padding:5px 9px;border:1px solid #b9c0c8;border-radius:5px;background:#ffffff;font:inherit;cursor:pointer}
#found{min-width:52px;text-align:right;color:#6a727b}
#list,#panel,#label,#map{position:absolute;margin:0;border:1px solid #c9ced4;border-radius:6px;background:#ffffff;box-shadow:0 1px 6px #0003}
#list{right:10px;top:46px;width:440px;max-height:45%;overflow:auto;padding:4px 0}
#list div{padding:3px 12px;cursor:pointer;overflow-wrap:anywhere}
#list div:hover,#list .now{background:#e8f0fb}
#list i{color:#6a727b;margin-left:8px}
#panel{right:10px;bottom:10px;max-width:460px;max-height:45%;overflow:auto;padding:10px 12px;white-space:pre-wrap;overflow-wrap:anywhere;
 font:12px/1.45 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
#label{max-width:560px;padding:4px 8px;pointer-events:none;white-space:pre-wrap;overflow-wrap:anywhere}
#top{left:10px;top:10px;position:absolute;width:330px;padding:8px 12px;border:1px solid #c9ced4;border-radius:6px;background:#ffffffee;box-shadow:0 1px 6px #0003}
#top summary{cursor:pointer;font-weight:bold}
#top div{position:relative;margin-top:3px;padding:2px 6px;cursor:pointer;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
#top div:hover{background:#e8f0fb}
#top b{position:absolute;left:0;top:0;bottom:0;background:#e0660c33}
#top i{float:right;margin-left:8px;color:#6a727b;font-style:normal}
#map{left:10px;bottom:10px;overflow:hidden;cursor:crosshair}
#map canvas{display:block}
#map div{position:absolute;box-sizing:border-box;border:1.5px solid #e0004d;background:#e0004d14;pointer-events:none}
#panel:empty,#label:empty,#list:empty{display:none}
.n{cursor:pointer}
.n.hit rect{stroke:#e0004d;stroke-width:3}
.n.pair rect{stroke:#0a8f3c;stroke-width:3}
.n.chosen rect{stroke:#111418;stroke-width:2.5}
.e.near{stroke:#e0660c;stroke-width:2.4}
.w{fill:none;stroke:#000000;stroke-opacity:0;stroke-width:9}
)";

constexpr std::string_view kScript = R"(
'use strict';
const view = document.getElementById('view'), svg = view.querySelector('svg'), panel = document.getElementById('panel');
const box = document.getElementById('search'), found = document.getElementById('found'), list = document.getElementById('list');
const label = document.getElementById('label'), map = document.getElementById('map');
const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
const readable = 0.85, shown = 40;  // the least scale of the first view; rows of the list of hits
let scale = 1, x = 0, y = 0, chosen = null, hits = [], at = -1;
const texts = new Map(), lines = new Map();
for (const g of svg.querySelectorAll('.n')) {
  const title = g.querySelector('title');
  texts.set(g, title.textContent);
  title.remove();
}
for (const e of svg.querySelectorAll('.e[data-f]')) {
  const title = e.querySelector('title'), wide = e.cloneNode(false);
  wide.setAttribute('class', 'w');  // thin lines are hard to hit
  wide.removeAttribute('marker-end');
  e.after(wide);
  lines.set(wide, title.textContent);
  title.remove();
}
function show() {
  svg.style.transform = `translate(${x}px,${y}px) scale(${scale})`;
  label.textContent = '';
  frame();
}
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
// The whole width where its text can be read; else the beginning, with the first node in sight.
function begin() {
  scale = Math.min(1, view.clientWidth / width);
  if (scale < readable) scale = 1;
  x = Math.max(0, (view.clientWidth - width * scale) / 2);
  y = 0;
  show();
  const first = svg.querySelector('.n');
  if (!first) return;
  const r = first.getBoundingClientRect(), v = view.getBoundingClientRect();
  if (r.right > v.right - 20) x -= r.left + r.width / 2 - v.left - v.width / 2;
  show();
}
// A small drawing of the whole, when only a part is in sight; the frame is what is.
const small = Math.min(220 / width, 180 / height), canvas = map.querySelector('canvas'), part = map.querySelector('div');
function paint() {
  const w = Math.max(24, Math.round(width * small)), h = Math.max(24, Math.round(height * small)), ratio = window.devicePixelRatio || 1;
  canvas.width = w * ratio;
  canvas.height = h * ratio;
  canvas.style.width = w + 'px';
  canvas.style.height = h + 'px';
  const pen = canvas.getContext('2d'), v = svg.getBoundingClientRect(), f = small * ratio / scale;
  for (const g of texts.keys()) {
    const r = g.getBoundingClientRect();
    pen.fillStyle = g.querySelector('rect').getAttribute('stroke');
    pen.fillRect((r.left - v.left) * f, (r.top - v.top) * f, Math.max(1, r.width * f), Math.max(1, r.height * f));
  }
}
function frame() {
  const all = width * scale <= view.clientWidth + 1 && height * scale <= view.clientHeight + 1;
  map.style.display = all ? 'none' : 'block';
  const f = small / scale;
  part.style.left = -x * f + 'px';
  part.style.top = -y * f + 'px';
  part.style.width = view.clientWidth * f + 'px';
  part.style.height = view.clientHeight * f + 'px';
}
function travel(e) {
  const r = map.getBoundingClientRect();
  x = view.clientWidth / 2 - (e.clientX - r.left) / small * scale;
  y = view.clientHeight / 2 - (e.clientY - r.top) / small * scale;
  show();
}
map.addEventListener('pointerdown', e => { map.setPointerCapture(e.pointerId); travel(e); });
map.addEventListener('pointermove', e => { if (e.buttons) travel(e); });
// Whole names: of a node when the box cuts them or is too small to read, of what flows in a line or under a type.
function nameOf(target) {
  const g = target.closest('.n');
  if (g) {
    const whole = scale >= readable && g.textContent.includes(g.dataset.name);
    return whole ? '' : g.dataset.name === g.dataset.op ? g.dataset.op : `${g.dataset.op}  ${g.dataset.name}`;
  }
  if (lines.has(target)) return lines.get(target);
  if (!target.matches('.y')) return '';
  let node = target;
  while (node && !node.matches('.n')) node = node.previousElementSibling;
  return node ? [...new Set([...svg.querySelectorAll(`.w[data-f="${node.id}"]`)].map(e => lines.get(e)))].join('\n') : '';
}
function hover(e) {
  label.textContent = from ? '' : nameOf(e.target);
  if (!label.textContent) return;
  const v = view.getBoundingClientRect(), r = label.getBoundingClientRect();
  label.style.left = Math.max(4, Math.min(e.clientX - v.left + 14, v.width - r.width - 4)) + 'px';
  label.style.top = (e.clientY - v.top + 20 + r.height > v.height ? e.clientY - v.top - r.height - 10 : e.clientY - v.top + 20) + 'px';
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
  if (scale < readable) {
    const factor = 1 / scale;
    zoom(factor, r.x + r.width / 2 - v.x, r.y + r.height / 2 - v.y);
    return centre(g);
  }
  x += v.x + v.width / 2 - (r.x + r.width / 2);
  y += v.y + v.height / 2 - (r.y + r.height / 2);
  show();
}
// How well a node fits: its own name first, then layers that are in it, its operator, parts of its name, the rest.
function fitness(g, query) {
  const name = g.dataset.name.toLowerCase(), text = texts.get(g).toLowerCase();
  if (name === query) return 0;
  if (text.includes(`layer of the file: ${query} (`)) return 1;
  if (g.dataset.op.toLowerCase() === query) return 2;
  return name.startsWith(query) ? 3 : name.includes(query) ? 4 : 5;
}
function look() {
  const query = box.value.trim().toLowerCase(), words = query.split(/\s+/).filter(w => w);
  for (const g of hits) g.classList.remove('hit');
  hits = words.length ? [...texts.keys()].filter(g => {
    const all = (g.dataset.op + ' ' + g.dataset.name + ' ' + texts.get(g)).toLowerCase();
    return words.every(w => all.includes(w));
  }) : [];
  const order = new Map(hits.map(g => [g, fitness(g, query)]));
  hits.sort((a, b) => order.get(a) - order.get(b));  // keeps the order of the drawing among equals
  for (const g of hits) g.classList.add('hit');
  at = -1;
  found.textContent = words.length ? String(hits.length) : '';
  list.replaceChildren(...hits.slice(0, shown).map((g, i) => {
    const row = document.createElement('div'), op = document.createElement('i');
    row.textContent = g.dataset.name;
    op.textContent = g.dataset.op === g.dataset.name ? '' : g.dataset.op;
    row.append(op);
    row.onclick = () => visit(i);
    return row;
  }));
}
function visit(i) {
  at = i;
  found.textContent = `${at + 1} of ${hits.length}`;
  [...list.children].forEach((row, r) => row.classList.toggle('now', r === at));
  if (list.children[at]) list.children[at].scrollIntoView({block: 'nearest'});
  choose(hits[at]);
  centre(hits[at]);
}
function next(step) {
  if (hits.length) visit((at + step + hits.length + (at < 0 && step < 0 ? 1 : 0)) % hits.length);
}
view.addEventListener('wheel', e => {
  e.preventDefault();
  const v = view.getBoundingClientRect();
  if (e.ctrlKey || !e.shiftKey) zoom(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0015)), e.clientX - v.x, e.clientY - v.y);
  else { x -= e.deltaY; show(); }
}, {passive: false});
let from = null;
view.addEventListener('pointerdown', e => { from = {x: e.clientX - x, y: e.clientY - y, sx: e.clientX, sy: e.clientY}; });
view.addEventListener('pointermove', hover);
view.addEventListener('pointerleave', () => { label.textContent = ''; });
window.addEventListener('resize', frame);
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
for (const row of document.querySelectorAll('#top div'))
  row.onclick = () => { const g = document.getElementById(row.dataset.n); choose(g); centre(g); };
document.getElementById('in').onclick = () => zoom(1.25, view.clientWidth / 2, view.clientHeight / 2);
document.getElementById('out').onclick = () => zoom(0.8, view.clientWidth / 2, view.clientHeight / 2);
document.getElementById('fit').onclick = fit;
begin();
paint();
)";

}  // namespace

namespace {

/// The slowest nodes, each with a bar of its time beside that of the slowest one; empty without times.
std::string top_ten(const std::vector<Drawing>& drawings) {
  constexpr std::size_t kTen = 10;
  std::string out;
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const auto& nodes = drawings[i].nodes;
    std::vector<std::size_t> timed;
    for (std::size_t n = 0; n < nodes.size(); ++n)
      if (nodes[n].heat > 0) timed.push_back(n);
    std::stable_sort(timed.begin(), timed.end(),
                     [&](auto a, auto b) { return nodes[a].heat > nodes[b].heat; });
    timed.resize(std::min(timed.size(), kTen));
    for (const auto n : timed)
      out += fmt::format(
          "<div data-n=\"{}{}\" title=\"{}\"><b style=\"width:{:.1f}%\"></b><i>{}</i>{}</div>\n",
          static_cast<char>('n' + i), n, escape_xml(nodes[n].title), 100 * std::min(nodes[n].heat, 1.0),
          escape_xml(nodes[n].corner), escape_xml(nodes[n].name.empty() ? nodes[n].title : nodes[n].name));
  }
  return out.empty()
             ? ""
             : fmt::format("<details id=\"top\" open><summary>Slowest steps</summary>\n{}</details>\n", out);
}

}  // namespace

std::string to_html(const std::vector<Drawing>& drawings, const PageOptions& options) {
  auto svg = to_svg(drawings, options);
  svg.erase(0, svg.find("<svg"));  // without the XML declaration
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
      "charset=\"utf-8\">\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n<div id=\"view\">\n{}</div>\n"
      "<div id=\"bar\"><span id=\"found\"></span><input id=\"search\" type=\"search\" placeholder=\"search ( "
      "/ ), Enter: next\" "
      "aria-label=\"search\"><button id=\"in\">+</button><button id=\"out\">&#8722;</button>"
      "<button id=\"fit\">fit</button></div>\n<div id=\"list\"></div>\n"
      "<div id=\"map\"><canvas></canvas><div></div></div>\n<pre id=\"panel\"></pre>\n"
      "<div id=\"label\"></div>\n{}<script>{}</script>\n</body>\n</html>\n",
      escape_xml(drawings[0].title), kPage, svg, top_ten(drawings), kScript);
}

}  // namespace lamina
