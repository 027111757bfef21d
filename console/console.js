// The console: lists titles, plays one, and redraws the server's numbers every second.
// It uses no libraries and no other origins: all its data is from /titles, /status and /sessions.
"use strict";

const byId = (id) => document.getElementById(id);
const video = byId("video");

// The token with which this page was opened, if the server wants one: its requests need it, too.
const token = new URLSearchParams(location.search).get("token");
const address = (url) => token ? `${url}?token=${encodeURIComponent(token)}` : url;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) { count /= 1024; unit += 1; }
  return `${count.toFixed(unit && count < 100 ? 1 : 0)} ${units[unit]}`;
}

function clock(seconds) {
  const whole = Math.round(seconds);
  const two = (n) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

// The title that was chosen last.
let chosen = null;

// The URL of the session that is playing, where the browser shows its token.
let session = null;

// Gives the place of the session to the next viewer.
function leave() {
  if (session) navigator.sendBeacon(session);
  session = null;
}

addEventListener("pagehide", leave);

// A browser without native HLS (most desktop browsers) plays the whole file by byte ranges.
async function play(title) {
  const hls = video.canPlayType("application/vnd.apple.mpegurl") !== "";
  byId("playing").textContent = `${title.name}: requesting admission`;
  byId("playing").className = "";
  chosen = title;
  leave();
  if (!hls) {
    // The response is a redirect to a URL with a session token, or a refusal with its reason.
    const answer = await fetch(address(title.mp4), { headers: { Range: "bytes=0-0" } });
    if (!answer.ok) return refused(title, answer);
    video.src = answer.url;
    session = answer.url.replace(/\.mp4\?/, "/session?");
  } else {
    video.src = address(title.hls);
  }
  byId("playing").textContent = title.name;
  try {
    await video.play();
  } catch (error) {
    // Only without a user's click; a codec that the browser lacks is reported by the element.
    if (error.name === "NotAllowedError") byId("playing").textContent = `${title.name}: press play`;
  }
}

async function refused(title, answer) {
  const why = await answer.json().catch(() => ({ message: `status ${answer.status}` }));
  byId("playing").textContent = `${title.name}: ${why.message}`;
  byId("playing").className = "bad";
}

video.addEventListener("error", async () => {
  if (!video.error || !chosen) return;
  const title = chosen;
  // The element reports a refusal of the server and a codec without a decoder alike.
  const answer = await fetch(address(title.hls));
  if (!answer.ok) return refused(title, answer);
  const unknown = video.error && video.error.code === MediaError.MEDIA_ERR_SRC_NOT_SUPPORTED;
  const why = unknown ? "it has no decoder for the title's codecs" : "decoding failed";
  byId("playing").textContent = `This browser cannot play ${title.name}: ${why}. VLC and mpv may.`;
  byId("playing").className = "bad";
});

// The rows of the titles by name. A row stays as it is while its title does, so that the keyboard's
// focus and a click that has begun are not lost.
let rows = new Map();

function titleRow(title) {
  const row = document.createElement("tr");
  const name = document.createElement("td");
  if (title.mp4) {
    const button = element("button", title.name, { type: "button" });
    button.addEventListener("click", () => play(title));
    name.append(button);
  } else {
    name.textContent = `${title.name} (file)`;
  }
  row.append(
    name,
    element("td", title.duration ? clock(title.duration) : ""),
    element("td", title.bit_rate ? `${(title.bit_rate / 1e6).toFixed(1)} Mb/s` : bytes(title.bytes)),
    element("td", ""),
  );
  return row;
}

function filterTitles() {
  const wanted = byId("filter").value.toLowerCase();
  for (const [name, { row }] of rows) row.hidden = !name.toLowerCase().includes(wanted);
}

byId("filter").addEventListener("input", filterTitles);

function showTitles(titles, playing) {
  const viewers = new Map(playing.map((title) => [title.title, title.sessions]));
  byId("no-titles").hidden = titles.length > 0;
  byId("filter").hidden = titles.length < 10;
  const known = rows;
  rows = new Map(titles.map((title) => {
    const content = JSON.stringify(title);
    const old = known.get(title.name);
    return [title.name, old && old.content === content ? old : { content, row: titleRow(title) }];
  }));
  const shown = [...rows.values()].map(({ row }) => row);
  const list = byId("titles");
  const same = shown.length === list.children.length && shown.every((row, i) => row === list.children[i]);
  if (!same) list.replaceChildren(...shown);
  for (const [name, { row }] of rows) {
    const text = String(viewers.get(name) || "");
    if (row.lastChild.textContent !== text) row.lastChild.textContent = text;
  }
  filterTitles();
}

let before = null;

function showNumbers(status) {
  const rate = before ? (status.sent_bytes - before.sent_bytes) * 8 / (status.uptime - before.uptime) : 0;
  before = status;
  const refusals = status.refused.disk + status.refused.memory + status.refused.network;
  const rows = [
    ["Sessions", `${status.sessions}, ${status.active} holding a reservation`],
    ["Admitted", status.admitted],
    ["Refused", refusals ? `${refusals} (disk ${status.refused.disk}, memory ${status.refused.memory}, network ${status.refused.network})` : 0],
    ["Deadline misses", status.deadline_misses],
    ["Deadlines met", status.deadlines_met],
    ["Buffers", `${bytes(status.buffers_used)} of ${bytes(status.buffers_limit)}`],
    ["Sent", `${bytes(status.sent_bytes)}, now ${(rate / 1e6).toFixed(1)} Mb/s`],
    ["Connections", status.connections],
    ["Admission", `${status.policy}, slots of ${status.slot * 1000} ms`],
  ];
  byId("numbers").replaceChildren(...rows.flatMap(([name, value]) => {
    const bad = name === "Deadline misses" && value > 0;
    return [element("dt", name), element("dd", value, bad ? { class: "bad" } : {})];
  }));
  byId("state").textContent = status.stopping ? "stopping" : `up ${clock(status.uptime)}`;
}

// Draws the reads of each slot as bars, and the guarantee as a line.
function plot(slots) {
  const shown = slots.slice(-240);
  const top = Math.max(1, ...shown.map((slot) => Math.max(slot.reads, slot.min_read)));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 240 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "Reads in each of the last slots, and the guaranteed number");
  const draw = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    svg.append(made);
  };
  shown.forEach((slot, i) => {
    // A few reads of thousands are seen, too.
    const height = slot.reads ? Math.max(1.5, 96 * slot.reads / top) : 0;
    draw("rect", { x: 240 - shown.length + i, y: 100 - height, width: 0.9, height });
  });
  const last = shown.at(-1);
  if (last) {
    const y = 100 - 96 * last.min_read / top;
    draw("line", { x1: 0, x2: 240, y1: y, y2: y });
  }
  return svg;
}

function showDisks(disks) {
  byId("disks").replaceChildren(...disks.flatMap((disk) => {
    const last = disk.slots.at(-1) || { reads: 0 };
    const failures = disk.failures ? `, ${disk.failures} failed or damaged` : "";
    const slowdown = disk.slowdown > 0 ? `, ${(disk.slowdown * 100).toFixed(0)} % slower than calibrated` : "";
    const observed = disk.observed_slot_reads != null ? `; at least ${disk.observed_slot_reads} in each slot without idle time` : "";
    return [
      element("p", `${disk.store}: ${last.reads} of ${disk.min_read} guaranteed reads in the last slot; ${bytes(disk.bytes)} in ${disk.reads} reads of up to ${bytes(disk.read_size)}${failures}${slowdown}${observed}`, { class: "small" }),
      plot(disk.slots),
      element("p", `Each bar: the reads of a slot, ${disk.slots.length ? "the latest on the right" : "none yet"}. Red line: the guaranteed number, ${disk.min_read}. Read by ${disk.read_method}.`, { class: "small" }),
    ];
  }));
}

const SHOWN_SESSIONS = 50;

function showSessions(list) {
  const row = (cells, tag) => {
    const made = element("tr", "");
    made.append(...cells.map((cell) => element(tag, cell)));
    return made;
  };
  const seconds = (time) => time === null ? "" : `${time.toFixed(2)} s`;
  const rows = list.sessions.slice(0, SHOWN_SESSIONS).map((s) => row([
    s.session, s.title, s.store, clock(s.age), bytes(s.buffered), seconds(s.observed_slack), s.deadline_misses,
    // What the player reports of itself, if it does.
    seconds(s.cmcd?.buffer ?? null), s.cmcd?.starvations ?? "",
  ], "td"));
  const head = row([
    "Session", "Title", "Store", "Age", "In memory", "Least slack", "Deadline misses", "Player's buffer", "Ran empty",
  ], "th");
  byId("sessions").replaceChildren(...rows.length ? [head, ...rows] : []);
  const more = list.total - rows.length;
  if (more > 0) byId("sessions").append(row([`and ${more} more`], "td"));
}

// What the server says; an error is thrown with the server's words.
async function ask(url) {
  const answer = await fetch(address(url));
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.message);
  return said;
}

async function refresh() {
  try {
    const [titles, status, sessions] = await Promise.all(["/titles", "/status", "/sessions"].map(ask));
    showTitles(titles.titles, status.playing);
    showNumbers(status);
    showDisks(status.disks);
    showSessions(sessions);
  } catch (error) {
    // A request without a response fails with a TypeError.
    const silent = error instanceof TypeError || error instanceof SyntaxError;
    byId("state").textContent = silent ? "no response from the server" : error.message;
  }
  setTimeout(refresh, 1000);
}

refresh();
