// Copying, also where there is no secure context, and so no clipboard: then the text is selected where it stands, and the
// reader presses the keys.

import { tell } from "./page.js";
import { words } from "./words.js";

const SAID = 4000; // milliseconds until a button has its own name again

/** Says on the button, and aloud, what came of it. place() is the element in which the text stands, for when it must be selected. */
export async function copyText(text, button, place) {
  button.dataset.name ??= button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = words.page.copied;
  } catch {
    getSelection().selectAllChildren(place());
    button.textContent = document.execCommand?.("copy") ? words.page.copied : words.page.copyKeys;
  }
  tell(button.textContent);
  setTimeout(() => {
    button.textContent = button.dataset.name;
  }, SAID);
}
