// One pair of axes: point to read, drag to zoom, double-click to reset.

class Panel {
  constructor(chart, spec, number) {
    this.chart = chart;
    this.spec = spec;
    this.clip = `clip-${chart.spec.name}-${number}`;
    this.xZoom = null;
    this.yZoom = null;
    this.scattered = spec.series.some((series) => series.style === "dots" || series.style === "marks");
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("tabindex", "0");
    this.svg.setAttribute("role", "group");
    const keys = this.scattered ? "" : " The arrow keys read values.";
    this.svg.setAttribute("aria-label", `${chart.spec.title}. ${spec.title}.${keys}`);
    this.tip = element("div", { class: "tip", role: "status", hidden: "" });
    this.node = element("div", { class: "panel" }, element("div", { class: "title" }, spec.title), this.svg, this.tip);
    if (spec.title.startsWith("KNIFE")) this.node.classList.add("strong-title");
    this.listen();
  }

  get shown() {
    return this.spec.series.filter((series) => !this.chart.hidden.has(series.switch));
  }

  ranges() {
    const every = this.spec.series;
    const whole = extent(every.flatMap((series) => series.x), this.spec.log_x);
    const points = this.scattered || every.some((series) => series.style === "points");
    const x = this.xZoom ?? this.chart.xZoom ?? (points ? padded(whole, this.spec.log_x) : fromZero(whole));
    const shown = this.shown.length ? this.shown : every;
    const y = this.yZoom ?? this.spec.y_range ?? padded(extent(shown.flatMap((s) => s.y), this.spec.log_y), this.spec.log_y);
    return { x, y };
  }

  draw() {
    const width = this.node.clientWidth;
    if (!width) return;
    const height = this.chart.height(width);
    const { x, y } = this.ranges();
    this.box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
    this.x = scale(x, [this.box.left, this.box.right], this.spec.log_x);
    this.y = scale(y, [this.box.bottom, this.box.top], this.spec.log_y);
    this.svg.replaceChildren();
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.drawAxes(width, height);
    this.drawCurves();
    this.over = drawn(this.svg, "g");
  }

  drawAxes(width, height) {
    const { left, right, top, bottom } = this.box;
    for (const tick of ticks(this.y, Math.max(4, (bottom - top) / 45))) {
      const at = this.y.to(tick);
      drawn(this.svg, "line", { class: "grid", x1: left, x2: right, y1: at, y2: at });
      drawn(this.svg, "text", { x: left - 6, y: at + 4, "text-anchor": "end" }, brief(tick));
    }
    for (const tick of ticks(this.x, Math.max(2, (right - left) / 70))) {
      const at = this.x.to(tick);
      drawn(this.svg, "line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 4 });
      drawn(this.svg, "text", { x: at, y: bottom + 16, "text-anchor": "middle" }, brief(tick));
    }
    drawn(this.svg, "line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
    drawn(this.svg, "text", { x: 4, y: 10 }, this.chart.spec.y_label);
    drawn(this.svg, "text", { x: right, y: height - 5, "text-anchor": "end" }, this.chart.spec.x_label);
    if (!this.spec.log_y && this.y.range[0] < 0 && this.y.range[1] > 0) {
      const zero = this.y.to(0);
      drawn(this.svg, "line", { class: "axis", x1: left, x2: right, y1: zero, y2: zero, "stroke-opacity": 0.45 });
    }
  }

  drawCurves() {
    const { left, right, top, bottom } = this.box;
    const clip = drawn(drawn(this.svg, "defs"), "clipPath", { id: this.clip });
    drawn(clip, "rect", { x: left, y: top - 2, width: right - left, height: bottom - top + 4 });
    const group = drawn(this.svg, "g", { "clip-path": `url(#${this.clip})` });
    for (const series of this.shown) {
      const marks = series.style === "marks"; // of which there is no curve
      if (!marks) drawn(group, "path", { class: "curve", d: this.path(series), ...look(series) });
      if (marks || series.style === "points") this.drawPoints(group, series);
    }
  }

  drawPoints(group, series) {
    series.x.forEach((x, i) => {
      if (!this.has(series, i)) return;
      const at = `translate(${this.x.to(x).toFixed(1)} ${this.y.to(series.y[i]).toFixed(1)})`;
      const shape = { d: SHAPES[series.colour] ?? SHAPES.knife, fill: colour(series.colour), transform: at };
      const mark = drawn(group, "path", { ...shape, stroke: "var(--card)", "stroke-width": 0.8 });
      if (series.style === "marks") drawn(mark, "title", {}, `${series.switch} ${read(x)}, ${read(series.y[i])}`);
    });
  }

  has(series, i) {
    const good = isNumber(series.x[i]) && isNumber(series.y[i]);
    return good && !(this.spec.log_y && series.y[i] <= 0) && !(this.spec.log_x && series.x[i] <= 0);
  }

  path(series) {
    let text = "";
    let pen = false;
    const dots = series.style === "dots"; // strokes without length: their round ends are the dots
    for (let i = 0; i < series.x.length; i += 1) {
      const good = this.has(series, i);
      if (good) {
        const y = Math.max(-1e4, Math.min(1e4, this.y.to(series.y[i])));
        text += `${pen ? "L" : "M"}${this.x.to(series.x[i]).toFixed(1)} ${y.toFixed(1)}${dots ? "h0" : ""}`;
      }
      pen = good && !dots;
    }
    return text;
  }

  // Reading: a line at the pointer in all panels, the values of this one beside it.

  nearest(series, at) {
    let best = -1;
    for (let i = 0; i < series.x.length; i += 1) {
      if (!isNumber(series.x[i]) || !isNumber(series.y[i])) continue;
      if (best < 0 || Math.abs(series.x[i] - at) < Math.abs(series.x[best] - at)) best = i;
    }
    return best;
  }

  cross(at) {
    if (!this.over) return;
    this.over.querySelector(".cross")?.remove();
    if (at === null) return;
    const x = this.x.to(at);
    if (x < this.box.left - 1 || x > this.box.right + 1) return;
    drawn(this.over, "line", { class: "cross", x1: x, x2: x, y1: this.box.top, y2: this.box.bottom });
  }

  show(pixel) {
    const curves = this.shown.filter((series) => series.style !== "published" && !UNREAD.has(series.style));
    if (this.scattered || !curves.length) return this.hide();
    const guide = curves.find((series) => series.style !== "truth" && series.style !== "dashed") ?? curves[0];
    const i = this.nearest(guide, this.x.from(pixel));
    if (i < 0) return this.hide();
    const at = guide.x[i];
    this.cursor = at;
    this.tip.replaceChildren(element("b", {}, `${this.chart.spec.x_label} ${read(at)}`), ...this.readings(at));
    this.tip.hidden = false;
    this.chart.panels.forEach((panel) => panel.cross(at));
    this.place(this.x.to(at));
  }

  readings(at) {
    const told = this.shown.filter((series) => !UNREAD.has(series.style));
    return told.reverse().flatMap((series) => {
      const i = this.nearest(series, at);
      if (i < 0) return [];
      if (series.style === "published" && Math.abs(series.x[i] - at) > (this.x.range[1] - this.x.range[0]) / 8) return [];
      const mark = element("i", { style: `background: ${colour(series.colour)}` });
      return [element("div", {}, mark, `${series.switch} ${read(series.y[i])}`)];
    });
  }

  // Beside the line; below the axes where it would hide them; always inside the figure.
  place(x) {
    const [node, svg, figure] = [this.node, this.svg, this.node.closest("figure")].map((e) => e.getBoundingClientRect());
    const wide = this.tip.offsetWidth;
    const covers = wide > 0.45 * node.width;
    const wanted = covers ? x - wide / 2 : x + 12 + wide > node.width ? x - 12 - wide : x + 12;
    const left = Math.max(figure.left - node.left, Math.min(wanted, figure.right - node.left - wide));
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${svg.top - node.top + (covers ? svg.height - 8 : this.box.top)}px`;
  }

  hide() {
    this.tip.hidden = true;
    this.chart.panels.forEach((panel) => panel.cross(null));
  }

  // Zooming: a box by dragging; a flat one keeps the values' range.

  listen() {
    const { svg } = this;
    svg.addEventListener("pointerdown", (event) => this.press(event));
    svg.addEventListener("pointermove", (event) => (this.start ? this.drag(event) : this.show(this.inside(event).x)));
    svg.addEventListener("pointerup", (event) => this.release(event));
    svg.addEventListener("pointercancel", () => this.drop());
    svg.addEventListener("pointerleave", () => !this.start && this.hide());
    svg.addEventListener("dblclick", () => this.chart.reset());
    svg.addEventListener("blur", () => this.hide());
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  inside(event) {
    const frame = this.svg.getBoundingClientRect();
    const { left, right, top, bottom } = this.box;
    const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
    return { x: clamp(event.clientX - frame.left, left, right), y: clamp(event.clientY - frame.top, top, bottom) };
  }

  press(event) {
    if (event.button !== 0) return;
    this.start = this.inside(event);
    this.tip.hidden = true;
    this.svg.setPointerCapture(event.pointerId);
  }

  drag(event) {
    const box = this.selected(this.inside(event));
    this.over.querySelector(".selection")?.remove();
    drawn(this.over, "rect", { class: "selection", x: box.x, y: box.y, width: box.width, height: box.height });
  }

  selected(end) {
    const { start, box } = this;
    const flat = Math.abs(end.y - start.y) < 16;
    const [top, bottom] = flat ? [box.top, box.bottom] : [Math.min(start.y, end.y), Math.max(start.y, end.y)];
    const x = Math.min(start.x, end.x);
    return { x, y: top, width: Math.abs(end.x - start.x), height: bottom - top, flat };
  }

  release(event) {
    if (!this.start) return;
    const box = this.selected(this.inside(event));
    this.drop();
    if (box.width < 8) return this.show(this.inside(event).x);
    if (!box.flat) this.yZoom = [this.y.from(box.y + box.height), this.y.from(box.y)];
    this.chart.zoom([this.x.from(box.x), this.x.from(box.x + box.width)], this);
  }

  drop() {
    this.start = null;
    this.over.querySelector(".selection")?.remove();
  }

  key(event) {
    const start = this.scattered ? (this.x.range[0] + this.x.range[1]) / 2 : this.x.range[0];
    const at = this.x.to(this.cursor ?? start);
    const step = (this.box.right - this.box.left) / 60;
    const actions = {
      ArrowLeft: () => this.show(Math.max(this.box.left, at - step)),
      ArrowRight: () => this.show(Math.min(this.box.right, at + step)),
      "+": () => this.chart.zoom(this.around(at, 0.5), this),
      "-": () => this.chart.zoom(this.around(at, 2), this),
      0: () => this.chart.reset(),
      Escape: () => this.hide(),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  around(at, factor) {
    const { left, right } = this.box;
    return [this.x.from(at - (at - left) * factor), this.x.from(at + (right - at) * factor)];
  }
}
