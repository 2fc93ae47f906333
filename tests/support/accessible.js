// What axe would look at first, in a page of code: it returns one line for each fault. Used by browsing.py.
() => {
  const faults = [];
  const name = (e) => (e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") || "").split(" ")
    .map((id) => document.getElementById(id)?.textContent ?? "").join("") || e.labels?.[0]?.textContent ||
    e.textContent || e.querySelector?.("img")?.alt || e.title || "").trim();
  const visible = (e) => e.checkVisibility({checkOpacity: false, checkVisibilityCSS: true}) && e.getClientRects().length;
  const told = (e) => `${e.tagName.toLowerCase()}.${e.getAttribute("class") ?? ""} ${(e.textContent || "").trim().slice(0, 40)}`;
  if (!document.documentElement.lang) faults.push("no language");
  if (!document.title.trim()) faults.push("no title");
  for (const [what, count] of [["main", 1], ["h1", 1], ["body > header", 1], ["nav", null], ["body > footer", 1]]) {
    const there = document.querySelectorAll(what).length;
    if (count === null ? !there : there !== count) faults.push(`${there} × ${what}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) faults.push(`id ${id} twice`);
  for (const e of document.querySelectorAll("a[href], button, select, textarea, input:not([type=hidden]), summary, [role=group], nav, aside, svg[role=img], progress, dialog"))
    if (!name(e)) faults.push(`no name: ${told(e)}`);
  for (const e of document.querySelectorAll("img:not([alt])")) faults.push(`no alt: ${told(e)}`);
  for (const e of document.querySelectorAll("[tabindex]")) if (e.tabIndex > 0) faults.push(`tabindex: ${told(e)}`);
  for (const e of document.querySelectorAll("[aria-labelledby]"))
    for (const id of e.getAttribute("aria-labelledby").split(" ")) if (!document.getElementById(id)) faults.push(`no ${id}`);
  for (const e of document.querySelectorAll("th:not([scope])")) faults.push(`no scope: ${told(e)}`);
  for (const e of document.querySelectorAll("ul > *, ol > *")) if (e.tagName !== "LI") faults.push(`in a list: ${told(e)}`);
  let level = 0;
  for (const e of document.querySelectorAll("main :is(h1, h2, h3, h4)")) {
    if (+e.tagName[1] > level + 1) faults.push(`heading skips a level: ${told(e)}`);
    level = +e.tagName[1];
  }
  for (const e of document.querySelectorAll("main *")) {
    const cut = e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(e).overflowX);
    if (cut && visible(e) && e.tabIndex < 0) faults.push(`scrolls but takes no focus: ${told(e)}`);
  }
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
  const ground = (e) => { for (; e; e = e.parentElement) {
    const own = e.closest("svg") ? null : rgba(getComputedStyle(e).backgroundColor);
    if (own && own[3] > .5) return own; } return rgba(getComputedStyle(document.documentElement).backgroundColor); };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const known = new Set();
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !visible(e) || e.closest(".unseen, .skip, svg .box.chosen")) continue;
    const style = getComputedStyle(e);
    const ink = rgba(e.closest("svg") ? style.fill : style.color), paper = ground(e);
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700);
    const ratio = (a + .05) / (b + .05);
    const key = `${ink} ${paper}`;
    if (ratio < (large ? 3 : 4.5) && !known.has(key)) { known.add(key); faults.push(`contrast ${ratio.toFixed(2)}: ${told(e)}`); }
  }
  return faults;
}
