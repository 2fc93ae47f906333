// Enhancements of the page. Every action is also a link or a form that works without JavaScript.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const still = matchMedia("(prefers-reduced-motion: reduce)");
const WAIT_MS = 130; // between the last key and the query
const REFRESH_MS = 3000;

// --- parts of the page ------------------------------------------------------------------------------

function announce(text) {
  $("#announcement").textContent = text;
}

function unhide(root) {
  for (const each of all("button.copy[hidden]", root)) each.hidden = false;
}

// Our own server escapes the markup, and the policy of the page runs no script in it.
function parsed(markup) {
  return new DOMParser().parseFromString(markup, "text/html").body.childNodes;
}

function places(root) {
  return new Map(all(".group", root).map((each) => [each.dataset.key, each.getBoundingClientRect().top]));
}

function replace(id, markup) {
  const part = document.getElementById(id);
  const open = all(".hit details[open]", part).map((each) => [each.closest(".hit").dataset.id, each.className]);
  const held = document.activeElement?.closest?.(".hit")?.dataset.id;
  const before = places(part);
  part.replaceChildren(...parsed(markup));
  unhide(part);
  for (const [hit, kind] of open) $(`#hit-${hit} details.${kind}`)?.setAttribute("open", "");
  if (held) $(`#hit-${held} a.open`)?.focus({ preventScroll: true });
  if (!still.matches) animate(part, before);
}

// Move documents smoothly from their old position to the new one.
function animate(part, before) {
  for (const each of all(".group", part)) {
    const was = before.get(each.dataset.key);
    const now = each.getBoundingClientRect().top;
    if (was !== undefined && Math.abs(was - now) > 2) {
      each.animate([{ transform: `translateY(${was - now}px)` }, { transform: "none" }], { duration: 240, easing: "ease-out" });
    }
  }
}

// --- search -----------------------------------------------------------------------------------------

const form = $("#search[data-live]");
let stream = null;
let waiting = 0;

function state() {
  return new URLSearchParams(location.search);
}

function show(parameters, { push = false } = {}) {
  const text = parameters.toString();
  const place = text ? `/?${text}` : "/";
  if (place !== location.pathname + location.search) history[push ? "pushState" : "replaceState"](null, "", place);
  document.title = parameters.get("q") ? `${parameters.get("q")} · Dowse` : "Dowse";
  $("#json-link").href = `/index.json${text ? `?${text}` : ""}`;
}

function search(parameters) {
  stream?.close();
  stream = null;
  clearTimeout(waiting);
  if (!parameters.get("q")) return;
  const results = $("#results");
  results.setAttribute("aria-busy", "true");
  const source = new EventSource(`/search/events?${parameters}`);
  stream = source;
  const update = (event) => {
    const { parts } = JSON.parse(event.data);
    $("#page").className = "searched";
    for (const [id, markup] of Object.entries(parts)) replace(id, markup);
  };
  const end = () => {
    source.close();
    if (stream !== source) return;
    stream = null;
    results.removeAttribute("aria-busy");
    announce($("#summary")?.innerText ?? $(".problem")?.innerText ?? "");
    document.dispatchEvent(new CustomEvent("dowse:settled"));
  };
  source.addEventListener("first", update);
  source.addEventListener("order", update);
  for (const name of ["done", "problem"]) {
    source.addEventListener(name, (event) => {
      update(event);
      end();
    });
  }
  source.onerror = () => {
    const note = document.createElement("p");
    note.className = "notice";
    note.textContent = "The server does not respond. Try again in a moment.";
    results.prepend(note);
    end();
  };
}

function fill(parameters) {
  for (const each of form.elements) {
    if (!each.name || each.type === "hidden" || each === document.activeElement) continue;
    each.value = parameters.get(each.name) ?? "";
  }
  for (const each of all("input[type=hidden]", form)) each.remove();
}

function changed(control) {
  const parameters = state();
  for (const name of ["cursor", "why", "target"]) parameters.delete(name);
  if (control.value.trim()) parameters.set(control.name, control.value.trim());
  else parameters.delete(control.name);
  return parameters;
}

function begin() {
  fill(state());
  form.addEventListener("input", (event) => {
    const control = event.target;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const parameters = changed(control);
      show(parameters);
      search(parameters);
    }, control.id === "q" ? WAIT_MS : 3 * WAIT_MS);
  });
  form.addEventListener("submit", (event) => {
    const parameters = changed(form.elements.q);
    if (!parameters.get("q")) return;
    event.preventDefault();
    show(parameters, { push: true });
    search(parameters);
  });
  addEventListener("popstate", () => {
    if (location.pathname !== "/") return;
    if (!state().get("q")) return location.reload();
    document.activeElement?.blur?.();
    fill(state());
    show(state());
    search(state());
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-search]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const parameters = new URL(link.href).searchParams;
    show(parameters, { push: true });
    fill(parameters);
    search(parameters);
  });
}

// The URL includes the open score trace.
document.addEventListener("toggle", (event) => {
  const panel = event.target;
  if (!panel.matches?.("details.why") || !form) return;
  const parameters = state();
  const own = panel.closest(".hit").dataset.id;
  if (panel.open) parameters.set("why", own);
  else if (parameters.get("why") === own) parameters.delete("why");
  show(parameters);
}, true);

// --- copy, feedback ---------------------------------------------------------------------------------

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch (_refused) {
    announce("The browser does not allow copying.");
    return;
  }
  const before = button.textContent;
  button.textContent = "Copied";
  announce("Copied");
  setTimeout(() => { button.textContent = before; }, 1200);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.copy");
  if (button) copy(button);
});

document.addEventListener("submit", async (event) => {
  const judged = event.target;
  if (!judged.matches?.("form.thumbs")) return;
  event.preventDefault();
  const sent = new URLSearchParams(new FormData(judged, event.submitter));
  const answer = await fetch(judged.action, { method: "POST", body: sent, redirect: "manual" });
  const kept = answer.type === "opaqueredirect" || answer.ok;
  for (const each of all("button", judged)) each.setAttribute("aria-pressed", String(kept && each === event.submitter));
  announce(kept ? "Judgment stored" : "The server did not store the judgment");
});

// --- keys -------------------------------------------------------------------------------------------

function step(by) {
  const hits = all(".hit a.open");
  if (!hits.length) return;
  const at = hits.findIndex((each) => each.closest(".hit").contains(document.activeElement));
  const next = hits[at < 0 ? (by > 0 ? 0 : hits.length - 1) : Math.min(Math.max(at + by, 0), hits.length - 1)];
  next.focus();
  next.closest(".hit").scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
}

function held() {
  return document.activeElement?.closest?.(".hit");
}

const KEYS = {
  "/": () => { $("#q")?.focus(); $("#q")?.select(); },
  j: () => step(1),
  k: () => step(-1),
  w: () => { const panel = held() && $("details.why", held()); if (panel) panel.open = !panel.open; },
  c: () => { const button = held() && $("button.copy", held()); if (button) copy(button); },
  "?": () => $("#keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.matches?.("input, select, textarea");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing || $("#keys").open || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

$("#keys-button").hidden = false;
$("#keys-button").addEventListener("click", () => $("#keys").showModal());

// --- light and dark ---------------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];

function themed(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  $("#theme-name").textContent = name;
  try {
    localStorage.setItem("dowse-theme", name);
  } catch (_blocked) {
    // Without storage the choice holds for this page only.
  }
}

$("#theme-button").hidden = false;
$("#theme-name").textContent = document.documentElement.dataset.theme ?? "auto";
$("#theme-button").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "auto";
  themed(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});

// --- service map: highlight the calls of a box --------------------------------------------------------

const map = $("#map");
for (const box of map ? all(".box", map) : []) {
  const name = box.dataset.name;
  const calls = all(".arrow", map).filter((each) => each.dataset.source === name || each.dataset.target === name);
  const light = (on) => { for (const each of calls) each.classList.toggle("near", on); };
  for (const kind of ["mouseenter", "focus"]) box.addEventListener(kind, () => light(true));
  for (const kind of ["mouseleave", "blur"]) box.addEventListener(kind, () => light(false));
}

// --- jobs -------------------------------------------------------------------------------------------

async function refresh() {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
  if (!next) return;
  $("#live").replaceWith(document.adoptNode(next));
  follow();
}

function follow() {
  for (const card of all("[data-live-job]")) {
    const source = new EventSource(`/v1/jobs/${card.dataset.job}/events`);
    source.addEventListener("job", (event) => {
      const job = JSON.parse(event.data);
      $("[data-part=state]", card).textContent = job.state;
      if (job.progress) {
        const { phase, done, total } = job.progress;
        const bar = $("[data-part=bar]", card);
        if (total) { bar.max = total; bar.value = done; } else bar.removeAttribute("value");
        $("[data-part=progress]", card).textContent = `${phase} ${done}${total ? ` of ${total}` : ""}`;
      }
      if (["done", "failed", "stopped"].includes(job.state)) {
        source.close();
        announce(`Job ${job.state}`);
        refresh();
      }
    });
    source.onerror = () => source.close();
  }
}

if ($("#live")) {
  follow();
  if ($("[data-refresh]")) {
    setInterval(() => { if (!document.hidden && !$("[data-live-job]")) refresh(); }, REFRESH_MS);
  }
}

unhide(document);
if (form) begin();
