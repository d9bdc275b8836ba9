/**
 * The clock of the thirty-day cap. A device has no trusted clock. While this page or process runs, this clock advances at
 * most as fast as time passes, whatever the system's clock is set to. Time asleep may not count.
 */

let last = { wall: Date.now(), running: performance.now() };

/** The system's time, but not later than the time that was read before plus the time that has passed since. */
export function deviceClock() {
  const running = performance.now();
  last = { wall: Math.min(Date.now(), last.wall + (running - last.running)), running };
  return new Date(last.wall);
}
