// The state of the page: the scenario, the disciplines beside it, what was changed while it ran, and the samples.
"use strict";

(function (PS) {
  const { disciplinePath, disciplineOf, links, valueAt } = PS.controls;
  const MOST_LANES = 4;
  const SAMPLES = 6000; // about as many in a run

  /** One discipline: its table as pairs of keys and literals, the description of its scenario, its samples. */
  const newLane = (pairs) => ({ pairs, about: null, rows: null, text: "" });

  class State extends EventTarget {
    constructor(lab) {
      super();
      Object.assign(this, { lab, base: "", lanes: [], recorded: [], steered: {}, link: 0, run: 0 });
      Object.assign(this, { now: 0, over: false, speed: 1, playing: false, interval: 0.01, waiting: 0 });
      lab.addEventListener("opened", ({ detail }) => this.opened(detail));
      lab.addEventListener("rows", ({ detail }) => this.rowsCame(detail));
      lab.addEventListener("changed", ({ detail }) => this.changed(detail));
      lab.addEventListener("refused", ({ detail }) => this.tell("mistake", detail.mistake));
    }

    tell(type, detail) {
      this.dispatchEvent(new CustomEvent(type, { detail }));
    }

    get about() {
      return this.lanes.length ? this.lanes[0].about : null;
    }

    get disciplines() {
      return this.lanes.map((lane) => JSON.parse(lane.pairs.find(([key]) => key === "name")[1]));
    }

    /** Takes a scenario with further disciplines, each as pairs. Fails with a mistake; then nothing has changed. */
    async load(base, beside) {
      const about = await this.lab.ask("check", { text: base });
      Object.assign(this, { base, recorded: [], steered: {}, link: 0 });
      this.setLanes([disciplineOf(about), ...beside].slice(0, MOST_LANES).map(newLane));
      this.lanes.forEach((lane) => (lane.about = about));
      this.interval = Math.min(0.1, Math.max(0.005, about.duration_s / SAMPLES));
      this.tell("loaded");
      await this.restart(0);
    }

    /** Replaces the disciplines; samples that are still to come belong to those before. */
    setLanes(lanes) {
      this.lanes = lanes;
      this.run += 1;
    }

    /** Takes complete texts, one for each discipline, as a link has them. */
    async loadTexts(texts) {
      const beside = [];
      for (const text of texts.slice(1)) beside.push(disciplineOf(await this.lab.ask("check", { text })));
      await this.load(texts[0], beside);
    }

    /** Writes the text of each discipline: the scenario with its table, and with what was changed meanwhile. */
    async texts() {
      const path = disciplinePath(this.about);
      const write = async (lane, i) => {
        const text = i === 0 ? this.base : await this.lab.ask("setTable", { text: this.base, path, table: lane.pairs });
        return [text.trimEnd(), ...this.recorded.map((entry) => entry.trimEnd())].join("\n\n") + "\n";
      };
      return Promise.all(this.lanes.map(write));
    }

    /** Runs again from the start, at once up to `until`; what was changed meanwhile happens again. */
    async restart(until) {
      Object.assign(this, { waiting: until, stale: true });
      this.restarting = this.restarting || this.reopenUntilFresh().finally(() => (this.restarting = null));
      return this.restarting;
    }

    /** Opens again as often as something changed meanwhile. */
    async reopenUntilFresh() {
      while (this.stale) {
        this.stale = false;
        await this.reopen();
      }
    }

    async reopen() {
      const texts = await this.texts();
      texts.forEach((text, i) => (this.lanes[i].text = text));
      this.run += 1;
      this.lab.send("open", { run: this.run, texts, interval: this.interval, until: this.waiting });
      this.tell("texts");
    }

    opened({ run, opened }) {
      if (run !== this.run) return;
      const wrong = opened.find((one) => one.mistake);
      if (wrong) return this.tell("mistake", wrong.mistake);
      opened.forEach(({ about, width }, i) => {
        const rows = new PS.Rows(width, about.queues.length, about.flows.length, this.interval);
        Object.assign(this.lanes[i], { about, rows });
      });
      Object.assign(this, { now: 0, over: false });
      this.tell("opened");
    }

    rowsCame(message) {
      if (message.run !== this.run) return;
      message.rows.forEach((samples, i) => this.lanes[i].rows.add(samples));
      this.now = message.now;
      if (this.now >= this.waiting || message.over) this.waiting = 0;
      if (message.broken) this.tell("mistake", message.broken);
      if (message.over && !this.over) {
        this.over = true;
        this.playing = false;
        this.tell("over");
      }
    }

    play(playing) {
      if (playing && this.over) return this.again();
      this.playing = playing;
      this.lab.send("speed", { speed: playing ? this.speed : 0 });
      this.tell("playing");
    }

    setSpeed(speed) {
      this.speed = speed;
      if (this.playing) this.lab.send("speed", { speed });
    }

    toTheEnd() {
      this.playing = true;
      this.lab.send("speed", { speed: Infinity });
      this.tell("playing");
    }

    /** Starts from the beginning with the values that the sliders have now. */
    async again() {
      await this.fold();
      await this.restart(0);
      this.play(true);
    }

    /** Writes what was changed while it ran into the scenario, so that it holds from the beginning. */
    async fold() {
      const names = this.about.links;
      for (const [i, [path]] of links(this.about).entries()) {
        for (const [key, value] of Object.entries(this.steered[names[i]] || {})) {
          this.base = await this.lab.ask("set", { text: this.base, path: [...path, key], literal: PS.units.literal(value) });
        }
      }
      Object.assign(this, { recorded: [], steered: {} });
    }

    /** Changes a link from now on. Before the start and after the end there is no now: then it changes the scenario. */
    async steer({ path, link, key, step = key, direction, literal }) {
      if (this.now > 0 && !this.over) {
        this.steered[link] = { ...this.steered[link], [key]: JSON.parse(literal) };
        this.lab.send("change", { link, keys: `${step} = ${literal}${direction ? `\ndirection = "${direction}"` : ""}` });
      } else {
        await this.fold();
        await this.edit([...path, key], literal);
      }
    }

    changed({ run, entry }) {
      if (run !== this.run || !entry) return;
      this.recorded.push(entry);
      this.lanes.forEach((lane) => (lane.text = `${lane.text.trimEnd()}\n\n${entry}`));
      this.tell("texts");
    }

    /** Sets a value of the scenario and runs the past again with it. */
    async edit(path, literal) {
      await this.attempt(async () => {
        this.base = await this.lab.ask("set", { text: this.base, path, literal });
      });
    }

    /** Replaces the table of a discipline and runs the past again. */
    async setDiscipline(lane, pairs) {
      await this.attempt(async () => {
        lane.pairs = pairs;
        if (lane !== this.lanes[0]) return;
        this.base = await this.lab.ask("setTable", { text: this.base, path: disciplinePath(this.about), table: pairs });
      });
    }

    async addLane(name) {
      if (this.lanes.length >= MOST_LANES) return;
      this.setLanes([...this.lanes, { ...newLane([["name", JSON.stringify(name)]]), about: this.about }]);
      await this.attempt(async () => {});
    }

    async removeLane(lane) {
      const rest = this.lanes.filter((one) => one !== lane);
      if (!rest.length) return;
      const path = disciplinePath(this.about);
      await this.attempt(async () => {
        if (lane === this.lanes[0]) {
          this.base = await this.lab.ask("setTable", { text: this.base, path, table: rest[0].pairs });
        }
        this.setLanes(rest);
      });
    }

    async attempt(work) {
      try {
        await work();
        this.tell("mistake", null);
        await this.restart(this.over ? Infinity : Math.max(this.now, this.waiting));
      } catch (mistake) {
        this.tell("mistake", mistake.text === undefined ? { text: String(mistake), line: 0, column: 0 } : mistake);
      }
    }

    pickLink(link) {
      this.link = link;
      this.tell("loaded");
    }
  }

  PS.State = State;
  PS.MOST_LANES = MOST_LANES;
  PS.valueAt = valueAt;
})((globalThis.PS = globalThis.PS || {}));
