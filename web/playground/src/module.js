// The WebAssembly module of crates/web behind plain functions. The worker and the tests in Node use this file.
"use strict";

(function (root) {
  /** A mistake in a scenario: `message` is the whole diagnosis, `line` and `column` count from 1, or are 0. */
  class ScenarioMistake extends Error {
    constructor(mistake) {
      super(mistake.text);
      this.name = "ScenarioMistake";
      this.line = mistake.line;
      this.column = mistake.column;
    }
  }

  /** Wraps an instance of the module. Every function throws a `ScenarioMistake` if the module reports one. */
  function wrap(instance) {
    const raw = instance.exports;
    const encoder = new TextEncoder();
    const decoder = new TextDecoder();
    raw.begin();

    /** A view of the memory. The place is an argument because finding it may move the memory. */
    const view = (Type, place, length) => new Type(raw.memory.buffer, place, length);

    function put(text) {
      const bytes = encoder.encode(text);
      view(Uint8Array, raw.input(bytes.length), bytes.length).set(bytes);
    }

    const output = () => decoder.decode(view(Uint8Array, raw.output(), raw.output_bytes()));

    function call(name, ...numbers) {
      let failed;
      try {
        failed = raw[name](...numbers);
      } catch (error) {
        throw new Error(`${output()} (${error.message})`); // the module keeps the message of a panic
      }
      if (failed) throw new ScenarioMistake(JSON.parse(output()));
      return output();
    }

    function callWith(text, name, ...numbers) {
      put(text);
      return call(name, ...numbers);
    }

    return {
      /** Opens a scenario as run `number`, with `interval` seconds between samples; returns its description. */
      open: (number, text, interval) => JSON.parse(callWith(text, "open", number, interval)),
      close: (number) => raw.close(number),
      /** Simulates at most `seconds` more; returns true when the run is over. */
      advance: (number, seconds) => call("advance", number, seconds) === "true",
      skip: (number, seconds) => call("skip", number, seconds) === "true",
      /** Returns a copy of the samples of the last `advance`. */
      rows: (number) => view(Float32Array, raw.rows(number), raw.rows_len(number)).slice(),
      width: (number) => raw.width(number),
      now: (number) => raw.now(number),
      /** Changes a link while the run goes on; returns the entry of `[[changes]]` that says so. */
      change: (number, link, keys) => callWith(JSON.stringify({ link, keys }), "change", number),
      summary: (number) => call("summary", number),
      /** Returns the packets that leave the queues from `from` on for `length` seconds, as CSV. */
      packets: (text, from, length) => callWith(text, "packets_of", from, length),
      /** Sets a literal of TOML, or a whole table `[[key, literal], ...]`, in the text of a scenario. */
      set: (text, path, literal) => callWith(JSON.stringify({ text, path, literal }), "edit_text"),
      setTable: (text, path, table) => callWith(JSON.stringify({ text, path, table }), "edit_text"),
      entries: () => JSON.parse(call("entries")),
    };
  }

  root.PenstockModule = { wrap, ScenarioMistake };
})(typeof self === "undefined" ? globalThis : self);
