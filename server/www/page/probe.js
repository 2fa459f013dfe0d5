// What a reader chooses in a figure, by pointer or by keys: a lab's probe(at, s) says which values follow from it. A
// link may have locked these.

import { locked } from "./page.js";

/** Some choice of each kind of figure: what it would change is asked, not made. */
const SOME = { heatmap: { row: 0, column: 0 }, chart: 0, circles: { right: 0, up: 0 }, grid: { row: 0 } };

/** Whether a choice can change anything. */
export const probeFree = ({ spec, page, state }, at) =>
  Object.keys(spec.probe(at, state)).some((name) => !locked(page, name));

/** The figure's probe, which takes a choice; undefined where it has none, or none that is free. */
export function probeOf(figure) {
  const { spec, page, data } = figure;
  if (!spec.probe || !probeFree(figure, data.at ?? SOME[spec.kind])) {
    return undefined;
  }
  return (at) => {
    const changed = page.set(spec.probe(at, page.state.value));
    figure.choice = { at, state: page.state.value };
    figure.asked ||= changed; // what was found is said once it is drawn
  };
}

/** What is chosen now: also while the service has not answered, and what is drawn is older. */
export const chosenAt = ({ choice, page, data }) => (choice?.state === page.state.value ? choice.at : data.at);
