// A symbol in an equation, its marks in figures, its slider and its parameter in a call light up together: whatever has
// the class sym-NAME is that symbol.

const nameOf = (target) => /\bsym-([\w-]+)/.exec(target.closest?.('[class*="sym-"]')?.getAttribute("class") ?? "")?.[1];

function light(name) {
  for (const element of document.querySelectorAll(".lit")) {
    element.classList.remove("lit");
  }
  if (name) {
    for (const element of document.querySelectorAll(`.sym-${name}`)) {
      element.classList.add("lit");
    }
  }
}

export function symbolsWatch() {
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (event) => light(nameOf(event.target)));
  }
}
