/* The list of a month: its totals, its documents with their pictures, the filter. Pictures are drawn where they are looked
   at: a block keeps the height of its cards from the start, so that jumping anywhere lands where it should. */
"use strict";
(function () {
  const {STATES, STATUS_WORDS, byId, number, plural, folded, reasonOfPicture, make, load, item, sizeWords,
    resolutionWords, thumbnail} = shared;
  const MAIN = ["archived", "quarantined"];
  const TOTALS = [["documents", "documents", "document", true], ["pages", "pages", "page", true],
    ["archived", "pictures archived", "picture archived", true], ["collapsed", "repeats", "repeat"],
    ["derived", "charts, joined", "chart or joined"], ["decorative", "decoration"], ["consumed", "parts", "part"],
    ["not_shown", "not shown"], ["quarantined", "quarantined"], ["refused", "documents refused", "document refused"],
    ["unfinished", "documents late", "document late"], ["waiting", "waiting in the inbox"], ["rejected", "not taken in"]];
  const PAGES_WORDS = {q: "with quarantined pictures", x: "not read", l: "late", d: "with only decoration",
    s: "with nothing shown", n: "without a picture"};
  const AROUND = 500;
  const AT_ONCE = 20;  // cards: a screen of them; the rest of a block follows when these are seen

  let month, blocks = [], texts = null, textsWanted = null, columns = 1, typing = 0;

  shared.month.then((value) => {
    month = value;
    const when = new Date(month.month + "-15T12:00:00Z");
    const title = "Pictures of " + when.toLocaleDateString("en", {month: "long", year: "numeric", timeZone: "UTC"});
    document.title = title;
    byId("title").textContent = title;
    for (const [name, many, one, always] of TOTALS) {
      if (always || month.totals[name]) {
        const words = month.totals[name] === 1 && one || many;
        byId("totals").append(make("div", {}, make("dt", {textContent: words}),
          make("dd", {textContent: number(month.totals[name]), id: "total-" + name})));
      }
    }
    byId("documents").append(...month.documents.map(section));
    listDocuments();
    listen();
    filter();
    pageView.start(month);
  });

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
        near: false, node: make("div", {className: "block"})};
      block.node.block = block;
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
        button.addEventListener("click", () => pageView.openPage(index, at + 1));
        place.append(button);
      });
    });
    return node;
  }

  function pagesWords(found) {
    const counted = {};
    for (const letter of found.states) { counted[letter] = (counted[letter] || 0) + 1; }
    const notable = Object.keys(PAGES_WORDS).filter((letter) => counted[letter])
      .map((letter) => number(counted[letter]) + " " + PAGES_WORDS[letter]);
    return (found.states.length === 1 ? "" : "All ") + plural(found.states.length, "page") + (notable.length ? ": " + notable.join(", ") : "");
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
    const words = folded(byId("text").value).trim().split(/\s+/).filter(Boolean);
    if (words.length && !texts) { return loadTexts().then(filter); }
    const codes = wantedCodes(), only = byId("document").value;
    const narrowed = words.length || byId("kind").value || byId("status").value;
    let pictures = 0, documents = 0;
    cancelAnimationFrame(typing);
    inView.disconnect();
    measure();
    for (const found of month.documents) { found.matching = 0; }
    for (const block of blocks) {
      const there = only === "" || Number(only) === block.index;
      block.matches = there ? matches(block, codes, words) : [];
      block.document.matching += block.matches.length;
      pictures += block.matches.length;
      undraw(block);
      if (block.matches.length) { inView.observe(block.node); }
    }
    // Asked for while the browser works out what is in view: mostly it is the first.
    const first = blocks.find((block) => block.matches.length);
    if (first) { load(first.file).catch(() => null); }
    month.documents.forEach((found, index) => {
      const chosen = only === "" || Number(only) === index;
      found.section.hidden = !(chosen && (found.matching || !narrowed));
      documents += found.section.hidden ? 0 : 1;
    });
    const none = documents ? "" : month.documents.length ? ". Nothing fits; clear the filter to see all"
      : ". Nothing was dropped for this month";
    byId("found").textContent = plural(pictures, "picture") + " in " + plural(documents, "document") + none;
  }

  function matches(block, codes, words) {
    const found = [];
    const title = words.length ? folded(block.document.title + " " + (block.document.collection || "")) : "";
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
      texts = value.map((each) => each.map((block) => block.map(folded)));
    });
    return textsWanted;
  }

  /* ---- drawing what is in view ---- */
  const inView = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const block = entry.target.block;
      block.near = entry.isIntersecting;
      if (block.near && !block.drawn) { block.drawing = draw(block); }
    }
  }, {rootMargin: AROUND + "px 0px"});

  function measure() {
    const style = getComputedStyle(document.documentElement), rem = parseFloat(style.fontSize);
    const of = (name) => parseFloat(style.getPropertyValue(name)) * rem;
    measure.gap = of("--gap");
    measure.card = of("--card");
    columns = Math.max(1, Math.floor((byId("documents").clientWidth + measure.gap) / (of("--least") + measure.gap)));
  }

  function undraw(block) {
    block.drawn = block.near = false;
    block.node.replaceChildren();
    const height = Math.ceil(block.matches.length / columns) * (measure.card + measure.gap);
    block.node.hidden = !block.matches.length;
    block.node.style.height = height + "px";
    block.node.style.containIntrinsicHeight = height + "px";
  }

  async function draw(block, passedBy = false) {
    const wanted = block.matches;
    block.drawn = true;
    const rows = await load(block.file).catch(() => null);
    if (block.matches !== wanted) { return; }
    if (!rows || !(block.near || passedBy)) {
      block.drawn = false;
      if (!rows) { block.node.replaceChildren(make("p", {className: "note", textContent: "A file of this gallery is missing. Make the gallery again."})); }
      return;
    }
    const grid = make("ul", {className: "grid"});
    block.node.replaceChildren(grid);
    for (let done = 0; done < wanted.length; done += AT_ONCE) {
      if (done) { await new Promise((resolve) => setTimeout(resolve)); }
      if (block.matches !== wanted) { return; }
      grid.append(...wanted.slice(done, done + AT_ONCE)
        .map((at) => make("li", {}, card(block, item(month, rows[at], block.codes[at])))));
    }
    block.node.style.height = "";
  }

  function card(block, found) {
    const held = found.status === "quarantined";
    const well = make("span", {className: "well" + (held ? " held" : "")});
    if (held) {
      well.append(make("span", {textContent: "Held back: " + reasonOfPicture(month, found.reason)[0]}));
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
    const told = found.caption || found.alt;
    const words = make("span", {className: "words"}, first,
      make("span", {className: told ? "caption" : "caption name", textContent: told || found.name, dir: "auto"}),
      make("span", {className: "size"}, make("span", {textContent: sizeWords(found)}),
        make("span", {textContent: resolutionWords(found)})));
    const button = make("button", {type: "button", className: "card", title: found.name}, well, words);
    button.addEventListener("click", () => pageView.openPage(block.index, found.page, found.name));
    return button;
  }

  /* ---- events ---- */
  function listen() {
    byId("text").addEventListener("focus", loadTexts, {once: true});
    byId("text").addEventListener("input", () => { cancelAnimationFrame(typing); typing = requestAnimationFrame(filter); });
    for (const id of ["document", "kind", "status", "decoration"]) { byId(id).addEventListener("change", filter); }
    byId("document").addEventListener("change", () => {
      if (byId("document").value) { byId("finder-document").value = byId("document").value; }
      scrollTo(0, 0);
    });
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    // At once, not after the event: whoever jumps to the end next must find the whole list there.
    byId("clear").addEventListener("click", () => { byId("filters").reset(); filter(); });
    byId("more").addEventListener("click", () => {
      byId("more").setAttribute("aria-expanded", String(byId("filters-more").classList.toggle("shown")));
    });
    byId("print").addEventListener("click", printAll);
    addEventListener("resize", () => {
      const before = columns;
      measure();
      if (before !== columns) { filter(); }
    });
    addEventListener("keydown", keys);
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("page").open) { return; }
    if (event.key === "/" && !/^(INPUT|SELECT)$/.test(event.target.tagName)) {
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
    const wanted = blocks.filter((block) => block.matches.length);
    await Promise.all(wanted.map((block) => block.node.childElementCount ? block.drawing : draw(block, true)));
    const images = [...document.querySelectorAll(".card img")];
    for (const image of images) { image.loading = "eager"; }
    await Promise.all(images.map((image) => image.decode().catch(() => null)));
    print();
  }
})();
