"use strict";
// Theorem 2 with the uniform kernel, as infoknife.theory.confidence_bound computes it.
function confidenceBound({ N, M, w, d, delta, L }) {
  const top = L / 2; // no larger value has the density
  const c1 = Math.max(top * Math.log(top) ** 2, 4 * Math.exp(-2));
  const scatter =
    Math.log(3 * N) - d * Math.log(w) + 0.5 * Math.log(Math.log((6 * N) / delta) / 2 / M) - Math.log(delta);
  const gap = Math.exp(scatter) + (3 * N * L * d * w) / 2 / delta;
  return gap < 1 ? -Math.log1p(-gap) + Math.sqrt((3 * c1) / (N * delta)) : Infinity;
}

function boundInWords(values) {
  const { N, M, w, d, delta, L } = values;
  const fits = N >= 1 && M >= 1 && w > 0 && Number.isInteger(d) && d >= 1 && delta > 0 && delta < 1 && L >= 2 * (d + 1);
  if (!fits) return "– (N and M from 1, w above 0, d whole, δ between 0 and 1, L at least 2 (d + 1))";
  const bound = confidenceBound(values);
  return Number.isFinite(bound) ? `${bound.toPrecision(3)} nats` : "anything: the theorem says nothing here";
}

const boundForm = typeof document === "undefined" ? null : document.getElementById("bound");
if (boundForm) {
  const fields = ["N", "M", "w", "d", "delta", "L"];
  boundForm.addEventListener("submit", (event) => event.preventDefault());
  boundForm.addEventListener("input", () => {
    const values = Object.fromEntries(fields.map((name) => [name, Number(boundForm.elements[name].value)]));
    document.getElementById("answer").value = boundInWords(values);
  });
}
