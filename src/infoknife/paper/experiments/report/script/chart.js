// Panels of curves under one legend.

const LAST = new Set(["truth", "published", "dashed", "faint", "dots"]); // at the end of a legend

function look(series) {
  const wide = isKnife(series) ? 2.4 : 1.5;
  const style = {
    raw: { "stroke-width": 0.8, "stroke-opacity": 0.35 },
    line: { "stroke-width": wide },
    points: { "stroke-width": wide },
    dots: { "stroke-width": 4.2, "stroke-opacity": 0.6, "stroke-linecap": "round" },
    marks: { "stroke-width": 0 },
    whisker: { "stroke-width": 1, "stroke-opacity": 0.7 },
    dashed: { "stroke-width": 1.4, "stroke-dasharray": "6 4" },
    faint: { "stroke-width": 1, "stroke-dasharray": "1.5 2.5", "stroke-opacity": 0.85 },
    truth: { "stroke-width": 1.2 },
    published: { "stroke-width": 3.2 },
  }[series.style];
  return { stroke: colour(series.colour), ...style };
}

// A chart: its legend, its panels, and what they share.

class Chart {
  constructor(figure, spec) {
    this.spec = spec;
    this.hidden = new Set();
    this.xZoom = null;
    this.panels = spec.panels.map((panel, number) => new Panel(this, panel, number));
    this.button = element("button", { type: "button", class: "reset", hidden: "" }, "Reset zoom");
    this.button.addEventListener("click", () => this.reset());
    const legend = element("div", { class: "legend", role: "group", "aria-label": "Curves shown" });
    legend.append(...this.keys(), this.button);
    const least = { 1: "100%", 2: "17rem", 3: "16rem" }[spec.columns] ?? "9.4rem";
    const share = `calc(${100 / spec.columns}% - .6rem)`; // never more columns than wanted
    const style = `--least: ${least}; --share: ${share}`;
    const grid = element("div", { class: "panels", style }, ...this.panels.map((panel) => panel.node));
    figure.append(legend, grid);
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(grid);
    this.draw();
  }

  height(width) {
    const [least, most, part] = this.spec.panels.length === 1 ? [240, 380, 0.5] : [170, 270, 0.85];
    return Math.round(Math.max(least, Math.min(most, part * width)));
  }

  keys() {
    const found = new Map();
    for (const series of this.spec.panels.flatMap((panel) => panel.series).reverse()) found.set(series.switch, series);
    const last = (series) => (LAST.has(series.style) ? 1 : 0);
    const order = ([, a], [, b]) => last(a) - last(b) || isKnife(b) - isKnife(a);
    return [...found].sort(order).map(([name, series]) => this.keyOf(name, series));
  }

  keyOf(name, series) {
    const button = element("button", { type: "button", class: "key", "aria-pressed": "true" });
    const swatch = drawn(button, "svg", { viewBox: "0 0 24 12", "aria-hidden": "true" });
    const tint = MIXED.has(name) ? { ...series, colour: "any" } : series;
    const sample = series.style === "dots" ? "M5 6h0M12 6h0M19 6h0" : "M1 6H23";
    drawn(swatch, "path", { d: sample, ...look(tint), "stroke-opacity": 1 });
    if (series.style === "points" || series.style === "marks") {
      const shape = SHAPES[series.colour] ?? SHAPES.knife;
      drawn(swatch, "path", { d: shape, fill: colour(series.colour), transform: "translate(12 6)" });
    }
    button.append(name);
    button.addEventListener("click", () => this.toggle(name, button));
    return button;
  }

  toggle(name, button) {
    const off = !this.hidden.delete(name);
    if (off) this.hidden.add(name);
    button.setAttribute("aria-pressed", String(!off));
    this.draw();
  }

  // Panels of curves share their steps; those of dots have nothing in common.
  zoom(range, panel) {
    (panel.scattered ? panel : this).xZoom = range;
    this.button.hidden = false;
    this.draw();
  }

  reset() {
    this.xZoom = null;
    for (const panel of this.panels) panel.xZoom = panel.yZoom = null;
    this.button.hidden = true;
    this.draw();
  }

  draw() {
    for (const panel of this.panels) {
      panel.tip.hidden = true;
      panel.draw();
    }
  }
}
