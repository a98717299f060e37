// What is wrong with a queue, as a sentence, and what to do about it.
import { count, plural } from './format.js';

const wait = (number) => (number === 1 ? '1 message waits' : `${count(number)} messages wait`);

const SAY = {
  'no-consumer': (of) => [`${wait(of.messages)} and nobody takes them`, 'Start a consumer, or see why the workers are gone.'],
  full: (of) => [`full with ${plural(of.messages, 'message')}`, 'New messages are refused or push old ones out. Add consumers, purge, or raise the limit.'],
  unreadable: (of) => [`${plural(of.messages, 'message')} cannot be read: damage in the store`, 'Restart the broker: some may be found again. A purge gives them up. See docs/damage.md.'],
  'new-dead-letters': (of) => [`${plural(of.messages, 'new dead letter')} within a minute`, 'Look at what fails, mend it, then replay them.'],
  overtaken: (of) => [`${of.lane} waits for more than a minute while less urgent work goes out`, 'A cap, a weighted picker or a held key keeps it back.'],
  paused: (of) => [`paused, ${wait(of.messages)}`, 'Resume it when what it was paused for is over.'],
  grows: (of) => [`grows: more comes than goes, ${wait(of.messages)}`, 'Add consumers, or let it be if the peak will pass.'],
  'at-cap': (of) => [`all slots busy, ${wait(of.messages)}`, 'Raise the cap if what is behind it can take more.'],
  'dead-letters': (of) => [`${plural(of.messages, 'dead letter')}`, 'Look at why they died; replay or remove them.'],
};

export const say = (trouble) => (SAY[trouble.kind] ?? (() => [trouble.kind, '']))(trouble);

export const worst = (queue) => queue.troubles[0]?.severity ?? 0;

export const severityWord = { 3: 'stands still', 2: 'at risk', 1: 'note' };
