// Before anything is drawn: the reader's own choice of light or dark, where one was made.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") {
    document.documentElement.dataset.theme = theme;
  }
} catch {
  // a browser that keeps nothing: the system's choice holds
}
