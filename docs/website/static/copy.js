// A button on every block of code that copies it; without a script there is none.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div[class*=highlight-] pre")) {
    if (block.closest(".highlight-text")) continue; // what an example prints
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      const text = block.textContent;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const area = document.body.appendChild(document.createElement("textarea"));
        area.value = text; // a page from a file may not use the clipboard directly
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
    block.parentElement.append(button);
  }
});
