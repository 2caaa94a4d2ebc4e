// Boxes that scroll sideways can be reached and scrolled from the keyboard, and say what they are.
function reachable() {
  const boxes = ".pst-scrollable-table-container, .cell_output .text_html, div.highlight pre, .bd-article div.math";
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth + 1) {
      box.tabIndex = 0;
      if (box.querySelector("table")) {
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", "Table, scrolls sideways");
      }
    } else if (box.getAttribute("role") !== "region") {
      box.removeAttribute("tabindex");
    }
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
