// The life of packets: when each came to the queue, how long it waited, and what became of it.
"use strict";

(function (PS) {
  const { el } = PS.dom;
  const { flowColour } = PS.charts;
  const MOST = 300; // packets of one discipline
  const LENGTH_S = 0.2;

  function parse(csv, queue) {
    const lines = csv.trim().split("\n").slice(1);
    return lines
      .map((line) => line.split(","))
      .filter(([name]) => name === queue)
      .map(([, left, waited, flow, bytes, fate]) => ({ left: left / 1e9, waited: waited / 1e9, flow: Number(flow), bytes: Number(bytes), fate }));
  }

  const lost = (packet) => packet.fate !== "sent" && packet.fate !== "mark";

  /** Tells the life of one packet in sentences. */
  function life(packet, rate, delayMs) {
    const came = packet.left - packet.waited;
    const begin = `A packet of ${packet.bytes} B of flow ${packet.flow} came to the queue at ${came.toFixed(6)} s`;
    const waited = `${(packet.waited * 1000).toFixed(3)} ms`;
    if (lost(packet)) {
      return `${begin}. ${packet.waited > 0 ? `It waited ${waited} and was dropped` : "It was dropped at once"} (${packet.fate}). Its sender learns of it from later ACKs.`;
    }
    const wire = (packet.bytes * 8) / rate;
    const marked = packet.fate === "mark" ? " It was marked, so its sender will slow down without a loss." : "";
    const arrives = packet.left + wire + delayMs / 1000;
    return `${begin}, waited ${waited}, took ${(wire * 1000).toFixed(3)} ms to send, and came to the other end of the link at ${arrives.toFixed(6)} s.${marked}`;
  }

  class Packets {
    constructor(place, state) {
      Object.assign(this, { place, state });
    }

    async show(time) {
      const { state, place } = this;
      const from = Math.max(0, Math.min(time - LENGTH_S / 2, state.now - LENGTH_S));
      place.replaceChildren(el("p", { role: "status" }, `The run is repeated up to ${from.toFixed(2)} s …`));
      const asked = state.lanes.map((lane) => state.lab.ask("packets", { text: lane.text, from, length: LENGTH_S }));
      const answers = await Promise.all(asked);
      const parts = answers.map((csv, i) => this.lane(state.lanes[i], state.disciplines[i], csv, from));
      const about = `What left the queue from ${from.toFixed(2)} s to ${(from + LENGTH_S).toFixed(2)} s. Each bar is the time that a packet waited, in the order of leaving.`;
      place.replaceChildren(el("p", { role: "status" }, about), el("div", { class: "lanes" }, ...parts));
    }

    lane(lane, name, csv, from) {
      const all = parse(csv, lane.about.queues[0].name).slice(0, MOST);
      const canvas = el("canvas", { class: "lives", role: "img", "aria-label": `${all.length} packets of ${name}, listed below` });
      const story = el("p", { class: "story" }, all.length ? "Choose a packet." : "No packet left the queue.");
      const list = el("select", { size: 6, class: "packet-list", "aria-label": `packets of ${name}` });
      all.forEach((packet, i) => list.append(el("option", { value: i }, `${(packet.left * 1000).toFixed(1)} ms  flow ${packet.flow}  ${packet.bytes} B  ${packet.fate}`)));
      const row = lane.rows.rowAt(from);
      const tell = (i) => {
        list.selectedIndex = i;
        story.textContent = life(all[i], lane.rows.at(row, lane.rows.queue("rate")), lane.rows.at(row, lane.rows.queue("linkDelay")));
        draw(canvas, all, from, i);
      };
      list.addEventListener("change", () => tell(list.selectedIndex));
      canvas.addEventListener("click", (event) => tell(Math.min(all.length - 1, Math.floor((event.offsetY / canvas.clientHeight) * all.length))));
      requestAnimationFrame(() => draw(canvas, all, from, -1));
      return el("section", { class: "life", "aria-label": `life of packets of ${name}` }, el("h3", {}, name), canvas, list, story);
    }
  }

  function draw(canvas, all, from, chosen) {
    const pen = canvas.getContext("2d");
    const { clientWidth: wide, clientHeight: high } = canvas;
    const dots = Math.min(2, window.devicePixelRatio || 1);
    Object.assign(canvas, { width: wide * dots, height: high * dots });
    pen.scale(dots, dots);
    const style = getComputedStyle(document.documentElement);
    const first = Math.min(from, ...all.map((packet) => packet.left - packet.waited));
    const toX = (time) => ((time - first) / (from + LENGTH_S - first)) * (wide - 8) + 2;
    const each = high / Math.max(1, all.length);
    all.forEach((packet, i) => {
      const y = (i + 0.5) * each;
      const [x0, x1] = [toX(packet.left - packet.waited), toX(packet.left)];
      pen.strokeStyle = flowColour(packet.flow);
      pen.lineWidth = i === chosen ? Math.max(3, each) : Math.max(0.8, Math.min(3, each * 0.7));
      pen.beginPath();
      pen.moveTo(x0, y);
      pen.lineTo(Math.max(x1, x0 + 1), y);
      pen.stroke();
      if (packet.fate === "sent" && i !== chosen) return;
      pen.fillStyle = style.getPropertyValue(lost(packet) ? "--drop" : packet.fate === "mark" ? "--mark" : "--text");
      pen.beginPath();
      pen.arc(x1, y, 3, 0, 7);
      pen.fill();
    });
  }

  PS.Packets = Packets;
  PS.lifeOf = life;
})((globalThis.PS = globalThis.PS || {}));
