/** A process of its own that writes to a store: `node store-writer.mjs <file> <name> <times>`. Prints what it drew, as JSON. */
import { createStore, openDatabase } from '../../src/store/index.js';
import { deviceOf } from './store-bench.js';

const [file, name, times] = process.argv.slice(2) as [string, string, string];
const store = createStore({ db: await openDatabase(`sqlite:${file}`), temporal: { look: async () => ({ kind: 'absent' }) } });
await store.installation.begin('installation-a');
await store.installation.confirm();
await store.devices.register(deviceOf(), { state: 'planned', adopted: false });

const drawn: number[] = [];
for (let turn = 0; turn < Number(times); turn++) {
  await store.devices.journal('7', null, 'verb', `${name} ${turn}`);
  const opened = await store.runs.open('7', 'provision', { asked: { how: 'netbox' }, intake: null });
  if (!opened.isNew) continue;
  drawn.push(opened.run);
  await store.runs.close('7', opened.run, { end: 'done', failure: null, destroyed: false, by: name }, null);
}
await store.close();
process.stdout.write(JSON.stringify(drawn));
