// Asks the gateway every second how things are, and shows it. What it is told goes
// into the page as text and never as markup: clients choose how agents are called.
"use strict";

const EVERY = 1000, SLOW = 5000; // milliseconds; slow while something is wrong
const KEY = "justitia-key";
const $ = (id) => document.getElementById(id);
const keyed = document.body.dataset.keyed === "true";
let key = sessionStorage.getItem(KEY);
let timer = 0, asking = false;

// Numbers as people read them.

function count(value) {
  return value === null ? "–" : Math.round(value).toLocaleString("en");
}

function work(value) {
  if (value === null) return "–";
  for (const [size, sign] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (value < size) continue;
    const scaled = value / (sign === " k" ? 1e3 : size);
    return scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0) + sign;
  }
  return value >= 100 || Number.isInteger(value) ? count(value) : value.toPrecision(3);
}

function time(seconds) {
  if (seconds === null) return "–";
  if (seconds > 0 && seconds < 0.9995) return (seconds * 1000).toFixed(0) + " ms";
  if (seconds < 59.95) return seconds.toFixed(Number.isInteger(seconds) ? 0 : 1) + " s";
  const whole = Math.round(seconds);
  if (whole < 3600) return Math.floor(whole / 60) + " min " + (whole % 60) + " s";
  if (whole < 86400) return Math.floor(whole / 3600) + " h " + Math.floor(whole % 3600 / 60) + " min";
  return Math.floor(whole / 86400) + " d " + Math.floor(whole % 86400 / 3600) + " h";
}

function part(value) {
  return value === null ? "–" : (100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0) + " %";
}

// Cells that change only where what they say is another.

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function style(element, name) {
  if (element.className !== name) element.className = name;
}

function fill(bar, share, spoken) {
  const now = Math.max(0, Math.min(1, share || 0));
  const width = (100 * now).toFixed(1) + "%";
  if (bar.firstElementChild.style.width !== width) {
    bar.firstElementChild.style.width = width;
    bar.setAttribute("aria-valuenow", (100 * now).toFixed(1));
  }
  bar.setAttribute("aria-valuetext", spoken);
  bar.classList.toggle("over", share > 1);
}

function gauge(cell, share, text, label) {
  if (!cell.firstElementChild) {
    const box = document.createElement("div"), bar = document.createElement("div");
    box.className = "gauge";
    bar.className = "bar";
    bar.setAttribute("role", "meter");
    bar.setAttribute("aria-label", label);
    bar.setAttribute("aria-valuemin", "0");
    bar.setAttribute("aria-valuemax", "100");
    bar.append(document.createElement("b"));
    box.append(bar, document.createElement("span"));
    cell.append(box);
  }
  const [bar, span] = cell.firstElementChild.children;
  bar.style.visibility = share === null ? "hidden" : "";
  fill(bar, share, text);
  put(span, text);
}

/** Makes a table's body of cells: each [text, class], or a function that fills one. */
function table(id, rows) {
  const body = $(id).tBodies[0];
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, at) => {
    const row = body.rows[at] || body.insertRow();
    cells.forEach((cell, column) => {
      let place = row.cells[column];
      if (!place) {
        place = document.createElement(column === heads[id] ? "th" : "td");
        if (column === heads[id]) place.scope = "row";
        row.append(place);
      }
      if (typeof cell === "function") return cell(place);
      const [text, name = "", title = ""] = cell;
      style(place, name);
      put(place, text);
      if (place.title !== title) place.title = title;
    });
  });
}

const heads = { engines: 0, agents: 1, completions: 0, tenants: 0 };

// What there is to see.

function show(state) {
  const totals = state.totals, own = state.viewer;
  put($("about"), `${state.version} · policy ${state.policy} · dispatch ${state.dispatch} · up ${time(Math.floor(state.seconds))}`
    + (own === null ? "" : ` · as tenant ${own}`));
  put($("active"), count(totals.agents_active));
  put($("running"), count(totals.running));
  put($("waiting"), count(totals.waiting));
  put($("oldest"), totals.agents ? time(totals.oldest_seconds) : "–");
  put($("pace"), work(totals.work_a_second));
  table("engines", state.engines.map(engine));
  agents(state);
  reference(state);
  table("completions", state.completions.map((one) => [
    one.requests ? ["requests without an agent", "unnamed"] : named(one.kind, "no kind"),
    [count(one.count), "n"], [time(one.mean), "n"], [time(one.p50), "n"], [time(one.p99), "n"],
  ]));
  $("completions").hidden = !state.completions.length;
  $("none-ended").hidden = state.completions.length > 0;
  $("shares").hidden = !state.tenants.length;
  table("tenants", state.tenants.map((one) => [
    named(one.name, "all others"), [String(one.weight), "n"], [count(one.agents), "n"],
    [count(one.running), "n"], [count(one.waiting), "n"], [part(one.due), "n"],
    (cell) => gauge(cell, one.got, part(one.got), "share of the last minute"),
  ]));
  const up = state.engines.filter((one) => one.up).length, all = state.engines.length;
  const words = up === all ? "" : up ? ` · ${all - up} of ${all} engines down` : " · no engine is up";
  light(up ? "good" : "bad", "Live" + words);
}

function engine(one) {
  const most = one.capacity;
  return [
    [one.url, "name", one.models.join(", ")], [one.kind],
    one.up ? ["up", "badge"] : ["down", "down"],
    (cell) => gauge(cell, most ? one.used / most : null,
      most ? `${count(one.used)} of ${count(most)}` : "not known", "KV tokens set aside"),
    [one.slots ? `${count(one.running)} of ${count(one.slots)}` : count(one.running), "n"],
  ];
}

function named(text, otherwise) {
  return text ? [text, "name", text] : [otherwise, "name unnamed"];
}

function agents(state) {
  const rows = state.agents, several = rows.some((one) => one.tenant !== null) && state.viewer === null;
  $("agents").classList.toggle("one-tenant", !several);
  for (const head of document.querySelectorAll(".by-tenant")) head.hidden = !several;
  table("agents", rows.map((one) => [
    one.place === null ? ["runs", "n badge"] : [count(one.place), "n"],
    one.id === null ? [`request ${one.request.slice(0, 8)}`, "name unnamed", one.request] : named(one.id, ""),
    (cell) => { put(cell, one.tenant || ""); cell.hidden = !several; },
    named(one.kind, "–"),
    [work(one.tag), "n", one.tag === null ? "" : String(one.tag)],
    [one.running ? count(one.running) : "–", one.running ? "n badge" : "n"],
    [one.waiting ? count(one.waiting) : "–", "n"],
    (cell) => gauge(cell, one.predicted ? one.delivered / one.predicted : null,
      `${work(one.delivered)} of ${work(one.predicted)}`, "delivered of predicted"),
    [String(one.weight), "n"],
    [time(one.age), "n"],
    [one.latest_seconds === null ? "–" : time(one.latest_seconds), "n",
      one.latest === null ? "" : `${work(one.latest)} token-steps`],
  ]));
  $("agents").hidden = !rows.length;
  $("explained").hidden = !rows.length;
  $("nobody").hidden = rows.length > 0;
  $("more").hidden = !state.agents_left_out;
  put($("more"), `${count(state.agents_left_out)} more agents are not shown.`);
}

function reference(state) {
  const told = state.reference;
  $("reference").hidden = !told;
  $("no-reference").hidden = !!told;
  if (!told) {
    put($("no-reference"), state.tenants.length
      ? "With tenants there is a clock for each and one among them, and no single lag."
      : `The policy ${state.policy} has no fair reference.`);
    return;
  }
  put($("lag-now"), `${work(told.lag)} token-steps`);
  fill($("lag-bar"), told.allowed ? told.lag / told.allowed : 0,
    `${work(told.lag)} of ${work(told.allowed)} token-steps`);
  put($("lag-bound"), told.allowed === null
    ? "Some engine's capacity is not known, so there is no bound."
    : `Theorem B allows ${work(told.allowed)}: all KV tokens, for the longest call so far. It is about exact costs and agents of one stage.`);
  put($("starts"), told.starts
    ? `${count(told.starts)} first starts of agents that the reference is through with: ${part(1 - told.late / told.starts)} before it was`
      + (told.late ? `, ${count(told.late)} after, by ${work(told.late_mean)} in the mean and ${work(told.late_at_most)} at most.` : ".")
    : "The reference is not through with any agent that has started.");
}

// Asking.

function light(name, text) {
  style($("light"), "light " + name);
  put($("said"), text);
}

function door(wrong) {
  $("door").hidden = false;
  $("all").hidden = true;
  $("forget").hidden = true;
  put($("wrong"), wrong);
  light("", "Waits for a key");
  $("key").focus();
}

async function ask() {
  clearTimeout(timer);
  if (asking || document.hidden) return;
  if (keyed && key === null) return door("");
  asking = true;
  let next = EVERY;
  const used = key;
  try {
    const headers = used === null ? {} : { authorization: "Bearer " + used };
    const answer = await fetch("v1/state", {
      headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(10000),
    });
    if (answer.status === 401) {
      sessionStorage.removeItem(KEY);
      key = null;
      next = null;
      door(used === null ? "" : "The gateway does not know this key.");
    } else if (!answer.ok) {
      throw new Error(`it answers ${answer.status}`);
    } else {
      const state = await answer.json();
      if (used === key) {
        if (used !== null) sessionStorage.setItem(KEY, used);
        $("door").hidden = true;
        $("all").hidden = false;
        $("forget").hidden = used === null;
        show(state);
      }
    }
    document.body.classList.remove("stale");
  } catch (error) {
    next = SLOW;
    document.body.classList.add("stale");
    light("bad", "The gateway does not answer");
  } finally {
    asking = false;
  }
  if (next !== null) timer = setTimeout(ask, next);
}

$("door").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key").value.trim();
  $("key").value = "";
  if (/^[\x21-\x7e]+$/.test(key)) ask();
  else { key = null; door("A key is printable ASCII without spaces."); }
});
$("forget").addEventListener("click", () => {
  clearTimeout(timer);
  sessionStorage.removeItem(KEY);
  key = null;
  door("");
});
document.addEventListener("visibilitychange", ask);
ask();
