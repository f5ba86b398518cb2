// Formulas, the theme switch, the menu, the contents, copy buttons, and search.
const html = document.documentElement, at = id => document.getElementById(id);

for (const e of document.querySelectorAll(".math"))
  katex.render(e.textContent, e, {
    displayMode: e.classList.contains("display"), throwOnError: false });

at("theme").onclick = () => {
  html.dataset.theme = html.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", html.dataset.theme); }
  catch { /* private window: the choice lasts for this page */ }
};

// The menu shows the current page in its middle, also when a small screen opens it.
const menu = at("menu");
function reveal() {
  const here = menu.querySelector("[aria-current]");
  if (here) menu.scrollTop = here.offsetTop - (menu.clientHeight - here.offsetHeight) / 2;
}
function toggle(shown) {
  document.body.classList.toggle("menu", shown);
  at("open").setAttribute("aria-expanded", String(shown));
  if (shown) reveal();
}
at("open").onclick = () => toggle(!document.body.classList.contains("menu"));
reveal();

// The contents stand beside the page where there is room (as in style.css), else in a closed fold.
const fold = document.querySelector(".toc details"), wide = matchMedia("(min-width: 90rem)");
if (fold) {
  fold.open = wide.matches;
  wide.onchange = () => { fold.open = wide.matches; };
}

// A button on each block of code; what a program printed gets none.
const icons = {
  copy: '<rect x="5" y="5" width="9" height="9" rx="1.5"/><path d="M11 5V2.5A1.5 1.5 0 0 0 9.5 1h-7' +
    'A1.5 1.5 0 0 0 1 2.5v7A1.5 1.5 0 0 0 2.5 11H5"/>',
  done: '<path d="M2 8.5l4 4 8-9"/>',
};
const drawn = name => `<svg viewBox="0 0 15 15" aria-hidden="true">${icons[name]}</svg>`;
async function keep(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* the old way, then */ }
  const area = document.createElement("textarea"), before = document.activeElement;
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus();
  return done;
}
for (const pre of document.querySelectorAll(".body pre")) {
  if (pre.closest(".output")) continue;
  const box = document.createElement("div"), button = document.createElement("button");
  box.className = "block";
  button.className = "copy";
  button.type = "button";
  button.title = "Copy";
  button.setAttribute("aria-label", "Copy this code");
  button.innerHTML = drawn("copy");
  let timer;
  button.onclick = async () => {
    const done = await keep(pre.textContent.replace(/\n$/, ""));
    at("said").textContent = done ? "Copied" : "Could not copy";
    button.innerHTML = drawn(done ? "done" : "copy");
    clearTimeout(timer);
    timer = setTimeout(() => { button.innerHTML = drawn("copy"); at("said").textContent = ""; }, 2000);
  };
  pre.replaceWith(box);
  box.append(pre, button);
}

// In tables of results numbers stand at the right, and columns with words at the left.
for (const table of document.querySelectorAll(".output table")) {
  const worded = new Set();
  for (const cell of table.querySelectorAll("tbody td, tbody th"))
    if (/[a-z]{3}/i.test(cell.textContent.replace("NaN", ""))) worded.add(cell.cellIndex);
  for (const cell of table.querySelectorAll("td, th"))
    cell.classList.toggle("words", worded.has(cell.cellIndex));
}

let engine;
const find = at("find"), found = at("found");
async function search() {
  const words = find.value.trim();
  if (!words) { found.hidden = true; return; }
  engine ??= import(new URL(html.dataset.root + "pagefind/pagefind.js", location.href));
  const hits = await (await engine).debouncedSearch(words, {}, 120);
  if (!hits) return; // a newer search is under way
  const rows = await Promise.all(hits.results.slice(0, 8).map(r => r.data()));
  found.replaceChildren(...rows.map(r => {
    const [a, title, text] = ["a", "strong", "span"].map(tag => document.createElement(tag));
    a.href = r.url;
    title.textContent = r.meta.title;
    text.innerHTML = r.excerpt; // pagefind escapes the page's text and adds <mark>
    a.append(title, text);
    return a;
  }));
  if (!rows.length) found.textContent = `Nothing found for “${words}”.`;
  found.hidden = false;
}
find.addEventListener("input", search);
document.addEventListener("keydown", e => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
  if (e.key === "/" && !typing) { e.preventDefault(); find.focus(); }
  if (e.key === "Escape") { found.hidden = true; find.blur(); toggle(false); }
});
document.addEventListener("click", e => { if (!e.target.closest(".find")) found.hidden = true; });
