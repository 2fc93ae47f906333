// Apply the stored theme before the page is drawn.
"use strict";
try {
  const chosen = localStorage.getItem("dowse-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (_blocked) {
  // Without storage the theme of the system is used.
}
