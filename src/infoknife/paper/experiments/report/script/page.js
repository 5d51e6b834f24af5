// The page: light and dark, filters, and all charts.

// Light and dark: what the system says, until the button is pressed.

function setUpTheme() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => button.setAttribute("aria-pressed", String(isDark()));
  try {
    const kept = localStorage.getItem("infoknife-theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch {} // a page from a file may have no storage
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("infoknife-theme", root.dataset.theme);
    } catch {} // then the choice lasts as long as the page
    tell();
  });
  system.addEventListener("change", tell);
  tell();
}

function setUpFilters() {
  for (const button of document.querySelectorAll(".filter")) {
    button.addEventListener("click", () => {
      const off = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!off));
      for (const item of document.querySelectorAll(`.verdicts .${button.dataset.kind}`)) item.hidden = off;
    });
  }
}

setUpTheme();
setUpFilters();
const charts = JSON.parse(document.getElementById("charts").textContent);
for (const figure of document.querySelectorAll("figure.chart")) new Chart(figure, charts[figure.dataset.chart]);
