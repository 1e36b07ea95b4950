// Filters claims by status and text, and opens the one that the address names.
// No "less than" and no "and" sign in here: the page is well-formed XML, too.
(() => {
  "use strict";
  const one = (id) => document.getElementById(id);
  const claims = Array.from(document.querySelectorAll(".claim"));
  const sources = Array.from(document.querySelectorAll(".source"));
  const tiles = Array.from(document.querySelectorAll(".tiles a"));
  const search = one("search");
  const texts = new Map(claims.map((claim) => [claim, (claim.textContent + claim.dataset.text).toLowerCase()]));
  let status = "every";

  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const claim of claims) {
      const fits = status === "every" ? true : claim.dataset.status === status;
      claim.hidden = fits ? !words.every((word) => texts.get(claim).includes(word)) : true;
    }
    for (const source of sources) {
      source.hidden = !source.querySelector(".claim:not([hidden])");
    }
    one("nothing").hidden = claims.some((claim) => !claim.hidden);
    for (const tile of tiles) {
      tile.toggleAttribute("aria-current", tile.hash === "#only-" + status);
    }
  };

  const follow = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (id.startsWith("only-")) {
      status = id.slice(5);
      apply();
      return;
    }
    const target = id ? one(id) : null;
    if (!target) return;
    const claim = target.closest(".claim");
    if (target.closest("[hidden]")) {
      status = "every";
      search.value = "";
      apply();
    }
    if (claim) claim.open = true;
    if (target.id === "corrections") target.open = true;
    (claim ? claim : target).scrollIntoView({ behavior: "instant" });
  };

  const all = (open) => () => claims.forEach((claim) => {
    if (!claim.hidden) claim.open = open;
  });
  // a browser opens no data address from a link, but it saves one
  for (const link of document.querySelectorAll(".alone")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const href = document.querySelector(link.hash + " img").currentSrc;
      Object.assign(document.createElement("a"), { href, download: link.dataset.name }).click();
    });
  }
  one("tools").hidden = false;
  one("open").addEventListener("click", all(true));
  one("close").addEventListener("click", all(false));
  search.addEventListener("input", apply);
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", all(true));
  apply();
  addEventListener("load", () => setTimeout(follow)); // after the browser's own way to the place
})();
