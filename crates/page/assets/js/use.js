// Hooks that several views use.
import { api, events } from './api.js';
import { useCallback, useEffect, useRef, useState } from './lib.js';

// What a path answers: `{ data, problem, reload }`, asked again every so many ms while the page is seen, if so. `null`: nothing is asked.
export function useAnswer(path, every = 0) {
  const [answer, set] = useState({});
  const [turn, setTurn] = useState(0);
  const goesOn = useSeen() && every > 0;
  useEffect(() => {
    if (!path) {
      set({});
      return undefined;
    }
    // Out of sight what is there will do.
    if (every && !goesOn && answer.path === path) return undefined;
    const abort = new AbortController();
    let timer;
    const ask = async () => {
      try {
        const data = await api.get(path, abort.signal);
        set({ data, path });
      } catch (problem) {
        if (abort.signal.aborted) return;
        set((before) => ({ data: before.path === path ? before.data : undefined, path, problem }));
        // What is gone does not come back by asking.
        if (problem.status === 404 || problem.status === 403) return;
      }
      if (goesOn && !abort.signal.aborted) timer = setTimeout(ask, every);
    };
    ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path, every, turn, goesOn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const current = answer.path === path ? answer : {};
  return { data: current.data, problem: current.problem, reload };
}

// The last of the events that a path tells, while the page is seen.
export function useEvents(path) {
  const [last, set] = useState(null);
  const seen = useSeen();
  useEffect(() => {
    if (!path || !seen) return undefined;
    const abort = new AbortController();
    events(path, (data) => set({ path, data }), abort.signal);
    return () => abort.abort();
  }, [path, seen]);
  return last?.path === path ? last.data : null;
}

// Whether anybody can see the page: a tab in the background asks for nothing.
export function useSeen() {
  const [seen, set] = useState(!document.hidden);
  useEffect(() => {
    const changed = () => set(!document.hidden);
    document.addEventListener('visibilitychange', changed);
    return () => document.removeEventListener('visibilitychange', changed);
  }, []);
  return seen;
}

// The time, every so many ms, for what is so long ago.
export function useNow(every = 1_000) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

// A value that stays when the page is loaded again.
export function useKept(name, initial) {
  const [value, set] = useState(() => {
    try {
      return JSON.parse(localStorage.getItem(`overtake.${name}`)) ?? initial;
    } catch {
      return initial;
    }
  });
  const keep = useCallback(
    (next) => {
      localStorage.setItem(`overtake.${name}`, JSON.stringify(next));
      set(next);
    },
    [name],
  );
  return [value, keep];
}

// A value once it has not changed for so many ms: for what is typed.
export function useSettled(value, ms = 250) {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

// The width of an element, as it changes.
export function useWidth() {
  const ref = useRef(null);
  const [width, set] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => set(Math.floor(entry.contentRect.width)));
    if (ref.current) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
