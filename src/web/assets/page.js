// Keys, and the progress of a run. Every page works without this.
"use strict";
(() => {
  const keys = document.querySelector(".keys");
  if (keys) keys.hidden = false;

  const rows = [...document.querySelectorAll("[data-row], .entries > li, .hits > li, .log > li")];
  let at = -1;
  const select = (to) => {
    if (!rows.length) return;
    rows[at]?.classList.remove("current");
    at = Math.max(0, Math.min(rows.length - 1, to));
    rows[at].classList.add("current");
    rows[at].scrollIntoView({ block: "nearest" });
    rows[at].querySelector("a, input, summary")?.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input:not([type=checkbox]), textarea, select");
    if (event.key === "Escape" && field) field.blur();
    if (field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j" || event.key === "k") {
      select(at + (event.key === "j" ? 1 : -1));
    } else if (event.key === "x") {
      rows[at]?.querySelector("input[type=checkbox]")?.click();
    } else if (event.key === "a" || event.key === "d") {
      const verb = event.key === "a" ? "accept" : "refuse";
      const button = document.querySelector(`button[name=do][value=${verb}]`);
      if (button && document.querySelector("input[name=id]:checked")) button.click();
      return;
    } else if (event.key === "/" && document.querySelector("[data-search]")) {
      document.querySelector("[data-search]").focus();
    } else {
      const link = [...document.querySelectorAll("nav [data-key]")].find((it) => it.dataset.key === event.key);
      if (!link) return;
      link.click();
    }
    event.preventDefault();
  });

  const all = document.querySelector("[data-all]");
  if (all) {
    all.hidden = false;
    all.setAttribute("aria-label", "Select all");
    all.after(" all");
    all.addEventListener("change", () => {
      for (const box of document.querySelectorAll(`input[name=${all.dataset.all}]`)) box.checked = all.checked;
    });
  }

  const shown = document.querySelectorAll("[data-run]");
  if (shown.length && document.body.dataset.events) {
    let ran = [...shown].some((it) => it.dataset.run);
    new EventSource(document.body.dataset.events).addEventListener("run", (event) => {
      for (const it of shown) {
        it.dataset.run = event.data;
        it.textContent = event.data || (it.classList.contains("running") ? "Nothing runs now." : "");
      }
      // The list has a new run now.
      if (ran && !event.data) location.reload();
      ran = Boolean(event.data);
    });
  }
})();
