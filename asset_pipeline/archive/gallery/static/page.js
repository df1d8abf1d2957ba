/* The view of a page: the page with its pictures in place, what became of each, and why one is missing; and the form that
   finds a page. What a page has to say is in the details of its document; the list of the month belongs in gallery.js. */
"use strict";
const pageView = (function () {
  const {STATES, STATUS_WORDS, KIND_WORDS, byId, number, plural, reasonOfPicture, make, load, item, altWords, sizeWords,
    resolutionWords, thumbnailFile, thumbnail} = shared;
  const WORDS_OF_STATE = {l: "late", n: "no_picture"};
  let month = null, open = null;

  function bytesWords(count) {
    if (count === null) { return ""; }
    return count < 1024 ? count + " B" : count < 1048576 ? (count / 1024).toFixed(1) + " KB" : (count / 1048576).toFixed(1) + " MB";
  }
  const objectFile = (digest) => "../../objects/" + digest.slice(0, 2) + "/" + digest;

  async function openPage(index, page, name) {
    const found = month.documents[index];
    open = {index, page};
    byId("page-title").textContent = "Page " + number(page) + (found.labels[page] ? " (printed " + found.labels[page] + ")" : "");
    byId("page-document").textContent = [found.collection, found.title].filter(Boolean).join(" / ");
    byId("page-before").disabled = page <= 1;
    byId("page-after").disabled = page >= (found.pages || 0);
    const inside = found.view.filter((block) => block.first <= page && page <= block.last);
    const [details, ...loaded] = await Promise.all([found.details ? load(found.details) : {}, ...inside.map((block) => load(block.file))]);
    if (!open || open.index !== index || open.page !== page) { return; }
    const items = [];
    loaded.forEach((rows, at) => rows.forEach((row, position) => {
      if (row[0] === page) { items.push(item(month, row, inside[at].codes[position])); }
    }));
    tell(found, page, details[page]);
    drawSheet(items, details[page]);
    drawList(items);
    choose(items, items.find((each) => each.name === name) || items.find((each) => each.status !== "decorative") || null);
    if (!byId("page").open) { byId("page").showModal(); }
    history.replaceState(null, "", "#" + found.id + "/" + page);
  }

  function tell(found, page, account) {
    const letter = found.states[page - 1] || (found.state === "refused" ? "x" : found.state === "read" ? "" : "l");
    let words = account ? [account.meaning, account.remedy] : found.reason ? month.reasons[found.reason].slice(0, 2)
      : found.state === "waiting" ? month.words.waiting : month.words[WORDS_OF_STATE[letter]];
    let title = STATES[letter];
    if (!letter || (found.pages && page > found.pages)) {
      title = "No such page";
      words = ["The document has " + plural(found.pages || 0, "page") + ".", ""];
    }
    byId("page-answer").className = "answer " + letter;
    byId("page-answer").replaceChildren(make("strong", {textContent: title}), words.filter(Boolean).join(" "));
  }

  function drawSheet(items, account) {
    const place = byId("page-sheet");
    const size = account && account.sheet ? account.sheet.slice(1) : boundsOf(items);
    if (!size) { place.replaceChildren(); return; }
    const sheet = make("div", {className: "sheet"});
    sheet.style.aspectRatio = size[0] + " / " + size[1];
    sheet.style.width = "min(100%, " + (68 * size[0] / size[1]).toFixed(2) + "vh)";
    const bare = !(account && account.sheet) || items.some((found) => found.status === "quarantined");
    if (!bare) { sheet.append(make("img", {src: account.sheet[0], alt: ""})); }
    for (const found of items) {
      const [left, top, right, bottom] = found.box;
      const button = make("button", {type: "button", className: found.status});
      button.setAttribute("aria-label", found.name + ", " + STATUS_WORDS[found.status] + ": " + altWords(found));
      const clamp = (value) => Math.max(0, Math.min(100, value));
      button.style.left = clamp(100 * left / size[0]) + "%";
      button.style.top = clamp(100 * top / size[1]) + "%";
      button.style.width = Math.max(.6, clamp(100 * right / size[0]) - clamp(100 * left / size[0])) + "%";
      button.style.height = Math.max(.6, clamp(100 * bottom / size[1]) - clamp(100 * top / size[1])) + "%";
      if (bare && found.thumbnail) { button.append(make("img", {src: thumbnailFile(found), alt: ""})); }
      button.addEventListener("click", () => choose(items, found));
      found.outline = button;
      sheet.append(button);
    }
    const words = !bare ? "" : account && account.sheet
      ? "Layout of the page. The page itself is not drawn, because it holds a picture that cannot be trusted."
      : "Layout of the pictures; there is no preview of the page.";
    place.replaceChildren(sheet, make("p", {className: "quiet", textContent: words}));
  }

  function boundsOf(items) {
    if (!items.length) { return null; }
    return [Math.max(...items.map((found) => found.box[2])), Math.max(...items.map((found) => found.box[3]))];
  }

  function drawList(items) {
    byId("page-list-title").hidden = !items.length;
    byId("page-list").replaceChildren(...items.map((found) => {
      const button = make("button", {type: "button"}, make("span", {textContent: found.name}),
        make("span", {className: "quiet", textContent: STATUS_WORDS[found.status]}));
      button.addEventListener("click", () => choose(items, found));
      found.entry = button;
      return make("li", {}, button);
    }));
  }

  function choose(items, chosen) {
    for (const found of items) {
      for (const button of [found.entry, found.outline]) { button.setAttribute("aria-pressed", String(found === chosen)); }
    }
    const place = byId("picture");
    place.className = "picture";
    place.replaceChildren();
    if (!chosen) { return; }
    if (chosen.thumbnail) { place.append(thumbnail(chosen, false)); }
    const facts = [["Name", chosen.name], ["Kind", KIND_WORDS[chosen.kind] + ", " + STATUS_WORDS[chosen.status]],
      ["Size", sizeWords(chosen)], ["On paper", chosen.mm[0] + " × " + chosen.mm[1] + " mm at " + resolutionWords(chosen)],
      ["Original", chosen.type ? chosen.type + ", " + bytesWords(chosen.bytes) : null],
      ["Used", chosen.pages > 1 ? "on " + number(chosen.pages) + " pages" : null],
      ["Caption", chosen.caption], ["Description", chosen.alt],
      ["Flags", chosen.flags.join(", ").replaceAll("_", " ")]];
    if (chosen.reason) {
      const [meaning, remedy] = reasonOfPicture(month, chosen.reason);
      facts.splice(1, 0, ["Held back", meaning], ["What to do", remedy]);
    }
    const list = make("dl", {className: "facts"});
    for (const [name, value] of facts) {
      if (value) { list.append(make("dt", {textContent: name}), make("dd", {textContent: value, dir: "auto"})); }
    }
    place.append(list);
    if (chosen.display || chosen.original) {
      const links = make("p", {className: "links"});
      if (chosen.display) { links.append(make("a", {href: objectFile(chosen.display), textContent: "Full picture", target: "_blank", rel: "noopener"})); }
      if (chosen.original && chosen.original !== chosen.display) {
        links.append(make("a", {href: objectFile(chosen.original), textContent: "Original bytes", target: "_blank", rel: "noopener"}));
      }
      place.append(links);
    }
  }

  function openFromAddress() {
    const [id, page] = location.hash.slice(1).split("/");
    const index = month.documents.findIndex((found) => found.id === id);
    if (index >= 0 && Number(page) > 0) { openPage(index, Number(page)); }
  }

  function find(event) {
    event.preventDefault();
    const index = Number(byId("finder-document").value), typed = byId("finder-page").value.trim();
    const found = month.documents[index];
    let page = /^\d+$/.test(typed) ? Number(typed) : 0;
    if (!page) { page = Number(Object.keys(found.labels).find((key) => found.labels[key] === typed) || 0); }
    if (page) { openPage(index, page); } else { byId("found").textContent = "There is no page " + typed + " in that document."; }
  }

  function turn(step) {
    const target = open && open.page + step;
    if (open && target >= 1 && target <= (month.documents[open.index].pages || 0)) { openPage(open.index, target); }
  }

  function start(value) {
    month = value;
    const dialog = byId("page");
    byId("finder").addEventListener("submit", find);
    byId("page-close").addEventListener("click", () => dialog.close());
    byId("page-before").addEventListener("click", () => turn(-1));
    byId("page-after").addEventListener("click", () => turn(1));
    dialog.addEventListener("close", () => { open = null; history.replaceState(null, "", location.pathname + location.search); });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) { dialog.close(); } });
    dialog.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) { return; }
      if (event.key === "ArrowLeft") { turn(-1); } else if (event.key === "ArrowRight") { turn(1); }
    });
    addEventListener("hashchange", openFromAddress);
    openFromAddress();
  }

  return {start, openPage};
})();
