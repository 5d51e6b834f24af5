"use strict";
// What scrolls sideways can be reached with the Tab key, so that it can be scrolled with the arrow keys.
function reachScrollable() {
  for (const box of document.querySelectorAll("pre > code, math[display=block], .md-typeset__scrollwrap, .doc-contents")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

window.addEventListener("load", reachScrollable);
window.addEventListener("resize", reachScrollable);
