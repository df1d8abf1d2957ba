/* What the list of a month (gallery.js) and the view of a page (page.js) have in common: the files of data, the words for
   things, and small builders. No library, no request but for files of this folder, nothing ever set as HTML: what a
   document says is text. Classic scripts, because a page opened from disk may load those but neither modules nor JSON.

   month.js has the documents, each with blocks of pictures: [file, codes, first page, last page]. A code is one character
   for kind and status, enough to filter by; a block's file is loaded when the block comes into view. */
"use strict";
const shared = (function () {
  const FIELDS = ["page", "name", "width", "height", "ppi", "mm", "box", "display", "original", "type", "bytes", "pages",
    "caption", "alt", "reason", "flags", "thumbnail"];
  const STATES = {p: "Pictures", n: "No picture", l: "Late", q: "Quarantined", d: "Only decoration", s: "Not shown",
    x: "Not read"};
  const STATUS_WORDS = {archived: "archived", collapsed: "repeat", decorative: "decoration",
    consumed: "part of a joined picture", not_shown: "not shown", quarantined: "quarantined"};
  const KIND_WORDS = {raster: "Picture", inline: "Inline picture", stencil: "Stencil", pattern: "Pattern",
    composite: "Joined picture", vector_figure: "Chart or drawing"};

  const byId = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en");
  const plural = (count, word) => number(count) + " " + word + (count === 1 ? "" : "s");

  // As it is searched: without case, accents and how these are composed. Most texts have none, and tens of thousands come at once.
  const plainText = /^[\x00-\x7f]*$/;
  const folded = (text) => (plainText.test(text) ? text : text.normalize("NFD").replace(/\p{M}/gu, "")).toLowerCase();
  // A reason has two words for a document; two more for a picture in it, where those are others.
  const reasonOfPicture = (month, reason) => month.reasons[reason].slice(-2);

  function make(tag, properties, ...children) {
    const node = document.createElement(tag);
    Object.assign(node, properties || {});
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  /* ---- files of data: each is a script that hands its value over ---- */
  const waiting = new Map();
  const started = {};
  started.month = new Promise((resolve) => { started.with = resolve; });

  function load(file) {
    if (!waiting.has(file)) {
      const entry = {};
      entry.promise = new Promise((resolve, reject) => { entry.resolve = resolve; entry.reject = reject; });
      waiting.set(file, entry);
      const script = document.createElement("script");
      script.src = "data/" + file + ".js";
      script.onerror = () => { waiting.delete(file); script.remove(); entry.reject(new Error("a file of the gallery is missing")); };
      script.onload = () => script.remove();
      document.head.append(script);
    }
    return waiting.get(file).promise;
  }
  window.galleryData = function (name, value) {
    if (name === "month") { started.with(value); } else { waiting.get(name).resolve(value); }
  };

  /* ---- a picture ---- */
  function item(month, row, code) {
    const found = {};
    FIELDS.forEach((name, index) => { found[name] = row[index]; });
    const value = parseInt(code, 36);
    found.kind = month.kinds[Math.floor(value / 6)];
    found.status = month.statuses[value % 6];
    return found;
  }
  const altWords = (found) => found.alt || found.caption || KIND_WORDS[found.kind] + " without a description";
  const sizeWords = (found) => number(found.width) + " × " + number(found.height) + " px";
  const resolutionWords = (found) => found.ppi[0] ? number(Math.min(...found.ppi)) + " ppi" : "";
  const thumbnailFile = (found) => "thumbnails/" + found.display + ".webp";
  function thumbnail(found, lazy) {
    // Before the address: an image that was told to be lazy later is fetched at once.
    return make("img", {loading: lazy ? "lazy" : "eager", decoding: "async", alt: altWords(found), src: thumbnailFile(found)});
  }

  return {STATES, STATUS_WORDS, KIND_WORDS, byId, number, plural, folded, reasonOfPicture, make, load,
    month: started.month, item, altWords, sizeWords, resolutionWords, thumbnailFile, thumbnail};
})();
