// A question before the answer: the reader says what will happen, then the page shows it. Without scripts the answer
// is behind the question, as <details> has it.

import { html, render } from "lit-html";
import { say, words } from "./words.js";

/** <details class="predict" data-predict="NAME">, whose answer is in it. */
export function predictMount(host) {
  const question = words.lab.predict[host.dataset.predict];
  const form = document.createElement("fieldset");
  form.className = "predict";
  host.before(form);
  host.hidden = true;
  const show = (chosen) => {
    render(
      html`<legend>${words.page.predict}: ${question.question}</legend>
        ${question.options.map(
          (option, i) => html`<button type="button" aria-pressed=${chosen === i ? "true" : "false"}
            @click=${() => show(i)}>${option}</button>`,
        )}
        <p role="status">${chosen === undefined ? "" : say(chosen === question.answer ? words.page.right : words.page.wrong, { answer: question.options[question.answer] })}
          ${chosen === undefined ? "" : question.why}</p>`,
      form,
    );
  };
  show();
}
