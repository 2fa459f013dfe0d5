// Every word of the pages in English. A translation is a copy of this file under its language's name.
//
// In prose [[figure name]], [[predict name]], [[controls field field]] and [[number field]] stand for what the lab has
// under that name; $...$ and $$...$$ are TeX, where \class{sym-p}{p} makes p a symbol that lights up with its marks.

export const words = {
  page: {
    title: "Why order needs encoding",
    about: "Lessons about positional encodings of Transformers: every number comes from the service that serves them.",
    welcome: "<p>A Transformer reads all words of a text at once. This is how it comes to know which one stands where, in lessons that you can read, touch and check: every number on these pages was computed by the service that sent them, and the call is shown.</p>",
    labs: "Labs",
    before: "Before",
    after: "Next",
    skip: "To the text",
    theme: "Light or dark",
    footer: 'Numbers by <a href="/v1">posenc</a>: exact, the same on every machine.',
    equation: "Equation",
    predict: "What do you think",
    right: "Yes: {answer}.",
    wrong: "It is: {answer}.",
    call: "Show the call",
    callOf: "{title}, the call",
    table: "Table",
    tools: "{title}: call, table, files",
    tableOf: "{title}, as a table",
    cut: "the first {n} rows and columns; files have all",
    copy: "Copy",
    copied: "Copied",
    copyKeys: "Selected: press Ctrl+C",
    bytes: "{bytes} bytes came back; what is drawn is what is in them.",
    failed: "The service did not answer as wanted: {why}",
    changed: "{name} was {got}, which is not possible here: {used} is shown.",
    unknown: "{name} is not something this page knows: it was left out.",
    cell: "{row} {i}, {column} {j}: {value}",
    window: "Shown: {rows} of {allRows} rows and {columns} of {allColumns} columns, around the chosen cell.",
    point: "{x} {at}: {values}",
    heatmap: "heat map",
    chart: "chart",
    yes: "holds",
    no: "fails",
    token: "{word}, {i} of {n}",
    tokenKeys: "Drag one, or press it and then the place where it should go; with keys: Alt and an arrow.",
    place: "place",
  },
  labs: {
    waves: {
      short: "Waves",
      title: "Waves",
      lead: "Sines and cosines of many lengths give every position a pattern of its own.",
      fields: {
        type: { label: "Encoding" },
        d_model: { label: "Width d" },
        base: { label: "Base" },
        layout: { label: "Order of columns", choices: { interleaved: "sin, cos, sin, cos", halves: "all sin, then all cos" } },
        positions: { label: "Positions" },
        "v.p": { label: "Position p" },
        "v.i": { label: "Pair i" },
      },
      figures: {
        matrix: {
          title: "A row for every position",
          axes: { row: "position p", column: "column" },
          pair: "pair",
          caption: "Each row is the vector of one position. A column is not a position: it is one wave, seen at all positions. Orange is above zero, blue below.",
          text: "{positions} rows of {d_model} numbers, between \u22121 and 1. On the left neighbouring rows differ much; to the right they differ less and less.",
          still: "Heat map of 64 positions and 64 columns: fast stripes on the left, slow ones on the right.",
        },
        curves: {
          title: "One pair as two waves",
          axes: { x: "position p", y: "value" },
          sine: "sine", cosine: "cosine",
          caption: "The two columns of the chosen pair. The dots are the whole positions, the only ones that words have.",
          text: "Pair {i} repeats after {length} positions.",
        },
        lengths: {
          title: "How long the waves are",
          axes: { x: "pair i", y: "positions until it repeats" },
          line: "wavelength",
          caption: "Low pairs are fast, high pairs are slow: each is longer than the one before by the same factor.",
          text: "From {first} positions to {last}.",
        },
      },
      predict: {
        low: {
          question: "Which pairs change fastest from one position to the next?",
          options: ["Those with a low number i", "Those with a high number i", "All alike"],
          answer: 0,
          why: "Pair 0 turns by one radian at each position; the last hardly moves.",
        },
      },
      prose: `
<p>A clock has a fast hand and slow ones. One glance at all of them tells the time of the whole day, although each hand alone comes back again and again. Positions are told in the same way.</p>
$$\\mathrm{PE}(\\class{sym-p}{p}, 2\\class{sym-i}{i}) = \\sin\\frac{\\class{sym-p}{p}}{\\class{sym-base}{10000}^{2\\class{sym-i}{i}/\\class{sym-d}{d}}}, \\qquad \\mathrm{PE}(\\class{sym-p}{p}, 2\\class{sym-i}{i}+1) = \\cos\\frac{\\class{sym-p}{p}}{\\class{sym-base}{10000}^{2\\class{sym-i}{i}/\\class{sym-d}{d}}}$$
<p>Here $\\class{sym-p}{p}$ is the position of a word, $\\class{sym-d}{d}$ is how many numbers its vector has, now [[number d_model]], and $\\class{sym-i}{i}$ counts the pairs of columns, from 0 to $d/2-1$.</p>
[[predict low]]
[[controls d_model positions base layout]]
[[figure matrix]]
[[figure curves]]
[[figure lengths]]`,
    },
  },
};
