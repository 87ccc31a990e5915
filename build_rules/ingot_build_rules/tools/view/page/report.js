"use strict";
// The page of `ingot report`: everything is drawn from the data in the page; nothing is fetched.
const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 190, height: 40, dx: 210, dy: 78 };
let data, chosen = -1, words = "", tab = "overview";

const make = (name, attributes = {}, ...children) => {
  const isDrawn = ["svg", "g", "rect", "path", "text", "line", "circle", "title"].includes(name);
  const element = isDrawn ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null).map((child) => child instanceof Node ? child : String(child)));
  return element;
};

const scaled = (value, units, base) => {
  let at = 0;
  while (Math.abs(value) >= base && at < units.length - 1) { value /= base; at += 1; }
  return `${value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3)} ${units[at]}`;
};
const bytes = (value) => value === null || value === undefined ? "" : scaled(value, ["B", "kB", "MB", "GB", "TB"], 1000);
const count = (value) => value === null || value === undefined ? "" : scaled(value, ["", "k", "M", "G", "T"], 1000);
const seconds = (value) => value === null || value === undefined ? "" : scaled(value * 1e9, ["ns", "us", "ms", "s"], 1000);
const rate = (value) => Number.isFinite(value) ? scaled(value, ["", "k", "M", "G", "T"], 1000) : "";
const names = (step) => step.step === "copy" ? `copy ${step.source} to ${step.device}` : step.nodes.map(([name]) => name).join(", ") || step.kind || step.kernel;
const hue = (text) => [...text].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 360, 7);
const colour = (kind) => `hsl(${hue(kind)} 55% 55%)`;

const isFound = (step) => words !== "" && searchText(step).includes(words);
const searchText = (step) => [names(step), step.kernel, step.kind, step.device, ...step.nodes.map(([, op]) => op), ...(step.writes || []), ...(step.reads || [])].join(" ").toLowerCase();

function table(columns, rows, options = {}) {
  // columns: [title, value(row), {number, shown}]; a click on a title sorts.
  const body = make("tbody");
  let order = rows.slice(), by = -1, sign = 1;
  const fill = () => body.replaceChildren(...order.map((row) => {
    const line = make("tr", options.attributes ? options.attributes(row) : {});
    for (const [, value, style = {}] of columns) {
      const shown = style.shown ? style.shown(row) : value(row);
      line.append(make("td", { class: style.number ? "number" : "wrap" }, shown instanceof Node ? shown : String(shown ?? "")));
    }
    return line;
  }));
  const sort = (at) => {
    const value = columns[at][1];
    sign = by === at ? -sign : columns[at][2]?.number ? -1 : 1;
    by = at;
    order = rows.slice().sort((a, b) => sign * (value(a) > value(b) ? 1 : value(a) < value(b) ? -1 : 0));
    fill();
  };
  fill();
  const head = make("tr", {}, ...columns.map(([title, , style = {}], at) => make("th", { class: `sortable${style.number ? " number" : ""}`, onclick: () => sort(at) }, title)));
  return make("table", {}, make("thead", {}, head), body);
}

const facts = (pairs) => make("table", {}, ...pairs.filter(([, value]) => value !== "" && value !== null).map(([name, value]) => make("tr", {}, make("th", {}, name), make("td", { class: "wrap" }, value))));
const spec = (tensor) => `${tensor.name}: ${tensor.dtype}[${tensor.shape.join(", ")}]`;

function overview() {
  const steps = data.launches, total = steps.reduce((sum, step) => sum + (step.seconds || 0), 0);
  const measured = data.measured;
  const parts = [make("h2", {}, "Bundle"), facts([
    ["model", data.model], ["root digest", make("code", {}, data.digest)], ["file", bytes(data.size_bytes)],
    ["shown variant", data.target], ["inputs", data.inputs.map(spec).join("; ")], ["outputs", data.outputs.map(spec).join("; ")],
    ["sizes of the call", Object.entries(data.shapes).map(([name, shape]) => `${name} = [${shape.join(", ")}]`).join("; ")],
    ["refused", data.problem],
    ["launches", `${steps.filter((step) => step.step === "launch").length} of ${Object.keys(data.assembly).length} kernels`],
    ["operations", count(steps.reduce((sum, step) => sum + (step.operations || 0), 0))],
    ["workspace", data.pools.map((pool) => `${pool.device}: ${bytes(pool.size_bytes)}`).join("; ")],
  ])];
  parts.push(make("h2", {}, "Time"));
  if (measured) parts.push(facts([
    ["call", `median ${seconds(measured.seconds.p50)}, p10 ${seconds(measured.seconds.p10)}, p90 ${seconds(measured.seconds.p90)} (${measured.calls} calls, ${measured.threads} thread${measured.threads > 1 ? "s" : ""})`],
    ["launches, one by one", seconds(total)],
    ["this machine", `${rate(measured.limits.operations_per_second)}op/s and ${rate(measured.limits.bytes_per_second)}B/s, measured by multiply-adds in registers and a copy`],
  ]));
  else parts.push(make("p", { class: "soft" }, data.unmeasured || "Nothing was measured."));
  parts.push(make("h2", {}, "Kinds of kernels"), kinds(steps, total));
  parts.push(make("h2", {}, "Variants in the file"), table([
    ["target", (row) => row.target], ["kernels", (row) => row.kernel_count, { number: true }],
    ["code", (row) => data.memory_bytes[row.target].code_bytes, { number: true, shown: (row) => bytes(data.memory_bytes[row.target].code_bytes) }],
    ["weights", (row) => data.memory_bytes[row.target].weights_bytes, { number: true, shown: (row) => bytes(data.memory_bytes[row.target].weights_bytes) }],
    ["CPU features that it needs", (row) => row.features.join(" ")],
  ], data.variants));
  return parts;
}

function kinds(steps, total) {
  const rows = new Map();
  for (const step of steps) {
    const row = rows.get(step.kind) || { kind: step.kind, count: 0, seconds: 0, operations: 0, bytes: 0 };
    row.count += 1; row.seconds += step.seconds || 0; row.operations += step.operations || 0; row.bytes += step.bytes || 0;
    rows.set(step.kind, row);
  }
  const share = (row) => make("span", {}, make("span", { class: "bar", style: `width:${total ? 120 * row.seconds / total : 0}px;background:${colour(row.kind)}` }), ` ${total ? (100 * row.seconds / total).toFixed(1) + " %" : ""}`);
  return table([
    ["kind", (row) => row.kind], ["launches", (row) => row.count, { number: true }],
    ["time", (row) => row.seconds, { number: true, shown: (row) => total ? seconds(row.seconds) : "" }],
    ["share", (row) => row.seconds, { shown: share }],
    ["operations", (row) => row.operations, { number: true, shown: (row) => count(row.operations) }],
    ["bytes", (row) => row.bytes, { number: true, shown: (row) => bytes(row.bytes) }],
  ], [...rows.values()].sort((a, b) => b.seconds - a.seconds || b.operations - a.operations));
}

function kernels() {
  const total = data.launches.reduce((sum, step) => sum + (step.seconds || 0), 0);
  const rows = data.launches.map((step, at) => ({ ...step, at }));
  const shown = words === "" ? rows : rows.filter(isFound);
  return [make("p", { class: "soft" }, `${shown.length} of ${rows.length} steps. A click shows the kernel.`), table([
    ["#", (row) => row.at, { number: true }],
    ["nodes", (row) => names(row)], ["kind", (row) => row.kind], ["device", (row) => row.device],
    ["writes", (row) => (row.writes || []).join(" ")],
    ["time", (row) => row.seconds ?? -1, { number: true, shown: (row) => seconds(row.seconds) }],
    ["share", (row) => row.seconds ?? -1, { number: true, shown: (row) => row.seconds ? `${(100 * row.seconds / total).toFixed(1)} %` : "" }],
    ["operations", (row) => row.operations ?? -1, { number: true, shown: (row) => count(row.operations) }],
    ["bytes", (row) => row.bytes ?? -1, { number: true, shown: (row) => bytes(row.bytes) }],
    ["op/s", (row) => row.operations / row.seconds || -1, { number: true, shown: (row) => row.seconds ? rate(row.operations / row.seconds) : "" }],
  ], shown, { attributes: (row) => ({ class: `step${row.at === chosen ? " chosen" : ""}${isFound(row) ? " found" : ""}`, onclick: () => choose(row.at) }) })];
}

function roofline() {
  const limits = data.measured?.limits, size = { width: 980, height: 560, left: 70, bottom: 50, top: 20, right: 20 };
  const points = data.launches.map((step, at) => ({ step, at })).filter(({ step }) => step.seconds && step.operations > step.bytes / 100);
  if (!limits || !points.length) return [make("p", { class: "soft" }, data.unmeasured || "Nothing was measured, or no kernel has a record of its loops.")];
  const xs = points.map(({ step }) => step.operations / step.bytes), ys = points.map(({ step }) => step.operations / step.seconds);
  const peak = Math.max(limits.operations_per_second, ...ys), ridge = peak / limits.bytes_per_second;
  const low = { x: Math.min(...xs, ridge / 4) / 2, y: Math.min(...ys) / 2 }, high = { x: Math.max(...xs, ridge * 4) * 2, y: peak * 2 };
  const along = (value, from, to, start, end) => start + (Math.log(value / from) / Math.log(to / from)) * (end - start);
  const x = (value) => along(value, low.x, high.x, size.left, size.width - size.right);
  const y = (value) => along(value, low.y, high.y, size.height - size.bottom, size.top);
  const drawing = make("svg", { id: "roofline", viewBox: `0 0 ${size.width} ${size.height}`, style: "max-width:100%;max-height:75vh", role: "img" });
  for (const [from, to, place, isX] of [[low.x, high.x, x, true], [low.y, high.y, y, false]])
    for (let power = Math.ceil(Math.log10(from)); power <= Math.log10(to); power += 1) {
      const at = place(10 ** power);
      drawing.append(isX ? make("line", { class: "axis", x1: at, x2: at, y1: size.top, y2: size.height - size.bottom }) : make("line", { class: "axis", x1: size.left, x2: size.width - size.right, y1: at, y2: at }));
      drawing.append(make("text", isX ? { class: "soft", x: at, y: size.height - size.bottom + 18, "text-anchor": "middle" } : { class: "soft", x: size.left - 6, y: at + 4, "text-anchor": "end" }, rate(10 ** power)));
    }
  drawing.append(make("text", { x: size.width / 2, y: size.height - 10, "text-anchor": "middle" }, "operations per byte touched"), make("text", { x: size.left, y: 12 }, "operations per second"));
  drawing.append(make("path", { fill: "none", stroke: "currentColor", "stroke-width": 1.5, d: `M${x(Math.max(low.x, low.y / limits.bytes_per_second))} ${y(Math.max(low.y, low.x * limits.bytes_per_second))}L${x(ridge)} ${y(peak)}L${x(high.x)} ${y(peak)}` }));
  const most = Math.max(...points.map(({ step }) => step.seconds));
  for (const { step, at } of points)
    drawing.append(make("circle", { class: `mark${at === chosen ? " chosen" : ""}`, cx: x(step.operations / step.bytes), cy: y(step.operations / step.seconds), r: 3 + 11 * Math.sqrt(step.seconds / most), fill: colour(step.kind), "fill-opacity": words && !isFound(step) ? .1 : .7, onclick: () => choose(at) }, make("title", {}, `${names(step)}\n${seconds(step.seconds)}, ${rate(step.operations / step.seconds)}op/s, ${rate(step.bytes / step.seconds)}B/s`)));
  return [make("p", { class: "soft" }, "The area of a circle is the time of a launch, its colour the kind of kernel. The level line is the most that this machine reached, in multiply-adds in registers or in a launch; the slope is what it reached in a copy. Bytes count once per launch, and a launch whose operands lie in a cache may stand above the slope. Launches that only move data are left out."), drawing];
}

function memory() {
  const parts = [], steps = data.launches.length;
  for (const pool of data.pools) {
    if (!pool.lifetimes.length) continue;
    const width = 1000, height = Math.max(160, 420);
    const drawing = make("svg", { class: "memory", viewBox: `0 0 ${width} ${height + 20}`, style: "max-width:100%;height:auto", role: "img" });
    const x = (step) => 10 + (width - 20) * step / steps, y = (offset) => height - height * offset / pool.size_bytes;
    for (const [offset, size, first, last] of pool.lifetimes) {
      const step = data.launches[first];
      drawing.append(make("rect", { class: `mark${first === chosen ? " chosen" : ""}`, x: x(first), y: y(offset + size), width: Math.max(1, x(last + 1) - x(first)), height: Math.max(.5, y(offset) - y(offset + size)), fill: colour(step.kind), "fill-opacity": words && !isFound(step) ? .15 : .75, onclick: () => choose(first) }, make("title", {}, `${names(step)}\n${bytes(size)} at ${offset}, steps ${first} to ${last}`)));
    }
    drawing.append(make("text", { class: "soft", x: 10, y: height + 15 }, "steps of the call, left to right; addresses from bottom to top"));
    parts.push(make("h2", {}, `${pool.device}: workspace of ${bytes(pool.size_bytes)}`), drawing);
  }
  return parts.length ? parts : [make("p", { class: "soft" }, "No launch writes into a workspace: intermediate results are outputs or none.")];
}

function devices() {
  const use = data.device_use;
  return [make("h2", {}, "Devices"), table([
    ["device", (row) => row.name], ["kind", (row) => data.devices.find((device) => device.name === row.name).kind],
    ["measured on", (row) => data.measured?.devices[row.name] || ""],
    ["launches", (row) => row.launch_count, { number: true }], ["pool", (row) => row.pool_bytes ?? 0, { number: true, shown: (row) => row.pool_bytes === null ? "as the sizes need" : bytes(row.pool_bytes) }],
    ["code", (row) => row.library === null ? "of the variant" : `library ${row.library}`], ["calls into it", (row) => row.imports.join(", ")],
  ], use.devices), make("h2", {}, "Copies"), use.copies.length ? table([
    ["from", (row) => row.source], ["to", (row) => row.destination], ["before launch", (row) => row.before_launch, { number: true }],
    ["bytes", (row) => row.size_bytes ?? 0, { number: true, shown: (row) => row.size_bytes === null ? "as the sizes need" : bytes(row.size_bytes) }],
  ], use.copies) : make("p", { class: "soft" }, "None: everything runs on one device.")];
}

function file() {
  return [make("h2", {}, "Sections"), table([
    ["section", (row) => `${row.kind} ${row.id}`], ["offset", (row) => row.offset, { number: true }],
    ["size", (row) => row.size_bytes, { number: true, shown: (row) => bytes(row.size_bytes) }],
    ["", (row) => row.size_bytes, { shown: (row) => make("span", { class: "bar", style: `width:${Math.max(1, 200 * row.size_bytes / data.size_bytes)}px` }) }],
    ["digest", (row) => row.digest, { shown: (row) => make("code", {}, row.digest || "by the tree") }],
  ], data.sections), make("h2", {}, "Patterns that fusion left"), data.refusals.length ? table([
    ["pattern", (row) => row.pattern], ["nodes", (row) => row.nodes.map(([name, op]) => `${name} (${op})`).join(", ")], ["reason", (row) => row.reason],
  ], data.refusals) : make("p", { class: "soft" }, "None.")];
}

function provenance() {
  const lock = data.lock || {};
  return [make("h2", {}, "Made from"), facts([
    ["graph", lock.graph ? make("code", {}, lock.graph) : ""],
    ["options", lock.options ? make("code", {}, JSON.stringify(lock.options)) : ""],
    ["tools", lock.toolchain ? Object.entries(lock.toolchain).map(([name, version]) => `${name} ${version}`).join("; ") : ""],
    ["weights", lock.weights ? `${lock.weights.length} tensors` : ""],
  ]), make("h2", {}, "The whole record"), make("pre", {}, JSON.stringify(lock, null, 1))];
}

function differences() {
  const against = data.against;
  const rows = against.launches.filter((row) => row.before !== row.after);
  return [make("h2", {}, `Against ${against.model}, ${against.digest.slice(0, 16)}`),
    against.lines.length ? make("pre", {}, against.lines.join("\n")) : make("p", {}, "The bundles are equal."),
    make("h2", {}, "Launches by the nodes that they run"), rows.length ? table([
      ["nodes", (row) => row.nodes], ["that kernel", (row) => row.before], ["this kernel", (row) => row.after],
      ["that time", (row) => row.before_seconds ?? -1, { number: true, shown: (row) => seconds(row.before_seconds) }],
      ["this time", (row) => row.after_seconds ?? -1, { number: true, shown: (row) => seconds(row.after_seconds) }],
      ["this / that", (row) => row.after_seconds / row.before_seconds || -1, { number: true, shown: (row) => row.after_seconds && row.before_seconds ? (row.after_seconds / row.before_seconds).toFixed(2) : "" }],
    ], rows) : make("p", { class: "soft" }, "The same kernels run the same nodes.")];
}

function graph() {
  const drawing = make("svg", { id: "graph", role: "img" });
  const world = make("g");
  drawing.append(world);
  const x = (vertex) => vertex.place * BOX.dx, y = (vertex) => vertex.layer * BOX.dy;
  const most = Math.max(1e-12, ...data.launches.map((step) => step.seconds || 0));
  for (const [source, target, size, bends] of data.edges) {
    const from = data.vertices[source], to = data.vertices[target];
    const near = chosen >= 0 && (from.step === chosen || to.step === chosen);
    let path = `M${x(from)} ${y(from) + BOX.height}`, at = { x: x(from), y: y(from) + BOX.height };
    for (const [layer, place] of [...bends, [to.layer, to.place]]) {
      const next = { x: place * BOX.dx, y: layer * BOX.dy }, bend = (next.y - at.y) / 2;
      path += `C${at.x} ${at.y + bend} ${next.x} ${next.y - bend} ${next.x} ${next.y}V${next.y + BOX.height}`;
      at = { x: next.x, y: next.y + BOX.height };
    }
    world.append(make("path", { class: `edge${near ? " near" : ""}`, d: path }, make("title", {}, bytes(size))));
  }
  data.vertices.forEach((vertex) => {
    const step = vertex.step === undefined ? null : data.launches[vertex.step];
    const label = step ? names(step) : vertex.name;
    const box = make("g", { class: `vertex ${vertex.kind}${step && isFound(step) ? " found" : ""}${step && vertex.step === chosen ? " chosen" : ""}`, transform: `translate(${x(vertex) - BOX.width / 2} ${y(vertex)})`, onclick: () => step && choose(vertex.step) },
      make("rect", { width: BOX.width, height: BOX.height, rx: 4 }), make("title", {}, label),
      step ? make("rect", { width: 5, height: BOX.height, style: `fill:${colour(step.kind)};stroke:none` }) : null,
      make("text", { x: 12, y: 16 }, short(label, 28)),
      make("text", { class: "soft", x: 12, y: 31 }, step ? `${step.kind}${step.seconds ? "  " + seconds(step.seconds) : ""}` : vertex.kind),
      step && step.seconds ? make("rect", { y: BOX.height - 3, height: 3, width: BOX.width * step.seconds / most, style: `fill:${colour(step.kind)};stroke:none` }) : null);
    world.append(box);
  });
  pan(drawing, world);
  return [drawing];
}

const short = (text, size) => text.length <= size ? text : "…" + text.slice(text.length - size + 1);

const view = { x: 0, y: 0, scale: 0 };
function pan(drawing, world) {
  const apply = () => world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  const start = () => {
    const found = chosen >= 0 ? data.vertices.find((vertex) => vertex.step === chosen) : data.vertices[0];
    view.scale ||= 1;
    view.x = drawing.clientWidth / 2 - found.place * BOX.dx * view.scale;
    view.y = (chosen >= 0 ? drawing.clientHeight / 2 : 20) - found.layer * BOX.dy * view.scale;
    apply();
  };
  if (view.scale) apply(); else requestAnimationFrame(start);
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY * .0015), edge = drawing.getBoundingClientRect();
    const px = event.clientX - edge.left, py = event.clientY - edge.top;
    view.x = px - (px - view.x) * factor; view.y = py - (py - view.y) * factor; view.scale *= factor;
    apply();
  }, { passive: false });
  let from = null;
  drawing.addEventListener("pointerdown", (event) => { from = { x: event.clientX - view.x, y: event.clientY - view.y, moved: false }; });
  drawing.addEventListener("pointermove", (event) => {
    if (!from || !event.buttons) return;
    view.x = event.clientX - from.x; view.y = event.clientY - from.y;
    apply();
  });
  drawing.addEventListener("pointerup", () => { from = null; });
  drawing.centre = start;
}

function detail() {
  const panel = document.getElementById("detail");
  panel.hidden = chosen < 0;
  if (chosen < 0) return;
  const step = data.launches[chosen];
  const close = make("button", { style: "float:right", onclick: () => choose(-1), "aria-label": "Close" }, "Close");
  panel.replaceChildren(close, make("h2", {}, `Step ${chosen}: ${step.step}`), facts([
    ["nodes", step.nodes.map(([name, op]) => `${name} (${op})`).join(", ")], ["kind", step.kind], ["device", step.device],
    ["kernel", step.kernel ? make("code", {}, step.kernel) : ""], ["reads", (step.reads || []).join(", ")], ["writes", (step.writes || []).join(", ")],
    ["units of work", step.extent ?? ""], ["time", seconds(step.seconds)],
    ["operations", count(step.operations) + (step.seconds && step.operations ? `, ${rate(step.operations / step.seconds)}op/s` : "")],
    ["bytes touched", bytes(step.bytes) + (step.seconds && step.bytes ? `, ${rate(step.bytes / step.seconds)}B/s` : "")],
    ["bytes that fusion saved", bytes(step.saved_bytes)], ["the kernel ends here because", step.ends ? `${step.ends}${step.users?.length ? ": " + step.users.join(", ") : ""}` : ""],
  ]), step.kernel ? make("h2", {}, "Assembly") : "", step.kernel ? make("pre", { id: "assembly" }, data.assembly[step.kernel] || "") : "");
}

const VIEWS = { overview, graph, kernels, roofline, memory, devices, file, provenance, differences };

function draw() {
  const main = document.getElementById("main");
  const tabs = Object.keys(VIEWS).filter((name) => name !== "differences" || data.against);
  document.getElementById("tabs").replaceChildren(...tabs.map((name) => make("button", { role: "tab", "aria-selected": name === tab, onclick: () => { tab = name; draw(); } }, name[0].toUpperCase() + name.slice(1))));
  main.className = tab === "graph" ? "full" : "";
  main.replaceChildren(...VIEWS[tab]());
  detail();
  remember();
}

// The address names the view, the step and the search, so that a view can be linked to.
function remember() {
  const parts = new URLSearchParams({ view: tab, ...(chosen >= 0 ? { step: chosen } : {}), ...(words ? { search: words } : {}) });
  history.replaceState(null, "", `#${parts}`);
}

function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.get("view") in VIEWS && (parts.get("view") !== "differences" || data.against)) tab = parts.get("view");
  if (/^\d+$/.test(parts.get("step") ?? "") && Number(parts.get("step")) < data.launches.length) chosen = Number(parts.get("step"));
  document.getElementById("search").value = words = (parts.get("search") ?? "").trim().toLowerCase();
}

function choose(step) { chosen = step; draw(); }

function search(text) {
  words = text.trim().toLowerCase();
  if (words && tab === "graph") {
    const found = data.launches.findIndex(isFound);
    if (found >= 0) { chosen = found; view.scale ||= 1; draw(); document.getElementById("graph").centre(); return; }
  }
  draw();
}

(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  data = JSON.parse(await new Response(stream).text());
  document.getElementById("title").textContent = data.model;
  document.title = `${data.model} - Ingot report`;
  const field = document.getElementById("search");
  field.addEventListener("input", () => search(field.value));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape") choose(-1);
  });
  recall();
  draw();
  document.body.dataset.ready = "yes";
  document.body.dataset.readyMilliseconds = Math.round(performance.now());
})();
