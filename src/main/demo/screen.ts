/** What the demo shows while it runs: a line a node that is redrawn on a terminal, plain lines elsewhere. */
import type { NodeRow, RunRow } from '../../contracts/operator.js';

const BAR_WIDTH = 20;

export interface Screen {
  say(text: string): void;
  show(rows: readonly { readonly node: NodeRow; readonly run: RunRow | null; readonly seconds: number }[]): void;
  /** Leaves the last picture where it is. */
  settle(): void;
}

const bar = (done: number, total: number): string => {
  const share = total > 0 ? Math.min(1, done / total) : 0;
  const filled = Math.round(share * BAR_WIDTH);
  return `[${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)}] ${String(Math.floor(share * 100)).padStart(3)} % of ${(total / 1_048_576).toFixed(1)} MiB`;
};

/** The order under way, with a bar for bytes. */
function work(run: RunRow): string {
  const order = run.orders.findLast((one) => one.state === 'queued' || one.state === 'consumed');
  if (!order) return '';
  const { progress } = order;
  return ` ${order.title}${progress && progress.unit === 'bytes' ? ` ${bar(progress.done, progress.total)}` : ''}`;
}

function line({ node, run, seconds }: { node: NodeRow; run: RunRow | null; seconds: number }): string {
  const open = run !== null && run.closedAt === null;
  const what = node.hold ? `HELD ${node.hold.code}: ${node.hold.message}` : open ? `${node.state} · ${run.phase}${run.phase === 'acting' || run.phase === 'rebooting' ? work(run) : ''}` : node.state;
  return `${node.name.padEnd(28)} ${String(Math.round(seconds)).padStart(3)} s  ${what}`;
}

export function createScreen(out: NodeJS.WriteStream): Screen {
  const last = new Map<string, string>();
  let drawn = 0;
  const clear = (): string => (drawn > 0 ? `\u001b[${drawn}A\u001b[0J` : '');
  return {
    say(text) {
      out.write(`${text}\n`);
      drawn = 0;
    },
    show(rows) {
      if (out.isTTY) {
        const width = out.columns || 120;
        out.write(`${clear()}${rows.map((row) => line(row).slice(0, width - 1)).join('\n')}\n`);
        drawn = rows.length;
        return;
      }
      for (const row of rows) {
        // Percentages alone are no news on a plain output.
        const text = line(row).replace(/ \[[█░]+\].*$/, '').replace(/ +\d+ s /, ' ');
        if (last.get(row.node.deviceId) === text) continue;
        last.set(row.node.deviceId, text);
        out.write(`${line(row)}\n`);
      }
    },
    settle() {
      drawn = 0;
    },
  };
}

/** A table for people; the widest cell of a column decides its width. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const draw = (cells: readonly string[]): string => cells.map((cell, column) => cell.padEnd(widths[column]!)).join('  ').trimEnd();
  return [draw(head), draw(widths.map((width) => '-'.repeat(width))), ...rows.map(draw)].join('\n');
}
