// What charts are made of: elements, numbers in words, scales and ticks.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 44, right: 14, top: 24, bottom: 34 };
const MIXED = new Set(["block means", "moving average", "published"]); // legend entries that stand for several colours
const SHAPES = {
  knife: "M3.4 0A3.4 3.4 0 1 1-3.4 0A3.4 3.4 0 1 1 3.4 0Z",
  "knife-joint": "M0-4L4 0L0 4L-4 0Z",
  schraudolph: "M-3-3H3V3H-3Z",
  doe: "M0-3.6L3.6 3H-3.6Z",
  club: "M0 3.6L3.6-3H-3.6Z",
  infonce: "M-1.3-4H1.3V-1.3H4V1.3H1.3V4H-1.3V1.3H-4V-1.3H-1.3Z",
  mine: "M-4-2.2L-2.2-4L0-1.8L2.2-4L4-2.2L1.8 0L4 2.2L2.2 4L0 1.8L-2.2 4L-4 2.2L-1.8 0Z",
  nwj: "M0-4.4L1.1-1.5L4.2-1.4L1.8.6L2.6 3.6L0 1.9L-2.6 3.6L-1.8.6L-4.2-1.4L-1.1-1.5Z",
  adv: "M0-3.8L3.6-1.2L2.2 3.1H-2.2L-3.6-1.2Z",
  none: "M-3-3H3V3H-3Z",
};
const UNREAD = new Set(["whisker", "faint", "dots", "marks"]); // styles that a line at the pointer does not read

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function drawn(parent, name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  parent.append(node);
  return node;
}

const colour = (name) => `var(--c-${name})`;
const isNumber = (value) => typeof value === "number";
const isKnife = (series) => series.colour === "knife";

// Numbers in words: `read` for values, `brief` for ticks.

function read(value) {
  if (!isNumber(value)) return "–";
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential(1);
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
}

function brief(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e3) return `${Number((value / 1e3).toPrecision(3))}k`;
  return size !== 0 && size < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(6)));
}

// Scales: from values to pixels and back.

function scale(range, pixels, log) {
  const [low, high] = log ? range.map(Math.log10) : range;
  const [start, end] = pixels;
  const to = (value) => start + (((log ? Math.log10(value) : value) - low) / (high - low)) * (end - start);
  const from = (pixel) => {
    const value = low + ((pixel - start) / (end - start)) * (high - low);
    return log ? 10 ** value : value;
  };
  return { to, from, range, log };
}

function ticks({ range: [low, high], log }, wanted) {
  if (log && high / low >= 3) return decades(low, high, wanted);
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const marks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) marks.push(k * step);
  return marks;
}

function decades(low, high, wanted) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const every = Math.max(1, Math.ceil((last - first) / wanted));
  const within = last - first <= 2 ? [1, 2, 5] : [1];
  const marks = [];
  for (let power = first; power <= last; power += every) marks.push(...within.map((factor) => factor * 10 ** power));
  return marks.filter((mark) => mark >= low * 0.999 && mark <= high * 1.001);
}

function extent(values, log) {
  const good = values.filter((value) => isNumber(value) && (!log || value > 0));
  if (!good.length) return log ? [0.1, 1] : [0, 1];
  const low = good.reduce((a, b) => Math.min(a, b));
  const high = good.reduce((a, b) => Math.max(a, b));
  if (low === high) return log ? [low / 2, high * 2] : [low - 1, high + 1];
  return [low, high];
}

function fromZero([low, high]) {
  return low > 0 && low < 0.05 * high ? [0, high] : [low, high]; // the first block of steps ends after zero
}

function padded([low, high], log) {
  if (log) return [low / (high / low) ** 0.06, high * (high / low) ** 0.06];
  const margin = 0.06 * (high - low);
  return [low - margin, high + margin];
}
