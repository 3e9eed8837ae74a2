// Links that hold scenarios: "#p1=" and the texts, one for each discipline, joined by a record separator, compressed
// with raw DEFLATE and written as base64url. python/penstock/link.py reads the same.
"use strict";

(function (PS) {
  const MARK = "p1=";
  const BETWEEN = "\u001e";

  async function piped(bytes, stream) {
    const out = new Response(new Blob([bytes]).stream().pipeThrough(stream));
    return new Uint8Array(await out.arrayBuffer());
  }

  /** Returns the fragment of a link, without "#". */
  async function encode(texts) {
    const bytes = await piped(new TextEncoder().encode(texts.join(BETWEEN)), new CompressionStream("deflate-raw"));
    let binary = "";
    for (const byte of bytes) binary += String.fromCharCode(byte);
    return MARK + btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  }

  /** Returns the texts in a fragment; null if it holds none. Fails if it is damaged. */
  async function decode(fragment) {
    const at = fragment.indexOf(MARK);
    if (at < 0) return null;
    const code = fragment.slice(at + MARK.length).replace(/-/g, "+").replace(/_/g, "/");
    const bytes = Uint8Array.from(atob(code), (c) => c.charCodeAt(0));
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await piped(bytes, new DecompressionStream("deflate-raw")));
    return text.split(BETWEEN);
  }

  PS.link = { encode, decode };
})((globalThis.PS = globalThis.PS || {}));
