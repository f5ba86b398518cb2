// Formulas, the theme switch, the menu on small screens, and search.
const html = document.documentElement, at = id => document.getElementById(id);

for (const e of document.querySelectorAll(".math"))
  katex.render(e.textContent, e, { displayMode: e.classList.contains("display"), throwOnError: false });

at("theme").onclick = () => {
  html.dataset.theme = html.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", html.dataset.theme); } catch { /* private window: the choice lasts for this page */ }
};

at("open").onclick = () => at("open").setAttribute("aria-expanded", String(document.body.classList.toggle("menu")));

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
    const a = document.createElement("a"), title = document.createElement("strong"), text = document.createElement("span");
    a.href = r.url; title.textContent = r.meta.title; text.innerHTML = r.excerpt; // pagefind escapes the page's text and adds <mark>
    a.append(title, text);
    return a;
  }));
  if (!rows.length) found.textContent = `Nothing found for “${words}”.`;
  found.hidden = false;
}
find.addEventListener("input", search);
document.addEventListener("keydown", e => {
  if (e.key === "/" && document.activeElement !== find) { e.preventDefault(); find.focus(); }
  if (e.key === "Escape") { found.hidden = true; find.blur(); }
});
document.addEventListener("click", e => { if (!e.target.closest(".find")) found.hidden = true; });
