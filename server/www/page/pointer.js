// Choosing with a mouse, a pen or a finger on what is drawn.

const SIDEWAYS = 8; // pixels after which a finger drags

/** Is it the first finger, or the first button? Others are the browser's: a menu, a zoom. */
export const isFirst = (event) => event.isPrimary && event.button === 0;

/**
 * Calls point(event) where something is pressed or dragged over, while free() says that it can be chosen, and over()
 * after the last. A finger may mean to scroll the page, and the browser cancels it then: so it chooses when it is lifted,
 * or once it went sideways.
 */
export function pointWatch(plate, free, point, over = () => {}) {
  let down = null;
  plate.addEventListener("pointerdown", (event) => {
    if (!isFirst(event) || !free()) {
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
  const end = (event) => {
    if (down?.id !== event.pointerId) {
      return;
    }
    if (event.type === "pointerup" && !down.drags && free()) {
      down.drags = true;
      point(event);
    }
    const chose = down.drags;
    down = null;
    if (chose) {
      over();
    }
  };
  plate.addEventListener("pointerup", end);
  plate.addEventListener("pointercancel", end);
}
