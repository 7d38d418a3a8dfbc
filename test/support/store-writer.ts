/** A process of its own that draws so many runs of one device from a store: `node store-writer.mjs <file> <name> <times>`. Prints their numbers, as JSON. */
import { createStore, openDatabase } from '../../src/store/index.js';
import { deviceOf } from './store-bench.js';
import { until } from './until.js';

const [file, name, times] = process.argv.slice(2) as [string, string, string];
const store = createStore({ db: await openDatabase(`sqlite:${file}`), temporal: { look: async () => ({ kind: 'absent' }) } });
await store.installation.begin('installation-a');
await store.installation.confirm();
await store.devices.register(deviceOf(), { state: 'planned', adopted: false });

const drawn: number[] = [];
while (drawn.length < Number(times)) {
  // The other process may have one open.
  const opened = await until('a run of our own', async () => {
    const open = await store.runs.open('7', 'provision', { asked: { how: 'netbox' }, intake: null });
    return open.isNew && open;
  }, 200);
  await store.devices.journal('7', null, 'verb', `${name} ${drawn.length}`);
  drawn.push(opened.run);
  await store.runs.close('7', opened.run, { end: 'done', failure: null, destroyed: false, by: name }, null);
}
await store.close();
process.stdout.write(JSON.stringify(drawn));
