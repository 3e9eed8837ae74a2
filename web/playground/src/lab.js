// The worker as seen from the page: messages out, events in, questions with answers.
"use strict";

(function (PS) {
  class Lab extends EventTarget {
    constructor(engine) {
      super();
      const source = new Blob([engine.worker], { type: "text/javascript" });
      this.worker = new Worker(URL.createObjectURL(source)); // a page from a folder may load no other worker
      this.worker.onmessage = ({ data }) => this.hear(data);
      this.worker.onerror = (event) => this.tell("failed", { text: event.message });
      this.questions = new Map();
      this.asked = 0;
      this.worker.postMessage({ type: "begin", wasm: engine.wasm });
    }

    tell(type, detail) {
      this.dispatchEvent(new CustomEvent(type, { detail }));
    }

    hear(message) {
      if (message.type !== "answer") return this.tell(message.type, message);
      const { resolve, reject } = this.questions.get(message.id);
      this.questions.delete(message.id);
      return message.mistake ? reject(message.mistake) : resolve(message.value);
    }

    send(type, content) {
      this.worker.postMessage({ type, ...content });
    }

    /** Asks the worker; the promise fails with a mistake `{ text, line, column }`. */
    ask(question, content) {
      const id = ++this.asked;
      return new Promise((resolve, reject) => {
        this.questions.set(id, { resolve, reject });
        this.worker.postMessage({ type: "ask", question, id, ...content });
      });
    }
  }

  PS.Lab = Lab;
})((globalThis.PS = globalThis.PS || {}));
