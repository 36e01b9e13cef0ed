"use strict";
// The page's own script: opens steps, and shows sampled rows. Data goes in as text, never as markup.
(() => {
  const byId = (id) => document.getElementById(id);
  const make = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined && text !== null) made.textContent = text;
    return made;
  };

  const steps = [...document.querySelectorAll("details.step")];
  byId("open-all").addEventListener("click", () => steps.forEach((step) => { step.open = true; }));
  byId("close-all").addEventListener("click", () => steps.forEach((step) => { step.open = false; }));
  const openTarget = () => {
    const target = steps.find((step) => `#${step.id}` === location.hash);
    if (!target) return;
    target.open = true;
    target.querySelector("summary").focus({ preventScroll: true });
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", openTarget);
  openTarget();
  window.addEventListener("beforeprint", () => steps.forEach((step) => { step.open = true; }));

  const viewer = byId("viewer");
  if (!viewer) return;
  const data = JSON.parse(byId("samples-data").textContent);
  const stepOf = new Map(data.steps.map((step) => [step.name, step]));
  const words = {
    failed: "failed", unreadable: "no row", rejected: "rejected", split: "split", gone: "gone",
    not_made: "not made yet", not_read: "not read", kept: "kept to the end",
  };
  let shown = data.rows;
  let current = 0;
  let tab = "life";

  const ending = byId("ending");
  const find = byId("find");
  const choice = byId("row");
  ending.append(new Option("all rows", ""));
  for (const kind of Object.keys(words)) {
    const count = data.rows.filter((row) => row.ending === kind).length;
    if (count) ending.append(new Option(`${words[kind]} (${count})`, kind));
  }

  const label = (row) => {
    const where = row.at ? ` in ${row.at}` : "";
    return `${row.id}: ${words[row.ending]}${where}${row.why ? ` (${row.why})` : ""}`;
  };
  const filter = () => {
    const wanted = find.value.toLowerCase();
    shown = data.rows.filter((row) => (!ending.value || row.ending === ending.value)
      && (!wanted || JSON.stringify(row).toLowerCase().includes(wanted)));
    current = 0;
    choice.replaceChildren(...shown.map((row, place) => new Option(label(row), place)));
    byId("count").textContent = `${shown.length} of ${data.rows.length} rows`;
    show();
  };

  // Both texts as nodes, with the words that only one of them has marked.
  const WORDS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{M}\p{N}]+|\s+|[^]/gu;
  const MOST_CELLS = 4_000_000;
  const marked = (before, after) => {
    if (before === null || after === null) return [[before ?? ""], [after ?? ""]];
    const a = before.match(WORDS) ?? [];
    const b = after.match(WORDS) ?? [];
    let start = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
    let end = 0;
    while (end < a.length - start && end < b.length - start
      && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
    const [inA, inB] = common(a.slice(start, a.length - end), b.slice(start, b.length - end));
    const pieces = (words, isCommon, tag) => {
      const flags = words.map((_, place) => place < start || place >= words.length - end || isCommon[place - start]);
      const found = [];
      for (let from = 0; from < words.length;) {
        let to = from;
        while (to < words.length && flags[to] === flags[from]) to += 1;
        const text = words.slice(from, to).join("");
        found.push(flags[from] ? text : make(tag, "", text));
        from = to;
      }
      return found;
    };
    return [pieces(a, inA, "del"), pieces(b, inB, "ins")];
  };
  // For each word of both lists, whether it is in their longest common part; none where that takes too long.
  const common = (a, b) => {
    const inA = new Array(a.length).fill(false);
    const inB = new Array(b.length).fill(false);
    const width = b.length + 1;
    if ((a.length + 1) * width > MOST_CELLS) return [inA, inB];
    const lengths = new Uint16Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i -= 1) {
      for (let j = b.length - 1; j >= 0; j -= 1) {
        lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
      }
    }
    for (let i = 0, j = 0; i < a.length && j < b.length;) {
      if (a[i] === b[j]) { inA[i] = true; inB[j] = true; i += 1; j += 1; }
      else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i += 1;
      else j += 1;
    }
    return [inA, inB];
  };
  const value = (content, isNull) => {
    const box = make("div", isNull ? "value null" : "value");
    box.dir = "auto";
    if (!isNull && content.reduce((size, piece) => size + (piece.textContent ?? piece).length, 0) > 300) box.tabIndex = 0;
    if (isNull) box.textContent = "null";
    else box.append(...content);
    if (!box.textContent) {
      box.className = "value null";
      box.textContent = "empty text";
    }
    return box;
  };
  const key = (name) => {
    const made = make("div", "key", name);
    made.dir = "auto";
    return made;
  };
  const cell = ([name, text]) => {
    const made = make("div", "cell");
    made.append(key(name), value([text ?? ""], text === null));
    return made;
  };
  const changed = ([name, before, after]) => {
    if (before === null) {
      const made = cell([name, after]);
      made.firstChild.textContent = `${name} (new)`;
      return made;
    }
    const made = make("div", "cell");
    const sides = make("div", "sides");
    const [old, now] = marked(before, after);
    for (const [title, content, isNull] of [["before", old, false], ["after", now, after === null]]) {
      const side = make("div");
      side.append(make("span", "side-label", title), value(content, isNull));
      sides.append(side);
    }
    made.append(key(name), sides);
    return made;
  };

  const told = (passage) => {
    if (passage.outcome === "rejected") return `rejected: ${passage.reason}`;
    if (passage.outcome === "failed") {
      return `failed: ${passage.error}${passage.attempts === null ? "" : `, attempts ${passage.attempts}`}`;
    }
    if (passage.outcome === "split") {
      const count = passage.children.length + passage.more_children;
      return `split into ${count} row${count === 1 ? "" : "s"}`;
    }
    if (passage.outcome === "kept") return passage.changes.length ? "changed" : "kept as it was";
    return words[passage.outcome];
  };
  const passageBlock = (passage) => {
    const step = stepOf.get(passage.step);
    const block = make("section", `passage ${passage.outcome}`);
    block.append(make("h4", "", `${step.number} ${step.name}: ${told(passage)}`));
    if (passage.id !== shown[current].id) block.append(make("p", "quiet", `as ${passage.id}`));
    if (passage.edits.length) {
      block.append(make("p", "quiet", "Put right by hand before the step read it:"), ...passage.edits.map(cell));
    }
    if (passage.message) block.append(cell(["message", passage.message]));
    block.append(...passage.details.map(cell), ...passage.changes.map(changed));
    if (passage.children.length) {
      const more = passage.more_children ? ` and ${passage.more_children} more` : "";
      block.append(make("p", "", `Its rows: ${passage.children.join(", ")}${more}`));
    }
    return block;
  };
  const began = (row) => {
    const block = make("section", `passage ${row.ending === "unreadable" ? "unreadable" : "kept"}`);
    const title = row.ending === "unreadable" ? "no row"
      : row.began === "source" ? "as it was read" : "as the step left it";
    block.append(make("h4", "", `${stepOf.get(row.began).number} ${row.began}: ${title}`), ...row.row.map(cell));
    return block;
  };

  // The whole row behind a step: the columns of the parents, with this step's changes.
  const stateAfter = (row, name) => {
    if (name === row.began) return new Map(row.row);
    const passage = row.passages.find((each) => each.step === name);
    const state = new Map();
    for (const parent of [...stepOf.get(name).parents].reverse()) {
      const known = parent === row.began || row.passages.some((each) => each.step === parent && each.outcome === "kept");
      if (known) for (const [column, text] of stateAfter(row, parent)) state.set(column, text);
    }
    for (const [column, text] of passage?.edits ?? []) state.set(column, text);
    for (const [column, , text] of passage?.changes ?? []) state.set(column, text);
    return state;
  };
  const stepPanel = (row, name) => {
    if (name === "source") return [began(row)];
    const passage = row.passages.find((each) => each.step === name);
    const touched = new Set([...passage.changes, ...passage.edits].map(([column]) => column));
    const rest = [...stateAfter(row, name)].filter(([column]) => !touched.has(column));
    const parts = [passageBlock(passage)];
    if (rest.length) parts.push(make("h4", "", "Columns as they were"), ...rest.map(cell));
    return parts;
  };

  const tabs = byId("row-tabs");
  const panel = byId("row-panel");
  const showTab = (focus) => {
    const row = shown[current];
    for (const each of tabs.children) {
      const selected = each.dataset.tab === tab;
      each.setAttribute("aria-selected", String(selected));
      each.tabIndex = selected ? 0 : -1;
      if (selected) panel.setAttribute("aria-labelledby", each.id);
      if (selected && focus) each.focus();
    }
    const later = row.passages.filter((each) => each.step !== row.began);
    panel.replaceChildren(...(tab === "life" ? [began(row), ...later.map(passageBlock)] : stepPanel(row, tab)));
  };
  const show = () => {
    const row = shown[current];
    byId("previous").disabled = current <= 0;
    byId("next").disabled = current >= shown.length - 1;
    byId("row-title").replaceChildren();
    byId("row-place").textContent = "";
    tabs.replaceChildren();
    panel.replaceChildren();
    if (!row) return;
    choice.value = String(current);
    byId("row-title").append(`${row.id} `, make("span", `pill ${row.ending}`, words[row.ending]));
    byId("row-place").textContent = `${row.place || `followed from step ${row.began} on`}; batch ${row.batch}`;
    const names = ["life", ...(row.began === "source" ? ["source"] : []), ...row.passages.map((each) => each.step)];
    if (!names.includes(tab)) tab = "life";
    names.forEach((name, place) => {
      const passage = row.passages.find((each) => each.step === name);
      const title = name === "life" ? "Whole life" : `${stepOf.get(name).number} ${name}`;
      const button = make("button", passage ? passage.outcome : "", title);
      button.type = "button";
      button.id = `tab-${place}`;
      button.dataset.tab = name;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", "row-panel");
      button.addEventListener("click", () => { tab = name; showTab(true); });
      tabs.append(button);
    });
    showTab(false);
  };
  const move = (by) => {
    current = Math.min(shown.length - 1, Math.max(0, current + by));
    show();
  };

  tabs.addEventListener("keydown", (event) => {
    const all = [...tabs.children];
    const place = all.findIndex((each) => each.dataset.tab === tab);
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    tab = all[(to + all.length) % all.length].dataset.tab;
    showTab(true);
  });
  ending.addEventListener("change", filter);
  find.addEventListener("input", filter);
  choice.addEventListener("change", () => { current = Number(choice.value); show(); });
  byId("previous").addEventListener("click", () => move(-1));
  byId("next").addEventListener("click", () => move(1));
  viewer.hidden = false;
  filter();
})();
