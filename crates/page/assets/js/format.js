// Numbers, sizes and times as people read them.

const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat('en');

// 1,234 up to five digits, then 12.3K.
export const count = (number) => (number < 100_000 ? whole.format(number) : short.format(number));
export const exact = (number) => whole.format(number);

// Messages per second.
export function rate(number) {
  if (!number) return '0/s';
  if (number < 0.1) return '<0.1/s';
  return `${number < 10 ? number.toFixed(1).replace(/\.0$/, '') : count(Math.round(number))}/s`;
}

export function bytes(number) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${number < 10 && unit > 0 ? number.toFixed(1) : Math.round(number)} ${units[unit]}`;
}

// How long, in two units at most: 4 ms, 1.2 s, 3 min 20 s, 2 h 5 min, 4 d 3 h.
export function duration(ms) {
  if (ms == null) return '–';
  if (ms < 1) return ms > 0 ? '<1 ms' : '0 ms';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, '')} s`;
  const seconds = Math.round(ms / 1_000);
  const two = (big, bigUnit, small, smallUnit) => (small ? `${big} ${bigUnit} ${small} ${smallUnit}` : `${big} ${bigUnit}`);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return two(Math.floor(seconds / 60), 'min', seconds % 60, 's');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return two(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  const hours = Math.floor(minutes / 60);
  return two(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

// How long ago, or in how long.
export function ago(when, now = Date.now()) {
  const ms = now - new Date(when).getTime();
  if (Math.abs(ms) < 1_000) return 'now';
  return ms > 0 ? `${duration(ms)} ago` : `in ${duration(-ms)}`;
}

const clock = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
export const absolute = (when) => clock.format(new Date(when));

// One of something, or many of them.
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
