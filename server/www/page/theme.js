// Light or dark, on every page: before anything is drawn the reader's own choice, where one was made, and the button that
// makes it. Whoever draws with colours listens for "themechange".
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") {
    document.documentElement.dataset.theme = theme;
  }
} catch {
  // a browser that keeps nothing: the system's choice holds
}

{
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const changed = () => document.dispatchEvent(new Event("themechange"));

  const turn = () => {
    root.dataset.theme = (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // the choice lasts as long as the page
    }
    changed();
  };
  document.addEventListener("click", (event) => event.target.id === "theme" && turn());
  dark.addEventListener("change", changed);
}
