// Every word of the pages in English. A translation is a copy of this file under its language's name.
//
// In prose [[figure name]], [[predict name]], [[controls field field]] and [[number field]] stand for what the lab has
// under that name; $...$ and $$...$$ are TeX, where \class{sym-p}{p} makes p a symbol that lights up with its marks.

// The four ways of numbering that lab 2 compares.
const numberings = ["count p", "p/N", "binary digits", "waves"];

export const words = {
  page: {
    language: "English",
    title: "Why order needs encoding",
    about: "Lessons about positional encodings of Transformers: the numbers come from the service that sends them, and the calls are shown.",
    welcome: `<p>A Transformer, the kind of program behind today's language models, reads all words of a text at once, and by itself does not see in which order they stand. These lessons show why that is so, and how numbers called positional encodings mend it.</p>
<p>Begin with <a href="/labs/attention">Attention by hand</a>: each lab stands on those before it. You need no more than lists of numbers, multiplying and adding; words that you may not know are in the <a href="/glossary">glossary</a>. What is drawn was computed by the service that sent these pages, or is worked out from its numbers, and beneath every figure the call is shown.</p>`,
    lecturers: `<h2>For lecturers</h2>
<p>Everything here works without the internet, from one program. Every picture is a link: set a figure up, press “Link” beneath it, and your class opens the same. At the end of each lab, “Make a link for your class” hides or locks what should not be touched. “Save” has a PNG of it for slides, “Show the call” tells how to compute it, and printing a lab gives a handout. Nothing is sent anywhere else.</p>`,
    size: "About {minutes} minutes: {figures} figures, {questions} questions",
    asks: "Answers:",
    glossary: "Glossary",
    glossaryLead: "<p>The words that lessons on Transformers use without asking, each in a few sentences. In each lab the first use of such a word is underlined with dots and leads here.</p>",
    help: "Help",
    helpText: `<h2>Reading</h2>
<p>Every figure is complete before you touch it. Read from the top, answer the questions before you look, then change things.</p>
<h2>Changing</h2>
<ul>
<li>Sliders and fields change all figures that depend on them.</li>
<li>A number in the text that is underlined with dots can be changed where it stands: drag it sideways, or press the arrow keys on it.</li>
<li>In heat maps and charts, press on a cell or a point to choose it. What is chosen in one figure is chosen in all.</li>
<li>“Play” beside a slider lets its value run to the end, four steps a second. A press anywhere, or Escape, stops it.</li>
<li>Symbols light up together: point at one in an equation, and see where it is in the figures, among the sliders and in the call.</li>
</ul>
<h2>Keys</h2>
<table>
<thead><tr><th scope="col">Key</th><th scope="col">In a heat map or chart</th></tr></thead>
<tbody>
<tr><th scope="row">Arrows</th><td>to the next cell or point</td></tr>
<tr><th scope="row">Shift and an arrow</th><td>ten further</td></tr>
<tr><th scope="row">Page up, page down</th><td>ten rows or points further</td></tr>
<tr><th scope="row">Home, End</th><td>to the first or the last</td></tr>
<tr><th scope="row">Shift and an arrow</th><td>on a word that can be moved: moves it</td></tr>
<tr><th scope="row">Left, right</th><td>in the row of buttons beneath a figure: to the next of them</td></tr>
</tbody>
</table>
<h2>Beneath a figure</h2>
<ul>
<li><b>Show the call</b>: the requests that drew the figure. <b>curl</b>, for a shell, saves the very bytes that were drawn. <b>Python</b> (with numpy) and <b>fetch</b> (for a browser or node) read the same numbers. <b>PyTorch</b> does without the service: it computes the numbers itself, and may be off in the last digit. It is there for nearly all figures; only what the service makes from a seed, such as the vectors of words, no other program can make.</li>
<li><b>Table</b>: the same numbers as text.</li>
<li><b>Save</b>: all of the numbers as a file, <b>.npy</b> or <b>CSV</b>, or the picture, <b>PNG</b>. Where a figure shows a reply as it is, the .npy file is that reply, byte by byte; where its numbers were computed from replies, as differences are, the file has the numbers drawn, as float64, and NaN for words. The button says which when you point at it. In CSV a text that a spreadsheet would take for a formula (it begins with =, +, - or @) has an apostrophe before it.</li>
<li><b>Link</b>: copies an address that opens this figure as it is now.</li>
</ul>
<h2>Links</h2>
<p>The address of the page always says what it shows. Bookmark it, send it, or go back in your browser. What comes after the question mark is what the call has; names that begin with “v.” are only the page's own. A value that is not possible is changed to the nearest that is, and a line at the top says so.</p>
<h2>Without scripts, on paper</h2>
<p>Without scripts you have all texts, equations and answers. Of the {figures} figures {pictures}, those that show numbers of the service as they came, are pictures, as they stand when the page opens. Each of the others is told in a sentence, and {maps} of them have beneath it a map of numbers that say the same. Tables, files and calls need scripts. Printed, a lab is a handout: what is on the paper is what was on the screen.</p>`,
    copyLink: "Copy link",
    link: "Link",
    save: "Save",
    teacher: {
      title: "Make a link for your class",
      lead: "Set the page up as it should open. Then choose what your class may change. The link has all of it.",
      free: "free", "v.lock": "locked", "v.hide": "hidden",
    },
    labs: "Labs",
    before: "Before",
    after: "Next",
    skip: "To the text",
    theme: "Light or dark",
    footer: 'Numbers by <a href="/v1">posenc</a>, whose waves are right to the last digit. <a href="/licences.txt">Licences</a> of what these pages are made with.',
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
    bytes: "{bytes} bytes came back. What is drawn is in them, or is worked out from them on this page.",
    failed: "The service did not answer as wanted: {why}.",
    gone: "it cannot be reached",
    late: "nothing came within {seconds} seconds",
    broken: "This page made a mistake in drawing the figure. The service is not to blame: “Show the call” tells how to get the numbers.",
    again: "Try again",
    npyReply: "The bytes that the service sent, as they are",
    npyDrawn: "The numbers drawn, which were computed here from replies, as float64",
    changed: "{name} was {got}, which is not possible here: {used} is shown.",
    unknown: "{name} is not something this page knows: it was left out.",
    cell: "{row} {i}, {column} {j}: {value}",
    locked: "locked by the link",
    held: "Not changed: the link locks {names}.",
    onThisPage: "On this page",
    play: "Play",
    playOf: "Play: {name}",
    stop: "Stop",
    stopOf: "Stop: {name}",
    asNumber: "{name}, as a number",
    window: "Shown: {rows} of {allRows} rows and {columns} of {allColumns} columns, around the chosen cell.",
    point: "{x} {at}: {values}",
    heatmap: "heat map",
    chart: "chart",
    circles: "circles",
    yes: "holds",
    no: "fails",
    token: "{i} of {n}",
    tokenKeys: "Drag one, or press it and then the place where it should go; with keys: Shift and an arrow.",
    place: "place",
  },
  // term: its name; forms: spellings that are linked in labs; emphasised: only where a text has them in <em>
  glossary: {
    attention: { term: "Attention", forms: ["attention"], says: "The step in which each word looks at all words, gives each a weight, and adds up what they hand over, each times its weight. See <a href=\"#query\">query</a>, <a href=\"#key\">key</a> and <a href=\"#value\">value</a>." },
    block: { term: "Block", forms: ["block", "blocks"], emphasised: true, says: "Attention and what belongs to it, as one piece. See <a href=\"#layer\">layer</a>." },
    d_model: { term: "d_model, width", forms: ["d_model", "width"], says: "How many numbers the vector of a token has: 512 in the first Transformer, some thousands in large models. Lessons write d for it." },
    dot: { term: "Dot product", forms: ["dot product", "dot products"], says: "Of two lists of the same length: multiply first by first, second by second and so on, and add everything up. It is large where both are large in the same places." },
    embedding: { term: "Embedding", forms: ["embedding", "embeddings"], says: "The vector that a token begins with. A table has one row for each token that the model knows; the embedding is that row." },
    encoding: { term: "Positional encoding", forms: ["positional encoding", "positional encodings"], says: "Numbers that tell a model where a token stands. Most of these labs are about one kind: waves that are added to the embedding." },
    precision: { term: "float64, float32, float16, bfloat16", forms: ["float64", "float32", "float16", "bfloat16"], says: "How computers keep numbers: with about 16 decimal digits, with 7, with 3, and with 2 or 3. Fewer digits take less room, and round more." },
    head: { term: "Head", forms: ["head", "heads"], emphasised: true, says: "One attention of several that work side by side. Each makes queries, keys and values of its own: from all numbers of a token, by tables of its own." },
    key: { term: "Key", forms: ["key", "keys"], emphasised: true, says: "A vector by which a token is found. The <a href=\"#query\">query</a> of the token that looks is compared with the keys of all tokens." },
    layer: { term: "Layer", forms: ["layer", "layers"], says: "One floor of a model: attention, then some arithmetic on each token by itself. Large models have dozens of layers; what comes out of one goes into the next." },
    logits: { term: "Logits, scores", forms: ["logits", "logit"], says: "Numbers before <a href=\"#softmax\">softmax</a> has made weights of them. In attention: dot products of a query with all keys, divided by the square root of how many numbers a key has. They may be below zero, and have no sum that they must keep to." },
    mask: { term: "Mask, causal", forms: ["causal", "mask"], says: "What a token may not look at. A causal mask hides all that comes later." },
    matrix: { term: "Matrix", forms: ["matrix", "matrices"], says: "A table of numbers in rows and columns. To take a vector through a matrix: multiply it number by number with each row, and add up. Each row so gives one number of the new vector. (Written the other way round, as many programs do, it is columns that are multiplied with.)" },
    pair: { term: "Pair", forms: ["pair", "pairs"], emphasised: true, says: "A sine and a cosine of the same wave: two columns of the encoding. The letter i counts pairs." },
    place: { term: "Position, place", forms: ["position", "positions", "place", "places"], emphasised: true, says: "Where a token stands in its text, counted from 0. The two words mean the same." },
    query: { term: "Query", forms: ["query", "queries"], emphasised: true, says: "A vector with which a token looks: what it wants to know. It is compared with <a href=\"#key\">keys</a>." },
    size: { term: "Size, length", forms: ["size", "length"], emphasised: true, says: "Of a vector: the square root of the sum of its squared numbers. Papers also say norm. (How many numbers a vector has is its <a href=\"#d_model\">width</a>.)" },
    softmax: { term: "Softmax", forms: ["softmax"], says: "Makes weights of any numbers: e, which is 2.718\u2026, is raised to the power of each, then all are divided by their sum. The results are above zero, their sum is 1, and the largest number gets the largest weight." },
    token: { term: "Token", forms: ["token", "tokens"], says: "What a model takes as one piece of text: a word, or a part of one. These lessons use whole words." },
    transformer: { term: "Transformer", forms: ["Transformer", "Transformers"], says: "The kind of network behind today's language models (2017). It reads all tokens at once and lets them look at each other by <a href=\"#attention\">attention</a>." },
    value: { term: "Value", forms: ["value", "values"], emphasised: true, says: "A vector that a token hands over when it is looked at." },
    vector: { term: "Vector", forms: ["vector", "vectors"], says: "A list of numbers. Adding two vectors adds first to first, second to second and so on." },
    weight: { term: "Weight", forms: ["weights"], emphasised: true, says: "In attention: how much a token takes from another, from 0 to 1. The word is also used for the numbers that a model learns in training." },
  },
  labs: {
    attention: {
      short: "Attention by hand",
      title: "Attention by hand",
      lead: "How a word looks at other words and takes from them: four steps that you can do on paper.",
      question: "What does a word learn from the words around it, and how?",
      fields: {
        "v.words": { label: "Three words of your own" },
        "v.i": { label: "Word that asks (0, 1 or 2)" },
        "v.j": { label: "Word that is looked at (0, 1 or 2)" },
        "v.q": { label: "Questions" },
        "v.k": { label: "Labels" },
        "v.v": { label: "What is handed over" },
      },
      figures: {
        questions: {
          title: "What each word asks for",
          word: "word", numbers: ["animal", "action", "hunts", "small"],
          caption: "Each row is the question of one word. Press a word to let it ask. Change any number: all that follows is computed anew.",
          text: "“{asking}” asks, with the list {list}.",
          still: "“chase” asks with the list 2, 0, 2, 0: for an animal that hunts.",
        },
        labels: {
          title: "The label of each word",
          word: "word", numbers: ["animal", "action", "hunts", "small"],
          caption: "What a word is. You can change these numbers, too.",
          text: "The label of “{seen}”: {list}.",
          still: "The labels: 1, 0, 1, 0 for cats; 0, 1, 0, 0 for chase; 1, 0, 0, 1 for mice.",
        },
        products: {
          title: "Step 1: question times label",
          word: "word", sum: "question · label, number by number", product: "product",
          caption: "The first number of each pair is the question’s, the second the label’s.",
          text: "“{asking}” asks, the label of “{seen}” answers: {terms} = {product}.",
          still: "The products: 4 for cats, 0 for chase, 2 for mice.",
        },
        scores: {
          title: "Step 2: divide",
          word: "word", product: "product", divided: "divided by √4 = 2", score: "score",
          caption: "Each product is divided by the root of how many numbers a list has. There are 4 of them, and 2 times 2 is 4.",
          text: "“{seen}”: {product} / 2 = {score}.",
          still: "The scores: 2 for cats, 0 for chase, 1 for mice.",
        },
        softmax: {
          title: "Step 3: scores become shares",
          word: "word", score: "score", power: "e to the score", divided: "divided by their sum", weight: "weight", total: "sum",
          caption: "e is the number 2.718… To its power, larger scores count more than in proportion, and every result is above 0. Then each is divided by the sum of all.",
          text: "The weights: {weights} = {total}.",
          still: "The weights: 0.665 for cats, 0.090 for chase, 0.245 for mice; their sum is 1.",
        },
        weights: {
          title: "The weights as a picture",
          axes: { x: "word that is looked at", y: "weight" },
          weight: "weight", undivided: "weight if step 2 were left out",
          caption: "The columns are the weights of step 3. The diamonds show what they would be without the division of step 2: the largest takes nearly all.",
          text: "“{asking}” gives “{seen}” the weight {weight}; without the division it would be {undivided}.",
          still: "Three columns, 0.665, 0.090 and 0.245 high. Without the division they would be 0.867, 0.016 and 0.117 high.",
        },
        values: {
          title: "What each word hands over",
          word: "word", numbers: ["danger", "softness"],
          caption: "Two numbers a word, to be changed as you like.",
          text: "“{seen}” hands over {list}.",
          still: "Danger and softness: 3 and 2 from cats, 1 and 0 from chase, 0 and 3 from mice.",
        },
        mixed: {
          title: "Step 4: mix it by the weights",
          word: "word", parts: ["weight · danger", "weight · softness"], total: "sum",
          caption: "The sums are the result. Three places behind the point are shown; computed is with more.",
          text: "“{asking}” gets the list {list}. Its first number: {terms} = {first}.",
          still: "The result for “chase”: danger 2.086, softness 2.065.",
        },
        all: {
          title: "The weights of all three words",
          axes: { row: "asks (i)", column: "is looked at (j)" },
          caption: "A row for each word that asks; the row of the chosen word is the one you made by hand. Press a cell to choose its two words.",
          text: "“{asking}” takes {there} from “{seen}”, and “{seen}” takes {back} from “{asking}”.",
          still: "Three rows of three weights. “chase” takes 0.665 from “cats”, and “cats” takes 0.576 from “chase”.",
        },
      },
      predict: {
        answers: {
          question: "“chase” asks for an animal (2) that hunts (2). Whose label fits that best?",
          options: ["cats", "chase", "mice"],
          answer: 0,
          why: "Its label says animal and hunts, and both agree with the question. Mice are animals, but do not hunt.",
        },
        change: {
          question: "In the label of “cats”, “hunts” is changed from 1 to 0. Which of the three weights change?",
          options: ["Only the weight of cats", "All three", "None, as weights are shares"],
          answer: 1,
          why: "Only one product changes. But all are divided by the same sum, so what one word loses the others gain.",
        },
        nothing: {
          question: "What does a word get whose question is 0, 0, 0, 0?",
          options: ["Nothing", "The same share of each word", "Only itself"],
          answer: 1,
          why: "All products are 0, so all weights are equal: a third of each word.",
        },
      },
      prose: `
<p>A <em>Transformer</em> is a kind of program that reads and writes text: it translates, answers questions, continues a story. To it, a word is a list of numbers. Words far apart may belong together, so each word must be able to look at the others. The step that does this is <em>attention</em>. It is little more than multiplying and adding, and on this page you can do it by hand for three words.</p>
<h2>A question, a label, something to hand over</h2>
<p>Think of a library. You come with a <em>question</em>. Each book has a <em>label</em> on its spine. Where the label fits the question, you read much; elsewhere you read little. And what you take home is not the label but <em>what is in the book</em>.</p>
<p>In attention each word is a reader and a book at the same time. It has three lists of numbers: its question (in papers the <em>query</em>), its label (the <em>key</em>), and what it hands over (the <em>value</em>).</p>
[[controls v.words]]
[[figure questions]]
<p>We chose these numbers by hand, so that each has a meaning. “chase” is a word in search of somebody who does it: an animal that hunts. In a model that was trained nobody chooses the numbers, and few of them mean something that has a name. The steps are the same.</p>
<h2>Step 1: compare</h2>
<p>The question of one word is held against the labels of all three, its own among them.</p>
[[figure labels]]
[[predict answers]]
<p>Take the first number of the question times the first number of the label. Do the same with the second numbers, with the third, with the fourth. Add it all up. The sum is large where both lists have large numbers in the same places. It is called the <em>product</em> of the two lists (in full, the dot product).</p>
[[figure products]]
<p>“chase” fits “cats” best: the product is 4. It has nothing in common with its own label, which says action and nothing else: 0.</p>
<h2>Step 2: divide</h2>
<p>A real list has not 4 numbers but a hundred, say. Sums with more parts come out larger, by chance alone. So each product is divided by the square root of how many numbers there are, which is about how much it grows. Here it is √4 = 2. The result is the <em>score</em>.</p>
[[figure scores]]
<h2>Step 3: make shares</h2>
<p>A score can be anything, below 0 too. We want shares: all of them above 0, and together 1. Two moves do it. First $e$, which is 2.718…, is taken to the power of each score. Then each result is divided by the sum of all. This is known as <em>softmax</em>, and a share is called a <em>weight</em>:</p>
$$\\class{sym-weight}{a_j} = \\frac{e^{\\class{sym-score}{s_j}}}{e^{s_0} + e^{s_1} + e^{s_2}}$$
$$\\class{sym-score}{s_j} = \\frac{\\class{sym-product}{q \\cdot k_j}}{\\sqrt{4}}$$
<p>Here $q$ is the question of the word that asks, $k_j$ is the label of word $j$, and $j$ counts the words: 0, 1, 2. The dot stands for the product of step 1.</p>
[[figure softmax]]
<p>“cats” gets 0.665, two thirds of the attention. “chase” gets 0.090: little, but never nothing. The sum of the weights is 1.</p>
[[predict change]]
<p>Try it: in step 1, in the label of “cats”, change the 1 under “hunts” to 0. One label changed, and each weight is another one.</p>
[[figure weights]]
<p>The diamonds tell why step 2 is there. Without it the weight of “cats” would be 0.867 instead of 0.665. With lists of 16 numbers, these same ones four times over, it would be 0.9997: nothing to speak of would be left for the others.</p>
<h2>Step 4: mix</h2>
<p>Each word hands over its list, times its weight. All is added up. So “chase” gets mostly what “cats” hands over, and some of what “mice” does. The result is a list again, and each number in it lies between the smallest and the largest that was handed over.</p>
<div class="pair">[[figure values]][[figure mixed]]</div>
<p>The danger in “chase” itself is 1. It comes out with 2.086, as it is cats who chase. That is how a word gets a meaning from its sentence.</p>
<h2>All words at once</h2>
<p>Every word asks in this way, each with its own question and all at the same time. Three words have nine weights.</p>
[[figure all]]
<p>The picture is no mirror image: “chase” takes 0.665 from “cats”, and “cats” takes 0.576 from “chase”. To ask and to be asked are two different things. Papers write all four steps in one line, with the questions as rows of $Q$, the labels as rows of $K$, what is handed over as rows of $V$, and $d$ for how many numbers a label has:</p>
$$\\operatorname{softmax}\\!\\left(\\frac{Q K^{\\mathsf T}}{\\sqrt{d}}\\right) V$$
<p>$Q K^{\\mathsf T}$ means: each question times each label. The last $V$ is the mixing.</p>
[[predict nothing]]
<h2>What was not there</h2>
<p>In a model, the three lists of a word are made from the word's own list by multiplying it with tables, which are learned. A model does all this many times beside and after each other. We left that out, as it does not change the four steps.</p>
<p>But look back over the steps for something else. Which of them used the <em>place</em> of a word, first, second or third? None did. In “mice chase cats” the same three words stand in another order, and “chase” gets the same 2.086. What comes of that is the next lab.</p>`,
    },
    order: {
      short: "Order is lost",
      title: "Order is lost",
      lead: "The dog bites the man, or the man bites the dog: attention alone cannot tell which.",
      question: "Both sentences have the same words. Why can attention not see the difference?",
      fields: {
        type: { label: "Places are told by", choices: { none: "nothing", sinusoidal: "waves (sinusoidal)", random: "random vectors" } },
        tokens: { label: "Words of sentence A" },
        width: { label: "Numbers per word" },
        weights_seed: { label: "Another seed (other weights)" },
        "mask.causal": { label: "A word sees only itself and the words before it (causal)" },
        dtype: { label: "Digits of the numbers", choices: { float64: "16 (float64)", float32: "7 (float32)" } },
        return: { label: "Returned" },
        "v.other": { label: "Words of sentence B" },
        "v.sentence": { label: "Sentences", choices: { dog: "the dog bites the man", hund: "der Hund beißt den Mann", cat: "the cat sat on the mat", own: "my own words" } },
        "v.i": { label: "Word that looks (i)" },
        "v.j": { label: "Word that is looked at (j)" },
        "v.pages": { label: "Pages" },
        "v.numbers": { label: "Page numbers are printed" },
      },
      figures: {
        pages: {
          title: "A pile of manuscript pages",
          pages: ["The moon rose", "A dog barked", "The man ran", "A door closed", "Nobody spoke"],
          number: "page number", unnumbered: "no page number",
          numbered: "{right} of 5 pages lie where their number says. Sort them: the numbers tell you when you are done.",
          lost: "Now every order is a story, and nothing on the paper says which one was meant.",
          caption: "Drag the pages into order by their numbers. Then take the numbers away and shuffle: who could put the pages back?",
          text: "{verdict}",
          still: "Five pages with the numbers 3, 1, 5, 2, 4: without page numbers a pile of paper is no book.",
        },
        sentence: {
          title: "Sentence A",
          twin: "its row of weights equals that of another word",
          apart: "“{twin}” stands twice. The two rows of weights differ by up to {gap}.",
          same: "“{twin}” stands twice, with the same row of weights: the difference is {gap}.",
          single: "No word stands twice.",
          caption: "Put the words of A into another order. A word marked = has exactly the same row of weights as another one.",
          text: "A reads: {text}. {verdict}",
          still: "the, dog, bites, the, man: the two words “the” have the same row of weights.",
        },
        other: {
          title: "Sentence B",
          twin: "its row of weights equals that of another word",
          apart: "“{twin}” stands twice. The two rows of weights differ by up to {gap}.",
          same: "“{twin}” stands twice, with the same row of weights: the difference is {gap}.",
          single: "No word stands twice.",
          caption: "The same words in an order of your own. The number under a word is its place, from 0.",
          text: "B reads: {text}. {verdict}",
          still: "the, man, bites, the, dog.",
        },
        weights: {
          title: "Weights of A",
          axes: { row: "looks (i)", column: "is looked at (j)" },
          caption: "Each row is one word. Its numbers say how much it takes from each word, and their sum is 1.",
          text: "In A, “{word}” takes {value} from “{seen}”.",
          still: "A matrix of five rows and five columns. The first and the fourth row, the two words “the”, are the same.",
        },
        weights_other: {
          title: "Weights of B",
          axes: { row: "looks (i)", column: "is looked at (j)" },
          caption: "The same block reads B. The chosen cell belongs to the same two words as in A.",
          text: "In B, “{word}” takes {value} from “{seen}”.",
          still: "The matrix of B: the rows and columns of dog and man have changed places.",
        },
        sorted: {
          title: "B, put into A's order",
          axes: { row: "looks (i)", column: "is looked at (j)" },
          caption: "Only moved: each row and each column of B now stands where its word stands in A.",
          text: "Rows and columns of B in this order: {from}.",
          still: "B with rows and columns in the order of A looks like A.",
        },
        difference: {
          title: "A minus sorted B",
          axes: { row: "looks (i)", column: "is looked at (j)" },
          caption: "On the same scale as A. An empty picture means that B holds nothing that was not in A. A rest such as 1e−16, a 1 in the 16th place behind the point, is rounding.",
          text: "The largest difference is {most}.",
          still: "An empty picture: without an encoding nothing is left.",
        },
        outputs: {
          title: "Does a word come out differently in A and in B?",
          axes: { x: "word of A", y: "distance between its vectors in A and in B" },
          mean: "mean",
          cases: { none: "nothing tells places", sinusoidal: "waves", random: "random vectors", causal: "nothing, but causal" },
          caption: "Each step up is 10,000 times more. Low marks: the two vectors are the same but for rounding. High marks: the block knows which sentence it reads. A distance of exactly 0 lies on the lowest line. The last column compares the means of all words.",
          text: "Means of A and B differ by {none} with nothing, by {sinusoidal} with waves, by {random} with random vectors, and by {causal} with a causal mask alone.",
          still: "Without an encoding all distances are below 0.00000000000001; with waves, with random vectors or with a causal mask the means differ by 0.4 or more.",
        },
        recurrent: {
          title: "Reading word by word: a recurrent cell beside a sum",
          axes: { x: "words read", y: "distance between A and B" },
          cell: "memory of the cell", sum: "sum of the words so far",
          caption: "The cell reads one word after another, and keeps a memory of them. It needs no encoding: its last memory of A differs from that of B. The sum forgets the order: at the end it is the same.",
          text: "After the last word, the memories differ by {cell} and the sums by {sum}.",
          still: "After five words the memory of the cell differs by 1.7 between the sentences; the sum of the words does not differ.",
        },
      },
      predict: {
        move: {
          question: "Nothing tells the places. What happens to the weights when two words change places?",
          options: ["All weights change", "The same weights, in other places", "Only those of the two words change"],
          answer: 1,
          why: "Rows and columns move along with their words. No weight is new.",
        },
        twins: {
          question: "“the” stands twice. With nothing to tell places, how do the two rows of weights differ?",
          options: ["The nearer words weigh more in each", "A little, by chance", "Not at all"],
          answer: 2,
          why: "Both begin with the same list of numbers, and the same arithmetic is done with it.",
        },
        random: {
          question: "Will random vectors, one for each place, help the block to tell A from B?",
          options: ["No, random numbers mean nothing", "Yes, as long as each place has its own", "Only after training"],
          answer: 1,
          why: "To tell places apart it is enough that their vectors differ.",
        },
      },
      prose: `
<p><em>The dog bites the man.</em> <em>The man bites the dog.</em> The same five words, two very different days. You know who was bitten because you know which word came first. Does a Transformer?</p>
<h2>A pile of paper</h2>
<p>Without page numbers a pile of paper is no book. Every word is still there. The story is not.</p>
[[controls v.numbers]]
[[figure pages]]
<p>A Transformer gets its words as such a pile: all at once. The picture ends here, though. A page has a margin for its number. A word in the model is one list of numbers and nothing else, so the number of its place must be added <em>into</em> that list, into the text of the page.</p>
<h2>The same words twice</h2>
<p>Each word enters as a list of numbers, its <em>vector</em>: now [[number width]] of them. The same word always has the same vector, wherever it stands. Then comes one <em>block</em> of a Transformer. In it each word looks at all words, and takes something from each. How much, say its <em>weights</em>.</p>
[[controls v.sentence tokens type mask.causal]]
<div class="pair">[[figure sentence]][[figure other]]</div>
[[predict move]]
<div class="pair">[[figure weights]][[figure weights_other]][[figure sorted]][[figure difference]]</div>
<p>In both sentences, as the page opens, “dog” takes 0.075 from “bites”. It makes no difference who bites. Put into the order of A, the matrix of B is the matrix of A: the difference is 0.</p>
<p>Some languages need the order less. In “der Hund beißt den Mann”, the little words say who bites. Choose it above: there A and B mean the same.</p>
<h2>Why nothing is left</h2>
$$a_{\\class{sym-i}{i}\\class{sym-j}{j}} = \\frac{e^{s(x_{\\class{sym-i}{i}}, x_{\\class{sym-j}{j}})}}{\\text{the sum of the same for all words}}$$
<p>Here $x_{\\class{sym-i}{i}}$ is the vector of the word that looks, and $x_{\\class{sym-j}{j}}$ that of the word it looks at. From the two a score $s$ is made by multiplying and adding. $e$ to the power of a score is always above 0, and dividing by the sum lets each row add up to 1: that is the weight $a_{\\class{sym-i}{i}\\class{sym-j}{j}}$. Now look for the <em>places</em>. $\\class{sym-i}{i}$ and $\\class{sym-j}{j}$ only say which words are meant. Nothing is computed with them.</p>
[[predict twins]]
<p>The two words “the” are the proof. They stand in different places, next to different words, and their rows are equal, number by number. The marks = show it. Now let waves tell the places, above: the marks go, and the difference is empty no more.</p>
<h2>A bag of words</h2>
<p>To such a block a sentence is a bag: what is in it and how often, but not where. Two exact words belong to this. Write $f$ for all that the block does, $x$ for the list of vectors, and $\\pi$, which is no number here, for a change of order.</p>
$$f(\\pi x) = \\pi f(x)$$
$$\\operatorname{mean} f(\\pi x) = \\operatorname{mean} f(x)$$
<p>The first line: change the order of the words, and the results change their order in the same way, and in no other. Each word's result goes along with it. That is <em>equivariant</em>. The second line: often a sentence is made into one vector by the mean of all its words. Then even the order of the results is gone. That is <em>invariant</em>: A and B become the same vector.</p>
<h2>What telling the places does</h2>
$$s(x_{\\class{sym-i}{i}} + p_{\\class{sym-i}{i}}, \\; x_{\\class{sym-j}{j}} + p_{\\class{sym-j}{j}})$$
<p>Give each place a vector of its own, $p_0, p_1, p_2$ and so on, and add it to the word that stands there. Now “dog” in place 1 is not the same list as “dog” in place 4, and the score depends on both places. The vectors used most in these lessons are made of waves; that is the lab after the next one.</p>
[[predict random]]
[[figure outputs]]
<p>The distance between two vectors is 0 only if all their numbers agree. Without an encoding, every word's distance is below 10<sup>−14</sup>: less than a ten-millionth of what the same word moves when waves tell the places. It is not quite 0, as the same numbers are added in another order, and the 16th digit is rounded. In numbers of 7 digits (float32) even that is rounded away.</p>
<p>Random vectors do it, too. So what is special about waves is <em>not</em> that they tell A from B. What they do better, other labs show.</p>
<h2>Order leaks through a mask</h2>
<p>Models that write text let a word see only itself and the words before it. Such a mask is called <em>causal</em>. The first word then sees itself alone: its row is 1, 0, 0, 0, 0. The second sees two words. So the results depend on the order, with no encoding at all. But it is a leak and not a clock: what stood <em>before</em> a word is, within one block, still a bag.</p>
<h2>Aside: networks that read word by word</h2>
<p>Older networks read as you do: $h_t = \\tanh(W x_t + U h_{t-1})$. The memory $h_t$ after word $t$ is made of the word's vector $x_t$ and of the memory before, each multiplied by a table of numbers, $W$ or $U$. $\\tanh$ keeps the results between −1 and 1. The figure computes this on the page, from the word vectors that go into the block and from random tables: all of these were sent by the service.</p>
[[figure recurrent]]
<p>Such a cell has order for nothing, but it must wait for each word before it can read the next. Attention does all words at the same time. The price is what you have just seen, and the encoding pays it.</p>
<h2>What is not shown</h2>
<p>These weights are random, made from a <em>seed</em>: a number from which a program makes the same random numbers each time. They were never trained, so nobody can say what a weight means. What you saw does not depend on that: with neither an encoding nor a mask, it holds for all weights. Try it.</p>
[[controls weights_seed width dtype]]`,
    },
    naive: {
      short: "Naive attempts",
      title: "Naive attempts",
      lead: "Counting, dividing by the length, binary digits: three good ideas for numbering words, and where each one breaks.",
      question: "Why not simply count the words?",
      fields: {
        type: { label: "Kind" },
        form: { label: "Idea", choices: { integer: "count: p", normalized: "share of the text: p/N", binary: "binary digits of p" } },
        d_model: { label: "Columns d (numbers per position)" },
        positions: { label: "Positions N (words in the text)" },
        "v.p": { label: "Position p" },
        "v.q": { label: "Position q" },
        "v.c": { label: "Column" },
        "v.short": { label: "Words in the first text" },
        "v.long": { label: "Words in the second text" },
      },
      figures: {
        numbers: {
          title: "The chosen idea",
          axes: { row: "position p", column: "column" },
          digit: "digit worth",
          caption: "One row for each position: the list that is added to the word there. Choose the idea above. Colours of a count reach as far as it counts; those of the others reach to 1.",
          text: "Position {p}: {row}.",
          still: "A matrix of 16 rows and 4 columns: each row holds its position, from 0 to 15, four times. Low rows are pale, high ones dark.",
        },
        share: {
          title: "How much of the sum is the word?",
          axes: { x: "position p (the text ends at {last})", y: "the word’s part of the sizes, in percent" },
          forms: numberings,
          caption: "The word “dog”, with each position’s list added. At 50 percent word and place are equally large. N in p/N stays what it is, also beyond the end of the text. Binary digits stop where the columns can count no further.",
          text: "The word has size {own}. At position {p} it is {integer} percent of the sum with a count and {waves} percent with waves; at position {last}, with a count, {least} percent.",
          still: "With a count the word falls from 100 percent to 6 at position 15 and to 1.5 at position 63. With waves it stays at 58.",
        },
        lengths: {
          title: "The same position in two texts",
          axes: { x: "position p", y: "p/N" },
          text_of: "a text of {n} words",
          caption: "Go along one height: the same number means different positions. Go up at one position: it has two numbers.",
          text: "From one position to the next it is {step} in the text of {short} words, and {other} in the text of {long}.",
          still: "Position 5 is 0.5 in a text of 10 words, and 0.25 in a text of 20.",
        },
        steps: {
          title: "How far is it to the next position?",
          axes: { x: "from p to the next position", y: "distance of the two lists" },
          forms: numberings,
          caption: "Each mark is one step. A good clock makes equal steps. Binary digits jump: the more of them change, the farther.",
          text: "From position {p} to {next}, {n} binary digits change: a distance of {step}.",
          still: "With binary digits steps are between 1 and 2 long; with the other ideas, and with waves, all steps are equal.",
        },
        apart: {
          title: "Distances between binary numbers",
          axes: { row: "position p", column: "position q" },
          caption: "One cell for each two positions; the stronger its colour, the larger the distance. Neighbours lie beside the empty diagonal. The pattern is a quilt: near positions may be far, and far ones near.",
          text: "The two chosen positions are {k} apart, at a distance of {at}. All pairs that are {k} apart: from {least} to {most}.",
          still: "A quilt of squares: cells along a diagonal differ.",
        },
        apart_waves: {
          title: "Distances between waves",
          axes: { row: "position p", column: "position q" },
          caption: "On the same scale. Each diagonal has one colour: pairs that are equally far apart are equally distant.",
          text: "The two chosen positions are {k} apart, at a distance of {at}. All pairs that are {k} apart: from {least} to {most}.",
          still: "Stripes along the diagonals: each has one colour.",
          map: "The dot products of the same positions as a map: the darker, the nearer. Its stripes are those of the distances.",
        },
        scorecard: {
          title: "The scorecard",
          criterion: "wish",
          forms: numberings,
          criteria: { unique: "unique", bounded: "bounded", same: "same in other lengths", beyond: "goes on", even: "even steps" },
          holds: {
            unique: "closest pair {number} apart", bounded: "largest {number}", same: "change {number}",
            beyond: "also ten times as far", even: "each step {number}",
          },
          fails: {
            unique: "two are equal", bounded: "largest {number}, but {far} ten times as far",
            same: "change {number} in a text twice as long", beyond: "nothing ten times as far", even: "steps {least} to {number}",
          },
          caption: "Measured for the positions and columns that are chosen above. For p/N two readings are tried. If N is the length of the text, positions change with it; if N stays, numbers grow beyond it.",
          text: "Of five wishes a count fulfils {integer}, p/N {normalized}, binary digits {binary}, and waves {waves}.",
          still: "A count fails to be bounded. p/N fails to be bounded and to be the same in other lengths. Binary digits fail to go on and to make even steps. Waves fail in nothing.",
        },
        digits: {
          title: "Binary digits blink",
          axes: { row: "position p", column: "digit worth" },
          caption: "On the left the digit that is worth 1: it blinks at each step. The next is half as fast, and so on.",
          text: "The digit worth {c} comes back after {length} positions. At position {p} it is {value}.",
          still: "A matrix of 16 rows and 4 columns of 0 and 1: the first column changes in each row, the last only once.",
        },
        soft: {
          title: "The same blinking, softened",
          axes: { row: "position p", column: "digit worth" },
          caption: "Each column is now a wave of the same beat. Below one half where the digit is 0, above it where the digit is 1, and in between it slides. Drawn is one half minus half a sine.",
          text: "The wave of the digit worth {c} comes back after {length} positions, too. At position {p} it is {value}.",
          still: "The same columns, but the slow ones now go from 0 to 1 and back by degrees.",
          map: "The waves themselves as a map, in the same order: sines in the left half, cosines in the right. What is blue here is above one half in the figure.",
        },
      },
      predict: {
        swamp: {
          question: "Each number of a position’s list is p. What is left of the word at position 1000?",
          options: ["The word is as clear as before", "Hardly anything: the count drowns it", "The model takes the count off again"],
          answer: 1,
          why: "The word’s own numbers are still in the sum, but they are a thousandth of it.",
        },
        half: {
          question: "With p/N, what is the number of position 5?",
          options: ["0.5", "0.25", "That depends on how long the text is"],
          answer: 2,
          why: "It is 0.5 in a text of 10 words, and 0.25 in one of 20.",
        },
        flip: {
          question: "From position 7 to position 8, how many of four binary digits change?",
          options: ["One", "Two", "All four"],
          answer: 2,
          why: "7 = 4 + 2 + 1, and 8 = 8: three digits go out, and one goes on.",
        },
      },
      prose: `
<p>Attention does not see in which order words stand. So each position gets a list of numbers of its own, and this list is added to the word that stands there. Which list? Most people have one of three ideas. All three are good. See what becomes of them.</p>
<h2>Four wishes</h2>
<p>The place of a word is also called its <em>position</em>. Positions are counted from 0, and from here on $\\class{sym-p}{p}$ is one of them: a number. $\\class{sym-n}{N}$ is how many words the text has, now [[number positions]]. A position’s list has $\\class{sym-d}{d}$ numbers, now [[number d_model]]: one for each number of the word. Such a list is called a <em>positional encoding</em>, $\\mathrm{PE}(\\class{sym-p}{p})$. We want it to be</p>
<ul>
<li><strong>unique:</strong> no two positions have the same list;</li>
<li><strong>bounded:</strong> numbers do not grow with the text;</li>
<li><strong>the same in other lengths:</strong> position 5 has the same list in short texts and in long ones;</li>
<li><strong>going on:</strong> positions beyond the longest text that the model was trained on have a list, too.</li>
</ul>
[[controls form positions d_model]]
[[figure numbers]]
<h2>Idea 1: count</h2>
$$\\mathrm{PE}(\\class{sym-p}{p}) = (\\class{sym-p}{p}, \\class{sym-p}{p}, \\dots, \\class{sym-p}{p})$$
<p>Simpler is not possible. Every position has its own number, in every text, for ever. But the number is added to a word.</p>
[[predict swamp]]
<p>How large is a list? Square its numbers, add the squares, take the root: that is its <em>size</em>. With four columns the word “dog” has size 1.96. The count at position 15 has size 30. In their sum, 6 percent are left for the word.</p>
[[figure share]]
<p>A model meets sizes in long texts that it never met in training, and they swamp the words. The count is not bounded.</p>
<h2>Idea 2: divide by the length</h2>
$$\\mathrm{PE}(\\class{sym-p}{p}) = \\frac{\\class{sym-p}{p}}{\\class{sym-n}{N}}$$
<p>Now no number in the text reaches 1. The word is safe.</p>
[[predict half]]
[[controls v.short v.long]]
[[figure lengths]]
<p>Position 5 of 10 is not position 5 of 20. Worse, “the next word” has no fixed meaning: it is 0.1 away in one text and 0.05 in the other. And who writes a text word by word does not know $\\class{sym-n}{N}$ before the end. Keep one $\\class{sym-n}{N}$ for all texts, then, and count on beyond it? Then numbers grow again.</p>
<h2>Idea 3: binary digits</h2>
<p>Computers write 5 as 101: one four, no two, one one. Give each digit a column. The first column is the digit worth 1, then come 2, 4 and 8. With four columns 16 positions are told apart, and no number is above 1.</p>
[[predict flip]]
<p>How far apart are two lists? Take their difference, and its size: that is their <em>distance</em>. From 3 to 4 three digits change, a distance of 1.73. From 4 to 5 it is one digit, a distance of 1. Yet both are one step.</p>
[[figure steps]]
<div class="pair">[[figure apart]][[figure apart_waves]]</div>
<p>So distance between lists says little about distance in the text. 7 and 8 are neighbours, and as far from each other as four digits can be: 2. 0 and 8 lie eight words apart, and their distance is 1. With waves, the subject of the next lab, it is the same step everywhere: 0.959. But look at the faint stripes: with only four columns, 0 and 6 come as near as 0.29. More columns mend that.</p>
<p>And there is the width. $\\class{sym-d}{d}$ digits count to $2^{\\class{sym-d}{d}} - 1$. Each time texts become twice as long, one more column is needed. The model’s width was fixed long before.</p>
<h2>The card</h2>
<p>The four wishes, and as a fifth what binary digits have taught us: <em>even steps</em>.</p>
[[figure scorecard]]
<p>A card counts faults, but does not weigh them. The count has only one, and that one is enough.</p>
<h2>Digits that blink, softened</h2>
<p>Binary digits are nearly right. Each column is a lamp that blinks at its own speed, and all lamps together tell the position. Only the sudden switching is wrong. What blinks without switching? A wave.</p>
<div class="pair">[[figure digits]][[figure soft]]</div>
<p>This is the idea of the next lab: many waves, fast ones and slow ones. Two things change there. Each wave comes as a pair, sine and cosine. And a wave need not be twice as long as the one before.</p>
<h2>What is not shown</h2>
<p>Nothing here is trained. “dog” is a random list, made from one seed, as words are before training; trained words have other sizes. A trained model may learn to live with some of these faults. It need not, if the encoding has none.</p>`,
    },
    waves: {
      short: "Waves",
      title: "Waves",
      lead: "Sines and cosines of many lengths give every position a pattern of its own.",
      question: "In the picture that everybody shows, what is a row, what is a column, and what is i?",
      fields: {
        type: { label: "Encoding" },
        d_model: { label: "Width d" },
        base: { label: "Base" },
        layout: { label: "Order of columns", choices: { interleaved: "sin, cos, sin, cos (interleaved)", halves: "all sin, then all cos (halves)" } },
        positions: { label: "How many positions" },
        "v.p": { label: "Position p" },
        "v.i": { label: "Pair i" },
        "v.phase": { label: "Wave of the pair", choices: { sin: "sine", cos: "cosine" } },
        "v.q": { label: "Another position q" },
        "v.every": { label: "See 1 of how many positions (n)" },
      },
      figures: {
        dials: {
          title: "One position, told by many hands",
          axes: { x: "cosine", y: "sine" },
          pair: "pair", at: "position",
          caption: "Each dial is one pair of numbers of the same position. The dotted hand is where it stood one position earlier: the hand of pair 0 has jumped, those of high pairs have hardly moved.",
          text: "All hands are those of position {p}. The end of a hand is as far to the right as its cosine says, and as high as its sine says.",
          still: "Dials with one hand each: at position 10 the hand of pair 0 has gone around once and more, that of the last pair still points to the right.",
          map: "The 64 numbers of position 10 as a map, in one row: of each two, the first is how high a hand ends, the second how far to the right. Orange is above zero, blue below.",
        },
        steps: {
          title: "The formula, from the inside out",
          head: ["Step", "How", "Result"],
          steps: {
            exponent: "Exponent", divisor: "Divisor", angle: "Angle", turns: "The same in turns", sine: "Sine", cosine: "Cosine",
            sentSine: "Sent by the service: column {column}", sentCosine: "Sent by the service: column {column}",
          },
          how: {
            exponent: "2 × {i} / {d}", divisor: "{base} to the power of {exponent}", angle: "{p} / {divisor}",
            turns: "{angle} / 6.28", sine: "sine of {angle}", cosine: "cosine of {angle}",
            sentSine: "row {p}", sentCosine: "row {p}",
          },
          caption: "The first six rows are computed on this page. The last two are what the service sent for the same position and pair: the same numbers.",
          text: "Position {p}, pair {i}: the angle is {angle}; the sine {sine} and the cosine {cosine} are the two numbers of the pair.",
          still: "Position 10, pair 2 of 32: exponent 0.0625, divisor 1.78, angle 5.62, which is 0.895 of a turn; sine −0.613, cosine 0.790.",
        },
        matrix: {
          title: "A row for every position",
          axes: { row: "position p", column: "column" },
          pair: "pair", phases: { sin: "sin", cos: "cos" },
          caption: "Each row is the vector of one position. Each column is one wave, seen at all positions. Orange is above zero, blue below.",
          text: "{positions} rows of {d_model} numbers, all from \u22121 to 1. Fast waves make fine stripes, slow ones hardly change from row to row.",
          still: "Heat map of 64 positions and 64 columns: fast stripes on the left, slow ones on the right.",
        },
        curves: {
          title: "One pair: two waves of one length",
          axes: { x: "position p", y: "value" },
          sine: "sine", cosine: "cosine",
          caption: "The two columns of the chosen pair, laid on their side. Words stand only on whole positions, where the marks are. The wave between them is drawn from the same formula.",
          text: "Pair {i} repeats after {length} positions. The line has {each} points for each position.",
          still: "Pair 2: a sine and a cosine that repeat after 11.2 positions; the cosine is a quarter of a wave ahead.",
        },
        lengths: {
          title: "How long the waves are",
          axes: { x: "pair i", y: "positions until the wave repeats" },
          line: "wavelength",
          rulers: [{ at: 20, name: "a sentence: 20 words" }, { at: 300, name: "a page: 300" }, { at: 5000, name: "a chapter: 5,000" }, { at: 80000, name: "a book: 80,000" }],
          caption: "Low pairs are fast, high pairs are slow. Each wave is longer than the one before by the same factor, so on this axis, where each step up is 10 times more, they lie on a straight line.",
          text: "From {first} positions to {last}, always below {limit}. Pair {i} repeats after {length}.",
          still: "A straight line on a logarithmic axis: from 6.28 positions of pair 0, less than a sentence, to 47,117 of pair 31, between a chapter and a book.",
        },
        binary: {
          title: "A binary counter",
          axes: { row: "position p", column: "digit" },
          caption: "Positions 0 to 31 in binary digits, the ones first, then twos, fours, eights, sixteens. The ones flip at every step.",
          text: "Position {p} is {digits} in binary digits, as they are usually written: the ones last.",
          still: "Five columns of blank and orange cells: the first changes at every row, each next one half as often.",
        },
        smooth: {
          title: "The same with smooth wheels",
          axes: { row: "position p", column: "column" },
          pair: "pair", phases: { sin: "sin", cos: "cos" },
          caption: "Five pairs of waves, each half as fast as the one before (d = 10, base 32). Nothing flips: everything turns.",
          text: "Ten columns of waves. As in the counter, the first change most from row to row, and the last least.",
          still: "Ten columns of waves beside the counter: fast on the left, slow on the right, without any jump.",
        },
        jumps: {
          title: "How far is one step?",
          axes: { x: "from position p to the next", y: "distance between the two vectors" },
          binary: "binary counter", smooth: "smooth wheels",
          caption: "The distance between two neighbours: the root of the sum of all squared differences. The counter jumps; the waves always make steps of the same size.",
          text: "From {p} to {next} the counter flips {changed} of its digits: distance {binary}. The waves move by {smooth}.",
          still: "The counter's steps are between 1 and 2.24 long; those of the waves are all 1.12.",
        },
        interleaved: {
          title: "sin, cos, sin, cos",
          axes: { row: "position p", column: "column" },
          pair: "pair", phases: { sin: "sin", cos: "cos" },
          caption: "Interleaved: both waves of a pair are neighbours.",
          text: "The chosen wave is column {column} here.",
          still: "Interleaved: fast stripes on the left, slow columns on the right, sines and cosines in turn.",
        },
        halves: {
          title: "All sin, then all cos",
          axes: { row: "position p", column: "column" },
          pair: "pair", phases: { sin: "sin", cos: "cos" },
          caption: "Halves: the two waves of a pair are d/2 columns apart.",
          text: "The same wave is column {column} here.",
          still: "Halves: the stripes are on the left of each half; the left half is sines, the right half cosines.",
        },
        products_interleaved: {
          title: "Dot products, interleaved",
          axes: { row: "position p", column: "position q" },
          caption: "Each cell is the dot product of the vectors of two positions.",
          text: "Positions {p} and {q}: {value}. The largest difference to the other picture: {most}.",
          still: "A bright diagonal that fades to both sides.",
        },
        products_halves: {
          title: "Dot products, halves",
          axes: { row: "position p", column: "position q" },
          caption: "The same from the other order of columns. It is the same picture.",
          text: "Positions {p} and {q}: {value}. The largest difference to the other picture: {most}.",
          still: "The same bright diagonal.",
        },
        alias: {
          title: "A slow wave that is not there",
          axes: { x: "position p", y: "sine of pair 0" },
          wave: "the wave", seen: "seen at 1 of {n} positions",
          caption: "The line without marks is the sine of pair 0, which repeats after 6.28 positions. The squares are the same wave, seen at few positions, and joined.",
          text: "Seen at only 1 of {n} positions, the wave seems to repeat after {length} positions.",
          still: "A fast wave, and squares on it at every sixth position: joined, they look like a slow wave of 133 positions.",
        },
      },
      predict: {
        column: {
          question: "The vectors of all positions are written under each other: sine, cosine, sine, cosine and so on. Columns are counted from 0. What is column 5?",
          options: ["The word in place 5", "One wave at all positions: the cosine of pair 2", "A number of position 0 only"],
          answer: 1,
          why: "Position 5 is a row. Going down a column, the position changes and the wave stays the same.",
        },
        low: {
          question: "Which pairs change fastest from one position to the next?",
          options: ["Those with a low number i", "Those with a high number i", "All alike"],
          answer: 0,
          why: "Pair 0 turns by one radian at each position, about a sixth of a turn; the last hardly moves.",
        },
        layouts: {
          question: "All columns are put into another order, the same for every position. What happens to the dot products?",
          options: ["They change a lot", "They change a little", "They stay the same"],
          answer: 2,
          why: "The same products are added up, only in another order.",
        },
      },
      prose: `
<p>A clock has a fast hand and slow ones. One glance at all of them tells the time of the whole day, although each hand alone comes back to the same place again and again. Positions are told in the same way.</p>
[[controls v.p]]
[[figure dials]]
<p>The vector of a position is made of such dials. Each has one hand of length 1, and gives two numbers: how high the hand's end is, the <em>sine</em> of its angle, and how far to the right, the <em>cosine</em>. Angles are measured in radians, where 6.28, or $2\\pi$, is one full turn.</p>
<h2>The formula, step by step</h2>
$$\\mathrm{PE}(\\class{sym-p}{p}, 2\\class{sym-i}{i}) = \\sin\\frac{\\class{sym-p}{p}}{\\class{sym-base}{10000}^{2\\class{sym-i}{i}/\\class{sym-d}{d}}}$$
$$\\mathrm{PE}(\\class{sym-p}{p}, 2\\class{sym-i}{i}+1) = \\cos\\frac{\\class{sym-p}{p}}{\\class{sym-base}{10000}^{2\\class{sym-i}{i}/\\class{sym-d}{d}}}$$
<p>$\\mathrm{PE}$ stands for positional encoding. $\\class{sym-p}{p}$ is the position of a word, now [[number v.p]]. $\\class{sym-d}{d}$ is how many numbers its vector has, now [[number d_model]]. $\\class{sym-i}{i}$ counts the dials, that is, the <em>pairs</em> of numbers: from 0 to $d/2-1$. It is now [[number v.i]]. (In the labs before, the same letter was the word that looks. Papers use it for both.) The base, 10000, is a number that somebody chose.</p>
<p>Read it from the inside. Divide $2\\class{sym-i}{i}$ by $\\class{sym-d}{d}$: this goes from 0 to almost 1. Raise the base to that power: from 1 to almost 10000. Divide the position by it: that is the angle. So the hand of pair 0, where the divisor is 1, turns by one radian from each position to the next. The rest is a sine and a cosine.</p>
[[controls v.i base]]
[[figure steps]]
<h2>All positions in one picture</h2>
[[predict column]]
<p>Put the vectors of all positions under each other, and you get the picture that everybody shows.</p>
[[controls d_model positions layout v.phase]]
[[figure matrix]]
<p>Read it both ways. Along a row: one position, all its numbers. Down a column: one wave, at all positions. A column is <em>not</em> a position, and it is not $\\class{sym-i}{i}$ either: pair $\\class{sym-i}{i}$ has <em>two</em> columns, a sine and a cosine. Choose a cell, and the figures on this page follow.</p>
[[figure curves]]
<h2>Fast waves and slow ones</h2>
[[predict low]]
[[figure lengths]]
<p>Pair 0 repeats after 6.28 positions, whatever the width and the base. So it tells neighbours apart, but not a word from one that is 44 places further: there it is off by less than 0.02. The last pair needs 47,117 positions here. It tells the beginning of a book from its middle, but not one word from the next. Some drawings have this the wrong way round.</p>
$$\\text{longest} = 2\\pi \\cdot \\class{sym-base}{10000}^{(\\class{sym-d}{d}-2)/\\class{sym-d}{d}}$$
<p>You may read that the waves go up to $2\\pi \\cdot 10000$, which is 62,832. They never quite do, as the last pair is $d/2-1$ and not $d/2$: with $d = 128$ the longest has 54,410 positions, with $d = 512$ it has 60,611.</p>
<h2>A counter with smooth wheels</h2>
<p>You know another way to tell numbers by columns that change at different speeds: digits.</p>
<div class="pair">[[figure binary]][[figure smooth]]</div>
<p>From 7 to 8 four digits of the counter flip at once, from 8 to 9 only one. So two neighbours may look far apart. Waves have no such cliffs.</p>
[[figure jumps]]
<h2>Two orders of columns, one encoding</h2>
<p>Some programs write sine, cosine, sine, cosine. Others write all sines first. The pictures differ so much that many a reader has taken one for a mistake.</p>
[[predict layouts]]
<div class="pair">[[figure interleaved]][[figure halves]][[figure products_interleaved]][[figure products_halves]]</div>
<p>A <em>dot product</em> takes two lists, multiplies first by first, second by second and so on, and adds everything up. It is how a Transformer compares vectors, and it does not care which column comes first. The two pictures at the bottom differ by less than 10<sup>−13</sup>, which is rounding. But do not mix both orders in one model.</p>
<h2>Waves that are not there</h2>
<p>Look at few points of a fast wave, and you see a slow one. This is called <em>aliasing</em>.</p>
[[controls v.every]]
[[figure alias]]
<p>At every position (n = 1) nothing is lost: even the fastest wave has more than six positions for each turn. At every sixth, it seems to repeat after 133 positions. Pictures that are made smaller by leaving out rows do just that, and show patterns that nobody computed. The figures here leave out nothing: where there is no room, they show a part and say so.</p>
<h2>What is not shown</h2>
<p>Nothing here was learned: it is a formula. Whether all rows really differ, and what the hands are good for, later labs show. And a model is free to use these numbers or not.</p>`,
    },
    sum: {
      short: "The sum",
      title: "The sum",
      lead: "The vector of a place is added to the word. Why that does not spoil the word.",
      question: "Word and place become one sum. How can the word still be found in it?",
      fields: {
        type: { label: "Places are told by", choices: { sinusoidal: "waves (sinusoidal)" } },
        tokens: { label: "Words" },
        width: { label: "Numbers per word (d)" },
        embedding_scale: { label: "The service’s word vectors are multiplied by" },
        token_seed: { label: "Another seed (other word vectors)" },
        weights_seed: { label: "Seed of the layer" },
        dtype: { label: "Digits of the numbers" },
        return: { label: "Returned" },
        "v.times": { label: "Word vectors", choices: { root: "multiplied by √d", table: "as the table has them" } },
        "v.p": { label: "Place p" },
        "v.c": { label: "Column" },
      },
      figures: {
        enters: {
          title: "Where places enter",
          step: "step", shape: "what it is",
          boxes: {
            words: "words", places: "places", vectors: "word vectors", positions: "place vectors",
            sum: "word + place", layer: "layer 1", more: "layers 2, 3, and so on", out: "a new vector for each word",
          },
          inLayer: "attention, then arithmetic on each word", inMore: "the same again",
          caption: "From top to bottom. Places come in once, before the first layer. In brackets: how many rows, and how many numbers in each.",
          text: "{n} words, each with {width} numbers from the first step to the last.",
          still: "Words become vectors, places become vectors, both are added, and the sum goes through the layers.",
        },
        content: {
          title: "The words",
          axes: { row: "word", column: "column" },
          caption: "A row for each word. The two “the” have the same row. What is beyond 3 or −3 has the last colour.",
          text: "Column {c} of “{word}”: {value}.",
          still: "Five rows of 32 random numbers; those of the two words “the” are the same.",
        },
        positions: {
          title: "The places",
          axes: { row: "place", column: "column" },
          caption: "A row for each place, on the same scale: no number is beyond 1 or −1.",
          text: "Column {c} of place {p}: {value}.",
          still: "Heat map of five rows and 32 columns: waves, fast on the left and slow on the right.",
        },
        sum: {
          title: "The sum",
          axes: { row: "word, place", column: "column" },
          caption: "This goes into the first layer. Each cell is the sum of the two cells above it. The two “the” now differ.",
          text: "Column {c} of “{word}” in place {p}: {ofWord} + {ofPlace} = {value}.",
          still: "Five rows: the words can still be seen, and the waves shine through.",
        },
        lengths: {
          title: "How long the vectors are",
          axes: { x: "word", y: "length" },
          word: "word", place: "place", sum: "sum",
          caption: "Each word’s own vector, the vector of its place, and their sum. All places are equally long.",
          text: "“{word}” is {ofWord} long, its place {ofPlace}, which is the root of d/2: {root}.",
          still: "The five words are 4.3 to 6.3 long, all places 4.",
        },
        left: {
          title: "Which word is the sum nearest to?",
          word: "word", nearest: "nearest", itself: "cosine with itself", other: "with the best other", same: "same word",
          caption: "The sum of each word and its place is compared with the word vectors of a small dictionary.",
          text: "{right} of {n} words are nearest to themselves, among {all}.",
          still: "All five words are nearest to themselves, among 64.",
        },
        found: {
          title: "Words that are still found, of 64",
          axes: { x: "numbers per word (d)", y: "words found" },
          root: "words multiplied by √d", table: "words as the table has them",
          caption: "64 words stand in places 0 to 63. Counted are those whose sum is still nearest to their own word.",
          text: "With {at} numbers per word, {root} of {all} are found; if the words are not multiplied, {table}.",
          still: "Multiplied by √d: 43 of 64 words with 8 numbers each, all 64 from 32 numbers on. Not multiplied: never more than 13.",
        },
        angles: {
          title: "How much a word and a place have in common",
          axes: { x: "numbers per word (d)", y: "mean size of the cosine" },
          measured: "64 words and 64 places", chance: "0.8/√d, for random directions",
          caption: "The cosine of each word with each place, without its sign, and the mean of all 4096. The dotted line is what chance alone would give.",
          text: "With {at} numbers: {mean}.",
          still: "The mean falls from 0.43 with 4 numbers to 0.05 with 256.",
        },
      },
      predict: {
        spoil: {
          question: "The service adds place vectors to words of 32 numbers each. How many of 64 words can be told from their sums?",
          options: ["About half", "Hardly any", "All of them"],
          answer: 2,
          why: "Each sum is still nearest to its own word.",
        },
        wide: {
          question: "Two lists of random numbers are compared. What does the cosine do if both become longer?",
          options: ["It comes nearer to 1", "It comes nearer to 0", "It stays as it is"],
          answer: 1,
          why: "With more numbers there are more ways to differ: agreement and disagreement cancel out.",
        },
      },
      prose: `
<p>The number of a page is printed in the margin. A word in a Transformer has no margin: it is a list of numbers, a <em>vector</em>. So each place has a vector, too, and the two are added. But if the sum of two numbers is 7, nobody can say which two they were. Does adding not spoil the word?</p>
<h2>Where it happens</h2>
[[figure enters]]
<p>A table has a row of numbers for each word. Another list of rows, made of waves, has one for each place. The model adds the two rows and goes on with the sum. Nothing else tells it the order.</p>
<h2>Number by number</h2>
[[controls tokens width]]
[[figure content]]
[[figure positions]]
[[figure sum]]
<p>Here a word has [[number width]] numbers. Press a cell: its sum is written out below the picture. Both “the” have one row in the table, but they stand in different places, so two different rows go in.</p>
<h2>Who is louder?</h2>
<p>If one of the two were much larger, it would drown the other. The size of a vector is also called its <em>length</em>: multiply each number by itself, add up, take the square root.</p>
$$\\sqrt{(\\sin^2 + \\cos^2) + \\dots + (\\sin^2 + \\cos^2)}$$
$$= \\sqrt{1 + \\dots + 1} = \\sqrt{\\class{sym-d}{d}/2}$$
<p>$\\class{sym-d}{d}$ is how many numbers a vector has. The numbers of a place come in pairs, a sine and a cosine of the same angle, and the squares of such a pair always add up to 1. There are d/2 pairs, so every place is equally long: √(d/2). With 32 numbers that is √16 = 4, for each place.</p>
<p>And the word? In the first Transformer, of 2017, the table begins with small random numbers, so that each word is about 1 long. A place of length 4 would drown it. So the row of a word is multiplied by √d before the place is added. With 32 numbers, words are then 5.6 long on the average of 64: louder than their places, but not by much.</p>
[[controls v.times]]
[[figure lengths]]
<p>The service makes its word vectors about as long as they are after multiplying. To show the table as it was, the call divides by √d: that is its <code>embedding_scale</code>.</p>
<h2>Is it still the word?</h2>
[[predict spoil]]
<p>Two vectors may point the same way or not. The <em>cosine</em> says how much: multiply number by number, add up, divide by both lengths. It is 1 for the same direction, 0 for directions that have nothing in common, −1 for opposite ones.</p>
[[figure left]]
<p>Take the sum, and look for the word of a dictionary whose cosine with it is largest. If it is the word that went in, then the word has not been lost. With 32 numbers all five are found.</p>
[[figure found]]
<p>How many are found depends on <em>d</em>. With 4 numbers, 17 of 64; with 8, 43; from 32 on, all 64. If the words are not multiplied by √d, more numbers do not help: with 256 there are 12.</p>
<h2>Why: there is room</h2>
[[predict wide]]
<p>On a sheet of paper, two arrows seldom stand at right angles. Lists of 256 random numbers nearly always do, or almost. The figure compares each of 64 words with each of 64 places.</p>
[[figure angles]]
<p>With 256 numbers, the mean size of the cosine is 0.05: word and place have next to nothing in common. So it is almost as if each had numbers of its own. A question that fits the word hardly notices the place, and the other way round. And questions are what the next layers ask.</p>
<p>One could put the two lists one behind the other instead. Nothing would be mixed at all. But every list would be longer, and every table larger. With room enough, the sum does it at next to no cost.</p>
<h2>What is not shown</h2>
<p>These word vectors are random. Trained ones are not: words of like meaning point in like directions, and training can keep them out of the way of the places. To look for the nearest word is also a rough test, which no model makes. It only shows that the word is still there to be found. Another seed gives other words:</p>
[[controls token_seed]]`,
    },
    fingerprints: {
      short: "Fingerprints",
      title: "Fingerprints",
      lead: "No two positions have the same vector. How near do they come, and what happens when computers round?",
      question: "Can one place be taken for another?",
      fields: {
        type: { label: "Encoding" },
        d_model: { label: "Columns d" },
        base: { label: "Base" },
        layout: { label: "Order of columns", choices: { interleaved: "sin, cos, sin, cos", halves: "all sin, then all cos" } },
        positions: { label: "Positions" },
        "v.p": { label: "Position p" },
        "v.q": { label: "Position q" },
        "v.c": { label: "Column" },
        "v.width": { label: "Columns in the hunt" },
        "v.k": { label: "Position k" },
        "v.n": { label: "Positions counted" },
        "v.far": { label: "Far position" },
      },
      figures: {
        prints: {
          title: "The fingerprints of positions",
          axes: { row: "position p", column: "column" },
          caption: "Each row is the vector of one position. Look for two equal rows. Slow columns on the right make neighbours alike, fast ones on the left tell them apart.",
          text: "All numbers lie between {least} and {most}. The vector of position {p} has size {size}.",
          still: "64 rows of 16 numbers between \u22121 and 1: fast stripes on the left, slow ones on the right, and no two rows alike.",
        },
        norms: {
          title: "The size of a position’s vector",
          axes: { x: "position p", y: "size (each line is ten times more; 0 lies on the lowest)" },
          forms: numberings,
          caption: "Waves have one size at all positions. A count and p/N begin with 0 and grow. Binary digits go up and down.",
          text: "With waves all sizes lie between {least} and {most}.",
          still: "The size of waves is 2.83 at all positions; that of a count goes from 0 to 252.",
        },
        distances: {
          title: "Distances of all fingerprints",
          axes: { row: "position p", column: "position q" },
          caption: "One cell for each two positions: the fainter, the nearer. Only the diagonal, where a position meets itself, is empty.",
          text: "Positions {p} and {q} are {at} apart. The nearest two of all are {a} and {b}, at {least}.",
          still: "An empty diagonal, and stripes beside it that never become as pale.",
          map: "The dot products of the same positions as a map. All vectors are equally large, so the darker orange, the nearer: darkest on the diagonal.",
        },
        hunt: {
          title: "Who is the double of position 0?",
          axes: { x: "position k", y: "distance to position 0 (each line is 100 times more)" },
          distance: "distance", record: "nearer than all before",
          caption: "Each time the line dips, a position looks nearly like position 0. Diamonds: nearer than all before. Choose more columns, and the dips go. 6e−5 is short for 0.00006.",
          text: "With {d} columns the nearest to position 0 is position {nearest}, at {least}. Position {k} is {at} away; the first hand has made {turns} turns there.",
          still: "With 2 columns there are ever deeper dips at 6, 19, 25, 44, 333 and 710. At 710 the distance is 0.00006.",
        },
        doubles: {
          title: "The nearest two of 2048 positions",
          head: ["columns", "steps apart", "distance", "The neighbour is nearest"],
          step: "one step is {step}",
          caption: "The pair at the smallest distance, of all pairs, and how many steps apart in the text it is. Press a number of columns to hunt there. Columns come in pairs, each with its own speed.",
          text: "Neighbours are the nearest with {n} of these {all} widths.",
          still: "With 2 columns the nearest two are 710 positions apart, at 0.00006; with 4, 1885 positions at 0.044; with 8, 63 positions at 0.645; from 16 on they are neighbours.",
        },
        different: {
          title: "How many fingerprints are left?",
          axes: { x: "number of positions", y: "different vectors" },
          caption: "The straight line is float32: each position has a vector of its own. The others bend where their digits run out. These vectors have two columns; more would not help, as the position is rounded first.",
          text: "Of {n} positions {float32} are told apart with float32, {float16} with float16 and {bfloat16} with bfloat16.",
          still: "Of 4096 positions all are told apart with float32, 3073 with float16, and 769 with bfloat16.",
        },
        errors: {
          title: "Rounded, and how far off",
          axes: { x: "position", y: "distance from the exact vector (each line is 100 times more)" },
          step: "one step",
          caption: "The same vectors computed with few digits, against the exact ones. On the line “one step” an error makes a position look like its neighbour. Only odd positions are drawn, as they are the first that rounding loses. float16 has no number above 65504, so its line ends.",
          text: "At position {last} float32 is {error} off.",
          still: "float32 errors grow with the position, from less than 0.0000001 to about 0.013 at a million. bfloat16 is a whole step off after 256, and float16 after 2048.",
        },
      },
      predict: {
        size: {
          question: "Which position has the largest vector?",
          options: ["The first one", "The last one", "All are equally large"],
          answer: 2,
          why: "Each pair of columns adds exactly 1 to the square of the size, at every position.",
        },
        double: {
          question: "One pair of columns is one hand of a clock. Can two positions have exactly the same vector?",
          options: ["Yes, after some whole turns", "No, but nearly", "No, and never nearly"],
          answer: 1,
          why: "A whole number of steps is never exactly a whole number of turns. But 710 steps are very nearly 113 turns.",
        },
        sixteen: {
          question: "4096 positions, each first rounded to bfloat16. How many different vectors are left?",
          options: ["4096", "3073", "769"],
          answer: 2,
          why: "bfloat16 knows all whole numbers up to 256, then every second one, then every fourth, and so on.",
        },
      },
      prose: `
<p>A fingerprint is worth something because no other finger has it. We want the same of a position: a vector that no other position has, made of numbers that never grow. Waves promise both. Do they keep it?</p>
<h2>A row is a fingerprint</h2>
[[controls d_model positions base layout]]
[[figure prints]]
<p>A wave swings between −1 and 1 for ever. So all numbers are <em>bounded</em>, at position 10 as at position ten million. What of the whole vector? Its <em>size</em> is the root of the sum of all squares.</p>
[[predict size]]
$$|\\mathrm{PE}(\\class{sym-p}{p})|^2 = (\\sin^2 + \\cos^2) + \\dots = \\frac{\\class{sym-d}{d}}{2}$$
<p>Sine and cosine of one angle always belong together: their squares add up to 1. There are $\\class{sym-d}{d}/2$ pairs, now with $\\class{sym-d}{d}$ = [[number d_model]]. So the size is $\\sqrt{\\class{sym-d}{d}/2}$, and $\\class{sym-p}{p}$ has gone from the formula. Every word of a text, first or last, is moved equally far.</p>
[[figure norms]]
<h2>How far apart are two of them?</h2>
<p>The distance of two vectors is the size of their difference. It is 0 only if they are equal.</p>
[[figure distances]]
<p>With 16 columns and 64 positions, no distance is smaller than that of neighbours, 1.01. “Unique” is not enough to say. What matters is how near the nearest other one comes.</p>
<h2>The hunt for a double</h2>
<p>Make it hard for the waves. With two columns there is a single pair: one hand of a clock, which turns by 1 radian at each position. A whole turn takes $2\\pi$ = 6.283… radians.</p>
[[predict double]]
[[controls v.width v.k]]
[[figure hunt]]
<p>Position 6 is not yet a whole turn, and position 44 is 7 turns and a little. At position 710 the hand has made 113 turns, almost to the hair: the distance to position 0 is 0.0000603. The reason is more than 1500 years old. The Chinese astronomer Zu Chongzhi found that $\\pi$ is nearly 355/113. So 355 steps are nearly 113 half turns, and 710 are nearly 113 whole ones. But only nearly: no fraction of whole numbers is exactly $\\pi$. In exact numbers two positions never agree, with any width.</p>
[[figure doubles]]
<p>A second, slower hand tells 0 from 710 at once. To be a double, a position must now deceive both hands. With four columns the best is 1885 positions away, at a distance of 0.044. With eight it is 63 away, at 0.645. From 16 columns on, no stranger among 2048 positions is nearer than the neighbour. Models have hundreds of columns.</p>
<h2>When computers round</h2>
<p>So far each number was exact but for its last digit. Computers that train models like short numbers. float32 keeps 24 binary digits, float16 keeps 11, and bfloat16 only 8. With 8 binary digits one can write 256, and then 258, but not 257. If a program keeps the <em>position</em> in such a number, it is too late for any wave.</p>
[[predict sixteen]]
[[figure different]]
<p>256 and 257 then have the same fingerprint, because they are the same position. This has happened in real programs. Many now compute angles in float32, whatever the rest is computed in.</p>
[[figure errors]]
<p>And float32? Its positions are right, up to 16 million. But the speed of each wave is rounded, too, and a small error of speed grows with the way. With 16 columns the error at a million is about 0.013: a hundredth of a step. This service computes as if with all digits, and rounds once, at the end. The errors are measured against that.</p>
<h2>What is not shown</h2>
<p>Being different is not yet being <em>found</em>: a model has to learn to read these vectors, and nothing is trained here. Nor is the rounding shown that comes later, when position and word are added in 16 bits.</p>`,
    },
    rotation: {
      short: "Rotation",
      title: "Rotation",
      lead: "Three words back is one and the same turn, wherever you stand.",
      question: "Why waves, when random numbers tell places apart as well?",
      fields: {
        type: { label: "Encoding", choices: { sinusoidal: "waves (sinusoidal)" } },
        d_model: { label: "Numbers per place (d)" },
        order: { label: "Each pair is", choices: { sin_cos: "(sin, cos): turns like a clock", cos_sin: "(cos, sin): turns as in a maths book" } },
        distance: { label: "Step k" },
        dtype: { label: "Digits of the numbers", choices: { float64: "16 (float64)" } },
        return: { label: "Returned" },
        "v.p": { label: "Place p" },
        "v.i": { label: "Pair i" },
        "v.row": { label: "Row" },
        "v.column": { label: "Column" },
      },
      figures: {
        hands: {
          title: "A place is a set of hands",
          axes: { x: { sin_cos: "sine", cos_sin: "cosine" }, y: { sin_cos: "cosine", cos_sin: "sine" } },
          pair: "pair", from: "place p", to: "place p + k", ring: "where the step takes the hand of p",
          note: "p = {p}, k = {k}",
          caption: "Take the end of a hand and turn it: the round end moves $p$, the square one $k$. Or press the arrow keys: left and right for $p$, up and down for $k$. The ring is computed from the hand of $p$ and from $k$ alone. It always meets the square.",
          text: "Place {p} and place {to}. Rings and squares are at most {miss} apart.",
          still: "Eight circles, each with a hand for place 4 and one for place 7. In the first the angle between them is nearly half a turn, in the last one too small to be seen.",
          map: "The ends of all hands at places 0 to 31 as a map: a row for each place, two columns for each hand, sine and cosine.",
        },
        proof: {
          title: "Why the step does not know the place",
          axes: { x: { sin_cos: "sine", cos_sin: "cosine" }, y: { sin_cos: "cosine", cos_sin: "sine" } },
          from: "place p", to: "place p + k", sine: "sin a", cosine: "cos a",
          along: "cos b times the hand of p", across: "sin b times that hand after a quarter turn",
          labels: { a: "a", b: "b", sinA: "sin a", cosA: "cos a", sinB: "sin b", cosB: "cos b" },
          steps: ["1. Place p: a hand at angle a", "2. Place p + k: b further", "3. Two legs lead there", "4. At other places: the same legs"],
          lines: {
            sin_cos: ["(sin a, cos a)", "(sin(a + b), cos(a + b))", "= cos b · (sin a, cos a) + sin b · (cos a, −sin a)", "cos b and sin b: no a in them"],
            cos_sin: ["(cos a, sin a)", "(cos(a + b), sin(a + b))", "= cos b · (cos a, sin a) + sin b · (−sin a, cos a)", "cos b and sin b: no a in them"],
          },
          caption: "One pair, one step, four pictures. The legs of the last picture have the same lengths at every place.",
          text: "Pair {i}, from place {p} by {k}: cos b = {cosine}, sin b = {sine}.",
          still: "Four circles: a hand; the same hand further on; a right triangle that leads from the middle to it; the same triangle at three places.",
        },
        matrix: {
          title: "The step as a table: M for k",
          axes: { row: "number of p + k", column: "number of p" },
          sine: "sin", cosine: "cos",
          caption: "To get a number of $p+k$, take its row, multiply each entry with the number of $p$ that its column names, and add. Each pair needs only its own four entries. All others are 0.",
          text: "Pair {i}: [{a}, {b}; {c}, {d}]. Outside the blocks {zeros} entries are exactly 0.",
          still: "A table of 16 rows and columns, empty but for eight blocks of two by two along the diagonal.",
        },
        residual: {
          title: "How far is each place missed?",
          axes: { x: "place p", y: "largest difference in any number" },
          waves: "waves, with M", random: "random vectors, with the table that fits them best",
          caption: "Each step up is many times more. Low marks: M takes the vector of place p to that of place p + k, but for rounding. An exact 0 lies on the lowest line. High marks: no table does it for random vectors, and this is the best one for these 128 places (its squared errors have the smallest sum).",
          text: "Waves: at most {waves} (the service itself finds {said}). Random vectors: from {least} to {most}.",
          still: "Waves are missed by less than 0.000000000000001 at each of 128 places, random vectors by 0.5 or more at each.",
        },
        products: {
          title: "How alike are places that are k apart?",
          axes: { x: "k", y: "product of the two vectors (1: the same place)" },
          width: "d =",
          caption: "The two vectors are multiplied number by number and added up, and divided by what a vector has with itself: half of $d$. The left half mirrors the right one.",
          text: "The first rise is at k = {rise16} for d = 16, at {rise64} for 64, at {rise128} for 128 and at {rise512} for 512.",
          still: "Four curves, highest at k = 0 and the same on both sides. They fall, but not all the way: each has bumps.",
          map: "The curve for 16 numbers as a map, in one row from k = −63 to 63: darkest in the middle, with bumps on both sides.",
        },
      },
      predict: {
        same: {
          question: "A turn of each hand takes place 5 to place 8. Which turn takes place 50 to place 53?",
          options: ["Another one, made for place 50", "The same one", "The same one for slow hands only"],
          answer: 1,
          why: "Each hand turns by the same angle. Where it began does not matter.",
        },
        random: {
          question: "Random vectors tell places apart, too. Is there one table that takes each of them three places on?",
          options: ["Yes, there is always one", "No, not even nearly", "Nearly, and better for more places"],
          answer: 1,
          why: "There is no rule from one random vector to the next. A table has too few entries to keep them all.",
        },
        fall: {
          question: "The farther apart two places are, the smaller their product. Always?",
          options: ["Yes, always", "No, it goes up again here and there", "No, it does not depend on the distance"],
          answer: 1,
          why: "Fast hands come round again while slow ones still go apart.",
        },
      },
      prose: `
<p>“Not” turns around the word after it. “Her” means somebody named a few words before. What matters in a sentence is less often <em>where</em> a word stands than how far it is from another one. So a good encoding should make “three words back” one simple thing to do. It should be the same at the start of a text and at its end.</p>
<h2>Hands of a clock</h2>
<p>Take the vector of a place two numbers at a time: one sine and one cosine. Draw the sine to the right and the cosine up: as the vector has them, sine first. (The lab on waves drew them the other way round.) The two numbers are then the end of a hand on a circle, of length 1. From one place to the next, each pair $\\class{sym-i}{i}$ turns by an angle of its own: pair 0 by one radian, about a sixth of a round, later pairs by less and less.</p>
[[predict same]]
[[controls v.p distance d_model order]]
[[figure hands]]
<p>You are at place [[number v.p]] and step by [[number distance]]. Move the place: both hands turn, and the angle between them stays. A step of $\\class{sym-k}{k}$ is a turn of each hand, and no hand asks where it was.</p>
<h2>The proof, line by line</h2>
<p>One turn per place, call it $w_{\\class{sym-i}{i}}$. Then there are two angles: $a = \\class{sym-p}{p} \\cdot w_{\\class{sym-i}{i}}$ for where we are, and $b = \\class{sym-k}{k} \\cdot w_{\\class{sym-i}{i}}$ for how far we go.</p>
<ol>
<li>At place $\\class{sym-p}{p}$ the hand ends at $(\\sin a, \\cos a)$.</li>
<li>At place $\\class{sym-p}{p}+\\class{sym-k}{k}$ it ends at $(\\sin(a+b), \\cos(a+b))$.</li>
<li>Lay a right triangle from the middle to that point, with one side along the old hand. That side is $\\cos b$ long. The other stands across it and is $\\sin b$ long.</li>
<li>Across means: the old hand after a quarter turn, $(\\cos a, -\\sin a)$.</li>
</ol>
$$\\begin{aligned} \\sin(a+b) &= \\phantom{-}\\cos b \\cdot \\sin a + \\sin b \\cdot \\cos a \\\\ \\cos(a+b) &= -\\sin b \\cdot \\sin a + \\cos b \\cdot \\cos a \\end{aligned}$$
<p>On the right, the old numbers $\\sin a$ and $\\cos a$ are only multiplied and added. What they are multiplied with is made of $b$ alone. There is no $\\class{sym-p}{p}$ in it.</p>
[[controls v.i]]
[[figure proof]]
<h2>One table for all places</h2>
<p>Write the multipliers of one pair down as a small table of four entries, its block. The blocks of all pairs, in one large table, make the <em>matrix</em> $M_{\\class{sym-k}{k}}$.</p>
$$\\mathrm{PE}(\\class{sym-p}{p}+\\class{sym-k}{k}) = M_{\\class{sym-k}{k}} \\, \\mathrm{PE}(\\class{sym-p}{p})$$
$$\\text{each pair: } \\begin{pmatrix} \\cos b & \\sin b \\\\ -\\sin b & \\cos b \\end{pmatrix}$$
<p>$\\mathrm{PE}(\\class{sym-p}{p})$ is the vector of place $\\class{sym-p}{p}$. As the page opens, the block of pair 1 has 0.583 for $\\cos b$ and 0.813 for $\\sin b$. Of 256 entries 224 are 0. Move $\\class{sym-p}{p}$: nothing here changes. Look at the call: it asks for a distance, and no place is in it.</p>
[[figure matrix]]
<p>About the sign: where books write the cosine first, the minus stands in the upper right corner, and the hand turns the other way, counter-clockwise. It is the same turn seen in a mirror. Choose (cos, sin) above, and see it jump.</p>
<h2>Does it hold, and for what else?</h2>
[[predict random]]
[[figure residual]]
<p>With waves every place is met, to the 15th digit and more. With random vectors every place is missed by 0.5 or more, as the page opens. Random vectors tell places apart as well as waves do. But “three on” is something else at each of them. (With as many numbers as places a table could learn them all by heart. It would know nothing of the next place. The last lab shows that.)</p>
<h2>Only the distance counts</h2>
<p>To compare two vectors, attention multiplies them number by number and adds up. For one pair this gives the cosine of the angle between the two hands. So all pairs together give, with $\\sum$ for the sum over all pairs $i$,</p>
$$\\mathrm{PE}(\\class{sym-p}{p}) \\cdot \\mathrm{PE}(\\class{sym-p}{p}+\\class{sym-k}{k}) = \\sum_{\\class{sym-i}{i}} \\cos(\\class{sym-k}{k} \\, w_{\\class{sym-i}{i}})$$
<p>and again there is no $\\class{sym-p}{p}$ in it.</p>
[[predict fall]]
[[figure products]]
<p>Two things to see. The curve is the same on both sides, so the product alone cannot tell before from after. A turn can: $M_{3}$ and $M_{-3}$ are not the same. And the curve falls, but it also rises here and there: first at $k = 4$ for 16 numbers, at 6 for 64, at 12 for 128, and only at 44 for 512.</p>
<h2>Why it matters</h2>
<p>A Transformer learns tables of numbers: to multiply with a table and add is most of what it does. One table can say “three words back”, and it then works at every place of every text. It need not be learned again for each. The next lab builds it.</p>
<p>Newer models go one step further: RoPE (rotary position embedding) adds nothing to the word, but turns the vectors that are compared, queries and keys, by angles such as these. Then the product of two words depends on the words and on how far apart they stand, and on nothing else.</p>
<h2>What is not shown</h2>
<p>That one table exists does not say that training finds it. And the input of a model is word <em>plus</em> place, so a real head sees both at once.</p>`,
    },
    head: {
      short: "Build a head",
      title: "Build a head",
      lead: "A head that looks three words back, built from the rotation and not trained at all.",
      question: "How does a model use its places to find the word three back?",
      fields: {
        type: { label: "Encoding", choices: { sinusoidal: "waves (sinusoidal)" } },
        d_model: { label: "Numbers per place (d)" },
        "goal.attend": { label: "Look this far (k: −3 is three back)" },
        positions: { label: "Places" },
        causal: { label: "A place sees only itself and those before it (causal)" },
        return: { label: "Returned" },
        "v.row": { label: "Place that looks (p)" },
        "v.column": { label: "Place that is looked at" },
      },
      figures: {
        weights: {
          title: "Who looks where",
          axes: { row: "place that looks", column: "place that is looked at" },
          caption: "A line beside the diagonal: each place gives nearly all its weight to one other place, and that one is as far back as the head was told. The first rows are different. Look at them.",
          text: "Place {p} gives most to place {to}: {most}.",
          still: "A matrix of 24 rows and columns, empty but for a line three below the diagonal, and a short piece in the first column.",
        },
        mass: {
          title: "How much lies on the wanted place?",
          axes: { x: "place that looks", y: "weight on the wanted place" },
          waves: "waves", none: "no encoding",
          caption: "1 is all of its weight. Places that have nobody so far back are left out.",
          text: "Waves: {mean} on average of {places} places, and never below {least}. With no encoding: {none} on average, in {tries} heads that the service tried.",
          still: "With waves every place gives 0.999 or more to the wanted one. Without an encoding the weight falls from a quarter to a twenty-fourth.",
        },
        w_q: {
          title: "The table of queries",
          axes: { row: "number of the place", column: "number of the query" },
          sine: "sin", cosine: "cos",
          caption: "To get a number of the query, take its column, multiply each entry with the number of the place that its row names, and add. You know these blocks: it is the rotation of the lab before, laid on its side, and each entry multiplied by one and the same number, the gain.",
          text: "The gain is {gain}. The first column begins with {a} and {b} times the gain: cos and sin of {k}.",
          still: "A table of 64 rows and columns, empty but for blocks along the diagonal.",
        },
        w_k: {
          title: "The table of keys",
          axes: { row: "number of the place", column: "number of the key" },
          sine: "sin", cosine: "cos",
          caption: "Ones along the diagonal, zeros elsewhere: the key of a place is its vector as it is.",
          text: "{ones} entries are 1, all others 0.",
          still: "A table of 64 rows and columns: ones along the diagonal.",
        },
        first: {
          title: "Another head: always the first word",
          axes: { row: "place that looks", column: "place that is looked at" },
          caption: "The query is nearly the same at every place: the vector of place 0, times the gain. Its table uses one number only, the cosine of the slowest hand. That hand hardly moves, so the number is nearly 1 at all these places.",
          text: "Place {p} gives most to place {to}: {most}. No place gives less than {least} to the first.",
          still: "A matrix of 24 rows and columns, empty but for its first column.",
        },
        none: {
          title: "The same wish without an encoding",
          axes: { row: "place that looks", column: "place that is looked at" },
          caption: "Each row is spread evenly over all that it sees, whatever the head. Switch “causal” off above, and all rows are the same.",
          text: "Place {p} sees {n} places and gives {each} to each of them. The largest difference among them is {apart}.",
          still: "A matrix of 24 rows and columns: each row is pale and even, and the paler the more places it sees.",
        },
        random: {
          title: "Random vectors: learned by heart",
          axes: { x: "place that looks", y: "weight on the wanted place" },
          waves: "waves", known: "random, places it was made for", fresh: "random, places after them",
          caption: "The head for random vectors has, in place of the rotation, the table that is best for the first places. The page works out its scores and weights from that table and from the vectors, which the service sent, with the gain chosen by the same rule.",
          text: "On average, waves {waves}; random vectors {known} at places the table was made for, and {fresh} after them.",
          still: "With waves the weight is near 1 at all 48 places. With random vectors it is near 1 up to place 23, and near 0 after it.",
        },
      },
      predict: {
        none: {
          question: "All words are alike and nothing tells their places. How much can a head give to the word three back?",
          options: ["Nearly all, if its tables are good", "As much as to every other word it sees", "Nothing at all"],
          answer: 1,
          why: "Equal lists of numbers give equal scores, in any head. Equal scores give equal weights.",
        },
        edge: {
          question: "What will the head do at place 1, which has nobody three back?",
          options: ["Give no weight to anything", "Look at place 0, the nearest there is", "Spread evenly"],
          answer: 1,
          why: "Its weights must add up to 1, so they go to where the score is highest among what it sees.",
        },
        random: {
          question: "A table is made to fit 24 random vectors. Does it look three back at places 24 to 47, too?",
          options: ["Yes, as well as before", "No, it only knows the places it was made for", "About half as well"],
          answer: 1,
          why: "It learned a list of pairs by heart. There was no rule to learn.",
        },
      },
      prose: `
<p>In the last lab “three words back” became one table of numbers. Here it goes to work. We build a <em>head</em>, the part of attention that decides who looks at whom. Nothing is trained. We write its numbers down.</p>
<h2>What a head does</h2>
<p>Each place asks a question, its <em>query</em>, and holds out a label, its <em>key</em>. Both are lists of numbers, made from the place's vector $\\mathrm{PE}$ by a table each: multiply and add.</p>
$$q_{\\class{sym-p}{p}} = \\mathrm{PE}(\\class{sym-p}{p}) \\, W_q$$
$$k_j = \\mathrm{PE}(j) \\, W_k$$
<p>The score of place $\\class{sym-p}{p}$ looking at place $j$ is $q_{\\class{sym-p}{p}} \\cdot k_j$: multiply number by number, add up, and divide by $\\sqrt{\\class{sym-d}{d}}$, as attention always does. Softmax turns the scores of a row into weights that add up to 1: the higher a score, the more weight.</p>
<h2>Three words back</h2>
<p>In “the dog we saw ran”, who ran? The dog, three words before “ran”. A head that looks three back finds it.</p>
<p>We want a query that fits one key best: that of the place three back. So let the key be the place's vector as it is. And let the query be the place's own vector, with every hand turned back by three places: $q_{\\class{sym-p}{p}} = g \\, M_{-3} \\, \\mathrm{PE}(\\class{sym-p}{p})$. The number $g$ only makes it longer. Then query and key point the same way exactly where they should.</p>
[[predict edge]]
[[controls goal.attend d_model positions causal]]
[[controls v.row]]
[[figure weights]]
<p>Now the head looks [[number goal.attend]] places from itself. Change it: the line moves. Nothing else does.</p>
<p>At the edge: places 0, 1 and 2 have nobody three back. They cannot look at nothing, as weights add up to 1. As the page opens, each gives more than 0.99 to place 0, the nearest there is to what was asked for. A head in a trained model has the same trouble at the start of a text.</p>
[[figure mass]]
<h2>The two tables</h2>
[[figure w_q]]
[[figure w_k]]
<p>$g$ is the <em>gain</em>: with $g = 1$ the wanted place would win by a little only, and softmax would still give much to its neighbours. The service picks $g$ so that all the others together get less than a hundredth. As the page opens, it is 57.5.</p>
<p>Why does one table serve all places? Because query times key, worked out, is</p>
$$q_{\\class{sym-p}{p}} \\cdot k_j = g \\sum_i \\cos\\big(w_i \\, (\\class{sym-p}{p} + \\class{sym-k}{k} - j)\\big)$$
<p>Here $\\class{sym-k}{k}$ is −3, and $w_i$ is how far hand $i$ turns from one place to the next. Only the distance of $\\class{sym-p}{p}$ and $j$ is left. The sum is largest where the bracket is 0. That is the place three back.</p>
<h2>Another wish: the first word</h2>
<p>One can also ask for a place instead of a distance: always the first word, whoever looks. Then all queries must be the same.</p>
[[figure first]]
<h2>With nothing to tell places</h2>
[[predict none]]
[[figure none]]
<p>No training can mend this. The numbers that go in are equal, so what comes out is equal. The service tried 100 heads with random tables. The best of them did no better than these rows.</p>
<h2>With random vectors</h2>
[[predict random]]
[[figure random]]
<p>With 64 numbers per place a table can fit 24 random vectors: at the places it was made for, it works as well as with waves. At the next 24 places it is lost. The table for waves was made for no place at all, and works at all of them. That is what the rotation is good for: what is true of a distance needs to be learned only once.</p>
<h2>What is not shown</h2>
<p>This head sees places alone. In a model the words are in the same numbers, and training has to find such a table, or something that does as well. A model may also do quite other things with its places.</p>
<h2>The whole course</h2>
<ul>
<li>Attention compares every word with every other, and <a href="/labs/attention">adds up</a> what it finds. No place is in that arithmetic, so <a href="/labs/order">order is lost</a>.</li>
<li>Each place gets a vector of its own. Plain numbers, fractions and binary digits <a href="/labs/naive">each fail</a> at something. <a href="/labs/waves">Waves</a> do not: a <em>column</em> is one wave, seen at all places. It is not a place.</li>
<li>$i$ counts the <em>pairs</em> of columns. Each pair, a sine and a cosine, is one hand of a clock: low $i$ is fast, high $i$ is slow. All hands together <a href="/labs/fingerprints">tell the place</a>.</li>
<li>Word and place are simply <a href="/labs/sum">added</a>. In many numbers there is room for both, and the word can still be found.</li>
<li>A step is a <a href="/labs/rotation">rotation</a>, the same at every place. So “three words back” is one table. And one table is a thing that a Transformer can learn.</li>
</ul>`,
    },
  },
};
