// The live page of a gateway: asks once a second, and shows the answer with the charts and tables of the page kit.
(() => {
  "use strict";
  const by = (id) => document.getElementById(id);
  const make = (tag, props = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), props);
    made.append(...children);
    return made;
  };
  const CHARTS = [
    ["Rate", "Mbit/s", "What passes, below the rate that is set. What a link carries has the unit of bits of IP packets.", [["down_bps", "download", 0, 1e-6], ["up_bps", "upload", 1, 1e-6], ["down_set_bps", "download, set", 6, 1e-6], ["up_set_bps", "upload, set", 7, 1e-6]]],
    ["Queueing delay", "ms", "How long packets waited in the queue here, the mean of each second (for a day: the largest of ten seconds), and the queue behind the WAN, in the modem or at the provider.", [["down_delay_ms", "download", 0, 1], ["up_delay_ms", "upload", 1, 1], ["queue_ms", "behind the WAN", 3, 1]]],
    ["Drops", "packets", "Packets that the discipline dropped, and those that went past the shaper. With PINK there are none.", [["down_drops", "download", 0, 1], ["up_drops", "upload", 1, 1], ["past", "past the shaper", 3, 1]]],
    ["Round trips", "ms", "The halves of the round trips of connections: beyond the WAN now and at least, and on the side of the LAN at least; medians.", [["wan_ms", "WAN, now", 0, 1], ["wan_least_ms", "WAN, least", 2, 1], ["lan_least_ms", "LAN, least", 4, 1]]],
    ["Windows written", "", "The part of the windows that hosts advertised which was written: 1 if none was changed. A window in a download governs the upload, and the other way round.", [["down_window", "in downloads", 0, 1], ["up_window", "in uploads", 1, 1]]],
    ["Connections", "", "Connections in the table.", [["flows", "connections", 0, 1]]],
  ];
  let columns = [], rows = [], span = 600, last = null, failed = 0;

  const figure = ([title, unit, read, lines], place) => {
    const about = { title, x: { label: "time ago", unit: "s" }, y: { label: title.toLowerCase(), unit, zero: true }, xs: [-1, 0], sync: "live", lines: lines.map(([, name, c]) => ({ name, c, y: [null, null] })) };
    const plot = make("div", { className: "plot", tabIndex: 0 });
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-roledescription", "chart");
    plot.setAttribute("aria-label", `${title} over time: ${lines.map(([, name]) => name).join(", ")}. Arrow keys read values, plus and minus zoom.`);
    const numbers = make("details", { className: "numbers" }, make("summary", {}, "Numbers of this chart"));
    const told = make("script", { type: "application/json", textContent: JSON.stringify(about) });
    const made = make("figure", { className: "chart" }, plot, make("div", { className: "tools" }), make("figcaption", {}, make("details", {}, make("summary", {}, "How to read this"), make("p", {}, read)), numbers), told);
    place.append(make("div", {}, make("h3", {}, title), made));
  };
  CHARTS.forEach((one) => figure(one, by("charts")));

  // The kit has made its charts when all scripts have run; then they get data.
  const draw = () => {
    const kit = window.penstockPage;
    if (!kit || rows.length < 2) return;
    const now = rows[rows.length - 1][0], xs = rows.map((row) => row[0] - now);
    kit.charts.forEach((chart, i) => {
      chart.about.xs = xs;
      chart.lines.forEach((line, k) => {
        const [column, , , scale] = CHARTS[i][3][k], at = columns.indexOf(column) + 1;
        line.x = xs;
        line.y = rows.map((row) => (row[at] == null ? null : row[at] * scale));
      });
      if (!chart.drawn) return;
      const whole = !chart.zoomed;
      chart.data = chart.joined();
      chart.drawn.setData(chart.data, whole);
    });
  };

  const digits = (value, most = 4) => (value == null ? "–" : value.toLocaleString("en", { maximumSignificantDigits: most }));
  const mbps = (bps) => (bps == null ? "–" : `${digits(bps / 1e6)} Mbit/s`);
  const ms = (value) => (value == null ? "–" : `${digits(value, 3)} ms`);
  const whole = (value) => (value == null ? "–" : value.toLocaleString("en"));
  const same = (place, key, fill) => {
    if (place.dataset.shown === key) return;
    place.dataset.shown = key;
    place.textContent = "";
    fill();
  };

  const tile = (label, value, wrong) => make("li", {}, make("b", { className: wrong ? "wrong" : "" }, value), make("span", {}, label));
  const table = (place, heads, lines, left = 1) => same(place, JSON.stringify(lines), () => {
    const cells = (tag, line, scope) => line.map((text, i) => {
      const cell = make(i === 0 ? "th" : tag, { className: i < left ? "" : "n" }, text);
      if (i === 0 || tag === "th") cell.scope = i === 0 && tag === "td" ? "row" : scope;
      return cell;
    });
    place.append(make("thead", {}, make("tr", {}, ...cells("th", heads, "col"))), make("tbody", {}, ...lines.map((line) => make("tr", {}, ...cells("td", line, "col")))));
  });

  const drops = (way) => way.dropped.early + way.dropped.overflow + way.dropped.dequeue;
  const counters = ({ forward: down, reverse: up, ...status }) => {
    const both = (name, of) => [name, whole(of(down, 0)), whole(of(up, 1))];
    return [
      ["discipline", down.aqm, up.aqm],
      both("rate set, bit/s", (way) => way.rate_bps),
      ...(status.link.estimate_bps ? [both("rate estimated, bit/s", (_, at) => status.link.estimate_bps[at])] : []),
      ...[["at the interface, bytes", "wan_bytes"], ["through the gateway, bytes", "through_bytes"], ["beside the gateway, bytes", "beside_bytes"], ["refused, bytes", "refused_bytes"]].map(([name, key]) => [name, whole(status.account.download[key]), whole(status.account.upload[key])]),
      ...Object.keys(status.account.seconds).map((cause) => [`beside, ${cause}, bytes`, whole(status.account.download.causes[cause]), whole(status.account.upload.causes[cause])]),
      ["beside the gateway, seconds", digits(Object.values(status.account.seconds).reduce((sum, one) => sum + one, 0)), ""],
      both("arrived, packets", (way) => way.arrived.packets), both("arrived, bytes", (way) => way.arrived.bytes),
      both("delivered, packets", (way) => way.delivered.packets), both("delivered, bytes", (way) => way.delivered.bytes),
      both("dropped on arrival", (way) => way.dropped.early), both("dropped, no room", (way) => way.dropped.overflow), both("dropped from the queue", (way) => way.dropped.dequeue),
      both("marked CE", (way) => way.marked), both("not read in time", (way) => way.unread),
      both("waiting, packets", (way) => way.waiting.packets),
      both("segments", (_, at) => status.windows[at].segments), both("windows written anew", (_, at) => status.windows[at].rewritten),
      ...(status.scone ? [both("SCONE packets seen", (_, at) => status.scone[at].seen), both("SCONE packets lowered", (_, at) => status.scone[at].lowered), both("flows with SCONE", (_, at) => status.scone[at].flows)] : []),
      ["queueing delay, median", ms(down.sojourn_ms.p50), ms(up.sojourn_ms.p50)], ["queueing delay, 90 %", ms(down.sojourn_ms.p90), ms(up.sojourn_ms.p90)], ["queueing delay, 99 %", ms(down.sojourn_ms.p99), ms(up.sojourn_ms.p99)],
    ];
  };

  const MOST_HOSTS = 100;
  // Hosts with an agent, who takes more than its budget first. What no packet tells is not known.
  const budgets = ({ c2ml, enforcement }) => {
    by("hosts").hidden = by("to-budgets").hidden = !c2ml;
    if (!c2ml) return;
    const seen = new Map((enforcement?.nodes ?? []).map((one) => [one.node, one])), there = new Set(c2ml.nodes.map((one) => one.node));
    const gone = (enforcement?.nodes ?? []).filter((one) => !there.has(one.node)).map(({ node, budget_bps, address }) => ({ node, budget_bps, name: address, gone: true }));
    const hosts = [...c2ml.nodes, ...gone].sort((a, b) => Boolean(seen.get(b.node)?.over) - Boolean(seen.get(a.node)?.over) || a.node - b.node);
    const state = (one) => (one.gone ? "no session, lease goes on" : one.budget_bps == null ? "session, no budget" : `session for ${whole(Math.round(one.since_s))} s`);
    const verdict = (one, use) => (!use ? "–" : use.over ? (enforcement.enforces ? "takes more: refused" : "takes more than its budget") : "keeps to it");
    const line = (one) => {
      const use = seen.get(one.node);
      return [one.name || `node ${one.node}`, state(one), verdict(one, use), one.class == null ? "–" : whole(one.class), whole(one.weight), one.floor_bps ? mbps(one.floor_bps) : "–", mbps(one.budget_bps), one.gone ? "–" : one.claim_bps == null ? "all" : mbps(one.claim_bps), mbps(use?.offered_bps), mbps(use?.used_bps), whole(use?.policed.packets)];
    };
    // Without packets nothing is known of what they send.
    const seenOnly = [2, 8, 9, 10], known = (cells) => (enforcement ? cells : cells.filter((_, i) => !seenOnly.includes(i)));
    table(by("budgets-table"), known(["Host", "State", "Verdict", "Class", "Weight", "Floor", "Budget", "Can use", "Sends", "Passes", "Refused, packets"]), hosts.slice(0, MOST_HOSTS).map(line).map(known), enforcement ? 3 : 2);
    by("budgets-more").textContent = hosts.length > MOST_HOSTS ? `${whole(hosts.length - MOST_HOSTS)} more are in penstock-gateway status.` : "";
    by("budgets-how").textContent = !c2ml.serves ? "This is a standby: the gateway before it is there, and serves them." : !enforcement ? "No packet passes here, so what they send is not seen." : enforcement.enforces ? "What exceeds a budget is refused." : "What they send is counted; nothing is refused.";
    const cut = c2ml.floors_bps > c2ml.rate_bps;
    by("budget-tiles").replaceChildren(
      tile(`given, of ${mbps(c2ml.rate_bps)}`, mbps(c2ml.granted_bps)), tile(`have a budget, of ${whole(c2ml.enrolled)} that have enrolled`, whole(c2ml.holders)),
      ...(c2ml.floors_bps ? [tile(cut ? "floors, which are cut" : "floors", mbps(c2ml.floors_bps), cut)] : []),
      ...(enforcement ? [tile("passes of hosts with an agent", mbps(enforcement.used_bps)), tile("take more than their budgets", whole(enforcement.over), enforcement.over > 0), tile("for hosts without a session", mbps(enforcement.rest_bps))] : []),
      ...(enforcement?.enforces ? [tile("packets refused, with a session", whole(enforcement.sessions.policed.packets)), tile("packets refused, without", whole(enforcement.strangers.policed.packets))] : []),
    );
  };

  const warn = (sentences) => {
    same(by("marks"), JSON.stringify(sentences), () => by("marks").append(...sentences.map(([text, className]) => make("li", { className }, text))));
    by("marks").hidden = !sentences.length;
  };

  const show = (told) => {
    const { status, login } = told;
    if (!status?.state) return;
    by("logout").hidden = !login;
    document.querySelectorAll(".of-link").forEach((one) => { one.hidden = !status.forward; });
    budgets(status);
    if (status.forward) return showLink(told);
    by("lead").textContent = `Budgets for hosts, for ${whole(Math.round(status.elapsed_s))}\u00a0s. No packet passes here.`;
    return warn(status.marks.map((text) => [text, ""]));
  };

  const showLink = ({ status, flows, nodes, row, role, columns: names }) => {
    columns = names;
    const value = (name) => (row ? row[names.indexOf(name) + 1] : null);
    const { forward: down, reverse: up, link } = status;
    by("title").textContent = `Penstock gateway: ${status.wan}`;
    by("lead").textContent = `${status.state}, for ${whole(Math.round(status.elapsed_s))}\u00a0s. Rates come from: ${link.source.from} (${link.source.state.replace("_", " ")}).`;
    by("change").hidden = role !== "operator";
    warn([...status.marks.map((text) => [text, ""]), ...link.remarks.map((text) => [text, "remark"])]);
    const lost = drops(down) + drops(up), { share } = status.account.last_minute;
    by("tiles").replaceChildren(
      tile(`download, of ${mbps(down.rate_bps)}`, mbps(value("down_bps"))), tile(`upload, of ${mbps(up.rate_bps)}`, mbps(value("up_bps"))),
      tile("delay in the queue, download", ms(value("down_delay_ms"))), tile("delay in the queue, upload", ms(value("up_delay_ms"))),
      tile("packets dropped since the start", whole(lost)), tile("beside the shaper in the last minute", `${digits(100 * share, 2)} %`, share > 0.01),
      tile("round trip beyond the WAN", ms(link.wan_ms)), tile("connections", whole(status.flows.entries)),
      ...["download", "upload"].flatMap((way, at) => (status.calls?.[at] ? [tile(`MOS of calls, ${way}, estimated`, status.calls[at].mos_estimate.toFixed(1))] : [])),
    );
    const entry = (one) => [one.name, one.provisioned === false ? `${one.kind}, not provisioned` : one.kind, mbps(one.rate_bps[0]), mbps(one.rate_bps[1]), whole(one.bytes[0]), whole(one.bytes[1])];
    const heads = ["down", "up", "down, bytes", "up, bytes"];
    table(by("nodes"), ["Subscriber", "Flows", ...heads], nodes.entries.map(entry), 2);
    table(by("flows-table"), ["Flow", "Protocol", ...heads], flows.entries.map(entry), 2);
    const named = status.subscribers ?? [], part = ({ sent, dropped, waiting }) => [whole(sent.bytes), whole(dropped), whole(waiting.packets)];
    by("tree").hidden = !named.length;
    table(by("parts-table"), ["Subscriber", "Discipline", "down, bytes", "dropped", "waiting", "up, bytes", "dropped", "waiting"], [...named.slice(0, 20), ...named.slice(20).slice(-1)].map((one) => [one.name ?? "all others", one.forward.aqm, ...part(one.forward), ...part(one.reverse)]), 2);
    const callers = status.callers ?? [], gone = (call) => (call ? `${digits(100 * (call.lost + call.late), 2)} %` : "–"), mos = (call) => (call ? call.mos_estimate.toFixed(1) : "–");
    by("calls").hidden = !callers.length;
    table(by("calls-table"), ["Subscriber", "MOS, down", "delay", "lost", "MOS, up", "delay", "lost"], callers.slice(0, 20).map((one) => [one.name ?? "all others", ...[one.download, one.upload].flatMap((call) => [mos(call), ms(call?.delay_ms), gone(call)])]));
    table(by("counters"), ["Counter", "Download", "Upload"], counters(status));
    const events = [...status.events].reverse();
    same(by("events-list"), JSON.stringify(events), () => by("events-list").append(...(events.length ? events : [{ what: "Nothing has happened." }]).map(({ at_s, what }) => make("li", {}, at_s == null ? what : `${digits(at_s)} s: ${what}`))));
    if (row && row[0] !== rows[rows.length - 1]?.[0]) rows.push(row);
    rows = rows.filter((one) => one[0] > rows[rows.length - 1][0] - span);
    draw();
  };

  const load = async () => {
    const asked = span, answer = await fetch(`/api/history?span=${asked}`);
    if (!answer.ok) return;
    const told = await answer.json();
    if (asked !== span) return;
    columns = told.columns;
    rows = told.rows;
    draw();
  };
  const ask = async () => {
    try {
      const answer = await fetch("/api/now");
      if (answer.status === 401) return location.assign("/");
      if (!answer.ok) throw new Error(answer.status);
      last = await answer.json();
      show(last);
      failed = 0;
    } catch (error) {
      failed += 1;
      if (failed === 3) by("lead").textContent = "The gateway does not answer: it has ended, or the way to it is cut. The numbers are old.";
    }
    document.getElementById("content").classList.toggle("gone", failed >= 3);
    return undefined;
  };

  document.querySelectorAll("[data-span]").forEach((button) => button.addEventListener("click", () => {
    span = Number(button.dataset.span);
    document.querySelectorAll("[data-span]").forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
    load();
  }));
  by("change").addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = new FormData(event.target), values = {}, order = { values };
    ["rate", "reverse_rate"].forEach((key) => form.get(key) && (values[key] = form.get(key)));
    if (form.get("for")) order.for = form.get("for");
    const answer = await fetch("/api/set", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(order) });
    by("said").textContent = answer.ok ? "Set." : await answer.text();
    ask();
  });
  addEventListener("load", async () => {
    await load();
    await ask();
    setInterval(ask, 1000);
  });
})();
