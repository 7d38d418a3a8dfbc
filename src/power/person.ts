/** A person at the command line, as a caller: told in words what goes on, and not kept waiting for ever. */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemTime, type Caller, type Clock, type PowerNews } from './caller.js';

export interface Person {
  /** Who sits there, for whoever finds the BMC busy. */
  readonly name: string;
  readonly pid: number;
  readonly patienceSeconds: number;
  readonly tell: (text: string) => void;
}

export const personClock: Clock = { ...systemTime, pause: (ms) => sleep(ms) };

export function personCaller({ name, pid, patienceSeconds, tell }: Person): Caller {
  // Ctrl-C ends the process, and its lease ends by itself.
  const { signal } = new AbortController();
  let told = '';
  const once = (news: PowerNews): void => {
    const text = wordsOf(news);
    if (text === null || text === told) return;
    told = text;
    tell(text);
  };
  return { drawHolder: () => `by hand: ${name}, pid ${pid}`, cancelled: () => signal, tell: once, teller: () => () => undefined, patienceSeconds };
}

function wordsOf(news: PowerNews): string | null {
  if ('unanswered' in news) return `no answer to ${news.asked} (${news.unanswered}): it is not sent again, only looked at`;
  if ('reads' in news && 'asked' in news) return `asked ${news.asked}; reads ${news.reads}${news.why ? ` (${news.why})` : ''}`;
  if ('waitingFor' in news) return `waiting for ${news.waitingFor}`;
  return null;
}
