// Before the page is drawn: the reader's own choice of light or dark, if there is one.
"use strict";
try {
  const chosen = localStorage.getItem("dowse-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (_blocked) {
  // Without storage the system's choice holds.
}
