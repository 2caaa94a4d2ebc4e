// What the theme leaves without a name or with a role that does not hold, for those who listen to the page.
function named() {
  for (const toggle of document.querySelectorAll(".bd-sidebar summary:not([aria-label])")) {
    const page = toggle.closest("li")?.querySelector("a")?.textContent.trim() ?? "this part";
    toggle.setAttribute("aria-label", `Pages below ${page}`);
  }
  for (const entry of document.querySelectorAll(".citation-list, .citation[role]")) entry.removeAttribute("role");
}
addEventListener("DOMContentLoaded", named);

// On a narrow screen a wide figure keeps a size at which its words can be read, in a box that scrolls.
function boxed() {
  for (const image of document.querySelectorAll(".bd-article figure img, .bd-article .cell_output img")) {
    const held = image.closest("a.image-reference") ?? image; // Sphinx links a picture that is given a width
    if (held.closest(".figure-scroll, a:not(.image-reference)")) continue;
    const box = document.createElement("div");
    box.className = "figure-scroll";
    held.replaceWith(box);
    box.append(held);
  }
}
addEventListener("DOMContentLoaded", boxed);

// Boxes that scroll sideways can be reached and scrolled from the keyboard, and say what they are.
function reachable() {
  let tables = 0;
  for (const image of document.querySelectorAll(".figure-scroll img"))
    image.closest(".figure-scroll").classList.toggle("wide", image.naturalWidth > (image.src.endsWith(".svg") ? 500 : 800));
  const boxes = ".figure-scroll, .pst-scrollable-table-container, .cell_output .text_html, div.highlight pre, .bd-article div.math";
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth + 1) {
      box.tabIndex = 0;
      if (box.querySelector("table")) {
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", `Table ${++tables}, scrolls sideways`);
      } else if (box.matches(".figure-scroll")) {
        const number = box.closest("figure")?.querySelector(".caption-number")?.textContent.trim() ?? "Figure";
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", `${number}, scrolls sideways`);
      }
    } else if (box.matches(".figure-scroll") || box.getAttribute("role") !== "region") {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    }
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);

// A box that hides something to its right fades there, until it is scrolled to its end.
function fading() {
  for (const box of document.querySelectorAll(".table-scroll, .pst-scrollable-table-container, .figure-scroll")) {
    const more = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    const watch = new ResizeObserver(more);
    for (const one of [box, ...box.children]) watch.observe(one);
    box.addEventListener("scroll", more, { passive: true });
  }
}
addEventListener("load", fading);
