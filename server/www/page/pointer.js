// Choosing with a mouse, a pen or a finger on what is drawn.

const SIDEWAYS = 8; // pixels after which a finger drags

/**
 * Calls point(event) where something is pressed or dragged over, while free() says that it can be chosen. A finger may
 * mean to scroll the page, and the browser cancels it then: so it chooses when it is lifted, or once it went sideways.
 */
export function pointWatch(plate, free, point) {
  let down = null;
  plate.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary || event.button !== 0 || !free()) {
      return;
    }
    down = { id: event.pointerId, x: event.clientX, drags: event.pointerType !== "touch" };
    plate.setPointerCapture(event.pointerId);
    if (down.drags) {
      point(event);
    }
  });
  plate.addEventListener("pointermove", (event) => {
    if (down?.id !== event.pointerId) {
      return;
    }
    down.drags ||= Math.abs(event.clientX - down.x) > SIDEWAYS;
    if (down.drags && free()) {
      point(event);
    }
  });
  plate.addEventListener("pointerup", (event) => {
    if (down?.id === event.pointerId && !down.drags && free()) {
      point(event);
    }
    down = null;
  });
  plate.addEventListener("pointercancel", () => {
    down = null;
  });
}
