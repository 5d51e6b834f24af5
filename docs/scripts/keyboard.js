"use strict";
// What scrolls sideways can be reached with the Tab key, and then scrolled with the arrow keys.
const SCROLLING = "pre > code, math[display=block], .md-typeset__scrollwrap, .doc-contents";

function reachScrollable() {
  for (const box of document.querySelectorAll(SCROLLING)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

// Each block of code has its own landmark with a copy button; a screen reader has to tell them apart.
function nameCopyButtons() {
  document.querySelectorAll(".md-code__nav").forEach((nav, index) => {
    nav.setAttribute("aria-label", `Code block ${index + 1}`);
  });
}

window.addEventListener("load", reachScrollable);
window.addEventListener("load", nameCopyButtons);
window.addEventListener("resize", reachScrollable);
