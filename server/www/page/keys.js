// Keys that are the page's.

/** A key alone or with Shift, else nothing: with Alt, Control or the like it is the browser's, as Alt and left is "back". */
export const plainKey = (event) => (event.altKey || event.ctrlKey || event.metaKey ? "" : event.key);
