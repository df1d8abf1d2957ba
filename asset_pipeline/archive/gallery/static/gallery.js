/* The gallery of a month. No library, no request but for files of this folder, nothing ever set as HTML: what a document
   says is text. Classic scripts, because a page opened from disk may load those but neither modules nor JSON.

   month.js has the documents, each with blocks of pictures: [file, codes, first page, last page]. A code is one character
   for kind and status, enough to filter by; a block's file is loaded when the block comes into view. */
"use strict";
(function () {
  const FIELDS = ["page", "name", "width", "height", "ppi", "mm", "box", "display", "original", "type", "bytes", "pages",
    "caption", "alt", "reason", "flags", "thumbnail"];
  const MAIN = ["archived", "quarantined"];
  const STATES = {p: "Pictures", n: "No picture", l: "Late", q: "Quarantined", d: "Only decoration", s: "Not shown",
    x: "Not read"};
  const STATUS_WORDS = {archived: "archived", collapsed: "repeat", decorative: "decoration",
    consumed: "part of a joined picture", not_shown: "not shown", quarantined: "quarantined"};
  const KIND_WORDS = {raster: "Picture", inline: "Inline picture", stencil: "Stencil", pattern: "Pattern",
    composite: "Joined picture", vector_figure: "Chart or drawing"};
  const TOTALS = [["documents", "documents", true], ["pages", "pages", true], ["archived", "pictures archived", true],
    ["collapsed", "repeats"], ["derived", "charts, joined"], ["decorative", "decoration"], ["consumed", "parts"],
    ["not_shown", "not shown"], ["quarantined", "quarantined"], ["refused", "documents refused"],
    ["unfinished", "documents late"], ["waiting", "waiting in the inbox"]];
  const WORDS_OF_STATE = {l: "late", n: "no_picture"};
  const byId = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en");

  /* ---- data files ---- */
  const waiting = new Map();
  function load(file) {
    if (!waiting.has(file)) {
      const entry = {};
      entry.promise = new Promise((resolve, reject) => { entry.resolve = resolve; entry.reject = reject; });
      waiting.set(file, entry);
      const script = document.createElement("script");
      script.src = "data/" + file + ".js";
      script.onerror = () => { waiting.delete(file); entry.reject(new Error("a file of the gallery is missing")); };
      script.onload = () => script.remove();
      document.head.append(script);
    }
    return waiting.get(file).promise;
  }
  window.galleryData = function (name, value) {
    if (name === "month") { start(value); } else { waiting.get(name).resolve(value); }
  };

  /* ---- small builders ---- */
  function make(tag, properties, ...children) {
    const node = document.createElement(tag);
    Object.assign(node, properties || {});
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  const sizeWords = (item) => number(item.width) + " × " + number(item.height) + " px";
  const resolutionWords = (item) => item.ppi[0] ? Math.min(item.ppi[0], item.ppi[1]) + " ppi" : "";
  function bytesWords(count) {
    if (count === null) { return ""; }
    return count < 1024 ? count + " B" : count < 1048576 ? (count / 1024).toFixed(1) + " KB" : (count / 1048576).toFixed(1) + " MB";
  }
  const objectFile = (digest) => "../../objects/" + digest.slice(0, 2) + "/" + digest;

  let month, blocks = [], texts = null, textsWanted = null, columns = 1;

  /* ---- start ---- */
  function start(value) {
    month = value;
    const when = new Date(month.month + "-15T12:00:00Z");
    const title = "Pictures of " + when.toLocaleDateString("en", {month: "long", year: "numeric", timeZone: "UTC"});
    document.title = title;
    byId("title").textContent = title;
    for (const [name, words, always] of TOTALS) {
      if (always || month.totals[name]) {
        byId("totals").append(make("div", {}, make("dt", {textContent: words}),
          make("dd", {textContent: number(month.totals[name]), id: "total-" + name})));
      }
    }
    byId("documents").append(...month.documents.map(section));
    listDocuments();
    listen();
    filter();
    openFromAddress();
  }

  function listDocuments() {
    const groups = new Map();
    month.documents.forEach((found, index) => {
      const group = found.collection || "";
      if (!groups.has(group)) { groups.set(group, []); }
      groups.get(group).push([found, index]);
    });
    for (const select of [byId("document"), byId("finder-document")]) {
      for (const [group, found] of groups) {
        const options = found.map(([entry, index]) => make("option", {value: String(index), textContent: shortened(entry.title)}));
        select.append(...(group ? [make("optgroup", {label: group}, ...options)] : options));
      }
    }
  }
  const shortened = (title) => title.length > 60 ? title.slice(0, 40) + "…" + title.slice(-15) : title;

  function section(found, index) {
    const head = make("header", {}, make("h2", {textContent: found.title, id: "d" + index, dir: "auto"}));
    for (const badge of badges(found)) { head.append(badge); }
    head.append(make("p", {className: "quiet", textContent: countsWords(found)}));
    const node = make("section", {className: "document"}, head);
    node.setAttribute("aria-labelledby", "d" + index);
    if (found.state !== "read") { node.append(notRead(found)); }
    if (found.states) { node.append(strip(found, index)); }
    found.section = node;
    found.view = found.blocks.map(([file, codes, first, last], at) => {
      const block = {file, codes, first, last, document: found, index, at, matches: [], drawn: false,
        node: make("div", {className: "block"})};
      node.append(block.node);
      blocks.push(block);
      return block;
    });
    return node;
  }

  function badges(found) {
    const made = [];
    if (found.state === "refused") { made.push(make("span", {className: "badge bad", textContent: "refused"})); }
    if (found.state === "late" || found.state === "waiting") {
      made.push(make("span", {className: "badge warn", textContent: "late"}));
    }
    if (found.quarantined) {
      made.push(make("span", {className: "badge bad", textContent: number(found.quarantined) + " quarantined"}));
    }
    if (found.revision > 1) { made.push(make("span", {className: "badge", textContent: "revision " + found.revision})); }
    return made;
  }

  function countsWords(found) {
    const parts = [found.collection];
    if (found.pages) { parts.push(plural(found.pages, "page")); }
    if (found.state === "read") {
      parts.push(plural(found.archived, "picture"));
      if (found.derived) { parts.push(found.derived === 1 ? "1 chart or joined picture" : number(found.derived) + " charts or joined pictures"); }
      if (found.collapsed) { parts.push(plural(found.collapsed, "repeat")); }
      if (found.decorative) { parts.push(number(found.decorative) + " decoration"); }
    }
    return parts.filter(Boolean).join(" · ");
  }
  const plural = (count, word) => number(count) + " " + word + (count === 1 ? "" : "s");

  function notRead(found) {
    const [meaning, remedy] = found.reason ? month.reasons[found.reason] : month.words[found.state === "waiting" ? "waiting" : "late"];
    return make("p", {className: "note", textContent: [meaning, remedy].filter(Boolean).join(" ")});
  }

  function strip(found, index) {
    const place = make("div", {className: "strip"});
    const node = make("details", {className: "pages"}, make("summary", {textContent: pagesWords(found)}));
    node.addEventListener("toggle", () => {
      if (!node.open || place.childElementCount) { return; }
      const letters = [...new Set(found.states)];
      node.append(place, make("p", {className: "key", textContent: letters.map((letter) => STATES[letter]).join(" · ")}));
      [...found.states].forEach((letter, at) => {
        const label = found.labels[at + 1];
        const button = make("button", {type: "button", className: letter, textContent: String(at + 1),
          title: STATES[letter] + (label ? ", printed " + label : "")});
        button.setAttribute("aria-label", "Page " + (at + 1) + ": " + STATES[letter]);
        button.addEventListener("click", () => openPage(index, at + 1));
        place.append(button);
      });
    });
    return node;
  }

  function pagesWords(found) {
    const counted = {};
    for (const letter of found.states) { counted[letter] = (counted[letter] || 0) + 1; }
    const notable = ["q", "x", "l", "d", "s", "n"].filter((letter) => counted[letter])
      .map((letter) => number(counted[letter]) + " " + STATES[letter].toLowerCase());
    return "All " + plural(found.states.length, "page") + (notable.length ? ": " + notable.join(", ") : "");
  }

  /* ---- filter ---- */
  function wantedCodes() {
    const kind = byId("kind").value, status = byId("status").value, wanted = new Set();
    let statuses = status === "all" ? month.statuses : status ? [status] : MAIN;
    if (!status && byId("decoration").checked) { statuses = statuses.concat("decorative"); }
    month.kinds.forEach((name, k) => {
      if (kind && kind !== name) { return; }
      for (const each of statuses) { wanted.add((k * 6 + month.statuses.indexOf(each)).toString(36)); }
    });
    return wanted;
  }

  function filter() {
    const words = byId("text").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length && !texts) { return loadTexts().then(filter); }
    const codes = wantedCodes(), only = byId("document").value;
    const narrowed = words.length || byId("kind").value || byId("status").value;
    let pictures = 0, documents = 0;
    measure();
    for (const found of month.documents) { found.matching = 0; }
    for (const block of blocks) {
      const there = only === "" || Number(only) === block.index;
      block.matches = there ? matches(block, codes, words) : [];
      block.document.matching += block.matches.length;
      pictures += block.matches.length;
      undraw(block);
    }
    month.documents.forEach((found, index) => {
      const chosen = only === "" || Number(only) === index;
      found.section.hidden = !(chosen && (found.matching || !narrowed));
      documents += found.section.hidden ? 0 : 1;
    });
    const none = documents ? "" : ". Nothing fits; clear the filter to see all";
    byId("found").textContent = plural(pictures, "picture") + " in " + plural(documents, "document") + none;
    drawVisible();
  }

  function matches(block, codes, words) {
    const found = [];
    const title = words.length ? (block.document.title + " " + (block.document.collection || "")).toLowerCase() : "";
    for (let at = 0; at < block.codes.length; at += 1) {
      if (!codes.has(block.codes[at])) { continue; }
      if (words.length) {
        const text = texts[block.index][block.at][at];
        if (!words.every((word) => text.includes(word) || title.includes(word))) { continue; }
      }
      found.push(at);
    }
    return found;
  }

  function loadTexts() {
    textsWanted = textsWanted || load(month.texts).then((value) => {
      texts = value.map((each) => each.map((block) => block.map((text) => text.toLowerCase())));
    });
    return textsWanted;
  }

  /* ---- drawing what is in view ---- */
  function measure() {
    const style = getComputedStyle(document.documentElement), rem = parseFloat(style.fontSize);
    const of = (name) => parseFloat(style.getPropertyValue(name)) * rem;
    measure.gap = of("--gap");
    measure.card = of("--card");
    columns = Math.max(1, Math.floor((byId("documents").clientWidth + measure.gap) / (of("--least") + measure.gap)));
  }

  function undraw(block) {
    block.drawn = false;
    block.node.replaceChildren();
    const height = Math.ceil(block.matches.length / columns) * (measure.card + measure.gap);
    block.node.hidden = !block.matches.length;
    block.node.style.height = height + "px";
    block.node.style.containIntrinsicHeight = height + "px";
  }

  function drawVisible() {
    const until = innerHeight + 500;
    for (const block of blocks) {
      if (block.drawn || !block.matches.length) { continue; }
      const place = block.node.getBoundingClientRect();
      if (place.top > until) { break; }
      if (place.bottom > -500) { draw(block); }
    }
  }

  async function draw(block) {
    block.drawn = true;
    const wanted = block.matches;
    const rows = await load(block.file);
    if (block.matches !== wanted || !block.drawn) { return; }
    const list = make("ul", {className: "grid"}, ...wanted.map((at) => make("li", {}, card(block, item(rows[at], block, at)))));
    block.node.replaceChildren(list);
    block.node.style.height = "";
  }

  function item(row, block, at) {
    const found = {};
    FIELDS.forEach((name, index) => { found[name] = row[index]; });
    const code = parseInt(block.codes[at], 36);
    found.kind = month.kinds[Math.floor(code / 6)];
    found.status = month.statuses[code % 6];
    return found;
  }

  const altWords = (found) => found.alt || found.caption || KIND_WORDS[found.kind] + " without a description";

  const thumbnailFile = (found) => "thumbnails/" + found.display + ".webp";

  function thumbnail(found, lazy) {
    // Before the address: an image that was told to be lazy later is fetched at once.
    return make("img", {loading: lazy ? "lazy" : "eager", decoding: "async", alt: altWords(found), src: thumbnailFile(found)});
  }

  function card(block, found) {
    const held = found.status === "quarantined";
    const well = make("span", {className: "well" + (held ? " held" : "")});
    if (held) {
      well.append(make("span", {textContent: "Held back: " + month.reasons[found.reason][0]}));
    } else if (found.thumbnail) {
      well.append(thumbnail(found, true));
    } else {
      well.append(make("span", {className: "quiet", textContent: found.display ? "No preview" : "Not shown on the page"}));
    }
    if (found.pages > 1) { well.append(make("span", {className: "badge", textContent: "on " + number(found.pages) + " pages"})); }
    const label = block.document.labels[found.page];
    const first = make("span", {className: "first"},
      make("span", {textContent: "Page " + found.page + (label ? " (" + label + ")" : "")}),
      found.status === "archived" || held ? null : make("span", {textContent: STATUS_WORDS[found.status]}));
    const words = make("span", {className: "words"}, first,
      make("span", {className: "caption", textContent: found.caption || found.alt || found.name, dir: "auto"}),
      make("span", {className: "size", textContent: [sizeWords(found), resolutionWords(found)].filter(Boolean).join(" · ")}));
    const button = make("button", {type: "button", className: "card", title: found.name}, well, words);
    button.addEventListener("click", () => openPage(block.index, found.page, found.name));
    return button;
  }

  /* ---- page view ---- */
  let open = null;

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
      if (row[0] === page) { items.push(item(row, inside[at], position)); }
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
    let words = account ? [account.meaning, account.remedy] : found.reason ? month.reasons[found.reason]
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
      ["Size", sizeWords(chosen)], ["On paper", chosen.mm[0] + " × " + chosen.mm[1] + " mm at " + chosen.ppi[0] + " ppi"],
      ["Original", chosen.type ? chosen.type + ", " + bytesWords(chosen.bytes) : null],
      ["Used", chosen.pages > 1 ? "on " + number(chosen.pages) + " pages" : null],
      ["Caption", chosen.caption], ["Description", chosen.alt],
      ["Flags", chosen.flags.join(", ").replaceAll("_", " ")]];
    if (chosen.reason) {
      const [meaning, remedy] = month.reasons[chosen.reason];
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

  /* ---- events ---- */
  function listen() {
    let later = 0;
    byId("text").addEventListener("focus", loadTexts, {once: true});
    byId("text").addEventListener("input", () => { clearTimeout(later); later = setTimeout(filter, 60); });
    for (const id of ["document", "kind", "status", "decoration"]) { byId(id).addEventListener("change", filter); }
    byId("document").addEventListener("change", () => {
      if (byId("document").value) { byId("finder-document").value = byId("document").value; }
      scrollTo(0, 0);
    });
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("filters").addEventListener("reset", () => setTimeout(filter));
    byId("finder").addEventListener("submit", find);
    byId("page-close").addEventListener("click", () => byId("page").close());
    byId("page-before").addEventListener("click", () => turn(-1));
    byId("page-after").addEventListener("click", () => turn(1));
    byId("page").addEventListener("close", () => { open = null; history.replaceState(null, "", location.pathname + location.search); });
    byId("page").addEventListener("click", (event) => { if (event.target === byId("page")) { byId("page").close(); } });
    byId("print").addEventListener("click", printAll);
    addEventListener("hashchange", openFromAddress);
    let frame = 0;
    const soon = () => { frame = frame || requestAnimationFrame(() => { frame = 0; drawVisible(); }); };
    addEventListener("scroll", soon, {passive: true});
    addEventListener("resize", () => {
      const before = columns;
      measure();
      if (before !== columns) { filter(); } else { soon(); }
    });
    addEventListener("keydown", keys);
  }

  function turn(step) {
    const target = open && open.page + step;
    if (open && target >= 1 && target <= (month.documents[open.index].pages || 0)) { openPage(open.index, target); }
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) { return; }
    const typing = /^(INPUT|SELECT)$/.test(event.target.tagName);
    if (byId("page").open) {
      if (event.key === "ArrowLeft") { turn(-1); } else if (event.key === "ArrowRight") { turn(1); }
    } else if (event.key === "/" && !typing) {
      event.preventDefault();
      byId("text").focus();
    } else if (event.target.classList.contains("card")) {
      moveTo(event);
    }
  }

  function moveTo(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns};
    if (!(event.key in steps)) { return; }
    const cards = [...document.querySelectorAll(".card")];
    const next = cards[cards.indexOf(event.target) + steps[event.key]];
    if (next) { event.preventDefault(); next.focus(); }
  }

  async function printAll() {
    await Promise.all(blocks.filter((block) => block.matches.length && !block.drawn).map(draw));
    await Promise.all(blocks.filter((block) => block.matches.length).map((block) => load(block.file)));
    const images = [...document.querySelectorAll(".card img")];
    for (const image of images) { image.loading = "eager"; }
    await Promise.all(images.map((image) => image.decode().catch(() => null)));
    print();
  }
})();
