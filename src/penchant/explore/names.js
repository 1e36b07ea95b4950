// What bokeh draws inside of shadows gets a name and a role for those who do not see it.
const called = (element, name, role) => {
  element.setAttribute("aria-label", name)
  if (role !== undefined) element.setAttribute("role", role)
}
const visit = (node, figure) => {
  if (node.tagName === "FIGURE") figure = node.getAttribute("aria-label")
  if (node.shadowRoot != null) {
    const title = node.shadowRoot.querySelector(".bk-slider-title")
    const handle = node.shadowRoot.querySelector(".noUi-handle")
    if (title != null && handle != null)
      called(handle, title.firstChild.textContent.replace(/:\s*$/, ""))
    const select = node.shadowRoot.querySelector("select")
    if (select != null) called(select, node.shadowRoot.querySelector("label").textContent.trim())
    const file = node.shadowRoot.querySelector("input[type=file]")
    if (file != null) called(file, node.shadowRoot.querySelector("label").textContent.trim())
    for (const plot of node.shadowRoot.querySelectorAll(".bk-events")) called(plot, `plot: ${figure}`, "img")
    for (const child of node.shadowRoot.children) visit(child, figure)
  }
  if (node.title && node.tabIndex >= 0) called(node, `${node.title}: ${figure}`, "button")
  for (const child of node.children) visit(child, figure)
}
visit(document.body, "")
