// Keys, and the progress of a run. Every page works without this.
"use strict";
(() => {
  const keys = document.querySelector(".keys");
  if (keys) keys.hidden = false;
  // Single keys are off until somebody wants them: they would be in the way of who speaks to a computer.
  const toggle = document.querySelector("input[name=keys]");
  if (toggle) {
    toggle.checked = localStorage.getItem("memoird-keys") === "on";
    toggle.addEventListener("change", () => localStorage.setItem("memoird-keys", toggle.checked ? "on" : "off"));
  }

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
    if (!toggle?.checked || field || event.ctrlKey || event.metaKey || event.altKey) return;
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
    let stream = null;
    // Browsers have few connections to one server, so a tab that nobody sees has none.
    const follow = () => {
      if (document.hidden) {
        stream?.close();
        stream = null;
      } else if (!stream) {
        stream = new EventSource(document.body.dataset.events);
        stream.addEventListener("run", (event) => show(event.data === "idle" ? "" : event.data));
      }
    };
    const show = (run) => {
      for (const it of shown) {
        it.dataset.run = run;
        it.textContent = run || (it.classList.contains("running") ? "Nothing runs now." : "");
      }
      // The list has a new run now.
      if (ran && !run) location.reload();
      ran = Boolean(run);
    };
    document.addEventListener("visibilitychange", follow);
    follow();
  }
})();
