// What the theme leaves without a name or with a role that does not hold, for those who listen to the page.
function named() {
  for (const toggle of document.querySelectorAll(".bd-sidebar summary:not([aria-label])")) {
    const page = toggle.closest("li")?.querySelector("a")?.textContent.trim() ?? "this part";
    toggle.setAttribute("aria-label", `Pages below ${page}`);
  }
  for (const entry of document.querySelectorAll(".citation-list, .citation[role]")) entry.removeAttribute("role");
}
addEventListener("DOMContentLoaded", named);

// Boxes that scroll sideways can be reached and scrolled from the keyboard, and say what they are.
function reachable() {
  let tables = 0;
  const boxes = ".pst-scrollable-table-container, .cell_output .text_html, div.highlight pre, .bd-article div.math";
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth + 1) {
      box.tabIndex = 0;
      if (box.querySelector("table")) {
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", `Table ${++tables}, scrolls sideways`);
      }
    } else if (box.getAttribute("role") !== "region") {
      box.removeAttribute("tabindex");
    }
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
