// What only a probe changes must not be computed anew: a figure's data() and facts() run whenever any value of the page
// changes, sixty times a second while a reader drags. Heavy arithmetic of theirs is a function of what it is made of,
// replies and values of the state, and kept():
//
//     const misses = kept((turn, waves, d, k) => ...);      // once a lab, or once a figure if figures differ
//     data: ([turn, waves], s) => ({ ..., y: misses(turn, waves, s.d_model, s.distance), at: s["v.p"] })
//
// As the same result is the same array, heat maps also see by it that no pixel changes.

/** f whose last result is given again while its arguments are the same ones. */
export function kept(f) {
  let last;
  return (...given) => {
    if (last?.given.length !== given.length || !last.given.every((value, i) => Object.is(value, given[i]))) {
      last = { given, result: f(...given) };
    }
    return last.result;
  };
}
