// The samples of one run, as they came, with smoothed goodput.
"use strict";

(function (PS) {
  const SMOOTH_S = 0.5; // goodput is an exponential mean over this time

  /** Columns of a queue and of a flow in a row, as in crates/web/src/samples.rs. */
  const QUEUE = { bytes: 0, delay: 1, drops: 2, marks: 3, lost: 4, sent: 5, rate: 6, linkDelay: 7 };
  const QUEUE_WIDTH = 8;
  const FLOW = { cwnd: 0, srtt: 1, goodput: 2 };
  const FLOW_WIDTH = 3;

  class Rows {
    constructor(width, queues, flows, interval) {
      Object.assign(this, { width, queues, flows, interval, count: 0 });
      this.data = new Float32Array(width * 1024);
      this.part = Math.min(1, interval / SMOOTH_S);
      this.totals = new Map(); // of columns that are counted
    }

    queue(column, queue = 0) {
      return 1 + QUEUE_WIDTH * queue + QUEUE[column];
    }

    flow(column, flow) {
      return 1 + QUEUE_WIDTH * this.queues + FLOW_WIDTH * flow + FLOW[column];
    }

    at(row, column) {
      return this.data[row * this.width + column];
    }

    /** Returns the mean of a column over some rows, of those in which it has a value; null if none has. */
    mean(column, first = 0, last = this.count) {
      let [all, known] = [0, 0];
      for (let row = first; row < last; row++) {
        const value = this.at(row, column);
        if (Number.isNaN(value)) continue;
        all += value;
        known += 1;
      }
      return known ? all / known : null;
    }

    /** Adds the samples of a message; what there is not is NaN. */
    add(samples) {
      const begin = this.count * this.width;
      if (begin + samples.length > this.data.length) {
        const larger = new Float32Array(Math.max(this.data.length * 2, begin + samples.length));
        larger.set(this.data.subarray(0, begin));
        this.data = larger;
      }
      this.data.set(samples, begin);
      const first = this.count;
      this.count += samples.length / this.width;
      for (let row = first; row < this.count; row++) this.smooth(row);
    }

    smooth(row) {
      const here = row * this.width;
      for (let queue = 0; queue < this.queues; queue++) {
        const sent = here + this.queue("sent", queue);
        if (row > 0) this.data[sent] = this.mixed(sent);
        for (const column of ["drops", "marks", "lost"]) this.total(column, queue, this.data[here + this.queue(column, queue)]);
      }
      for (let flow = 0; row > 0 && flow < this.flows; flow++) {
        const goodput = here + this.flow("goodput", flow);
        this.data[goodput] = this.mixed(goodput);
      }
    }

    mixed(place) {
      const before = this.data[place - this.width];
      if (Number.isNaN(before)) return this.data[place]; // there was none: the flow had not begun
      return before + (this.data[place] - before) * this.part;
    }

    total(column, queue, value) {
      const key = `${column}${queue}`;
      this.totals.set(key, (this.totals.get(key) || 0) + value);
    }

    /** Returns how many were counted in a column so far. */
    counted(column, queue = 0) {
      return this.totals.get(`${column}${queue}`) || 0;
    }

    /** Returns the row at a time, or the nearest one. */
    rowAt(seconds) {
      return Math.max(0, Math.min(this.count - 1, Math.round(seconds / this.interval) - 1));
    }
  }

  PS.Rows = Rows;
})((globalThis.PS = globalThis.PS || {}));
