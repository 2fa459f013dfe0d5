// On paper everything is light. The style sheet sees to what it can; canvases have the colours that they were painted
// with, so they are painted anew before the browser makes its pages, and once more afterwards.

export function paperWatch(page) {
  const print = (on) => {
    if (on) {
      page.theme.value = "light";
    } else {
      document.dispatchEvent(new Event("themechange")); // back to what the screen has
    }
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  matchMedia("print").addEventListener("change", ({ matches }) => print(matches));
}
