/** However lag, lost answers, dying nonces and a sleeping ME fall together: one call of powerOff is at most one command. */
import type { AmtFaults } from '../../src/simulator/amt/faults.js';
import { noSocketsLeft, startAmtBench } from '../support/amt.js';
import { seededRandom } from '../support/random.js';

function drawFaults(random: () => number): Partial<AmtFaults> {
  const upTo = (most: number): number => Math.floor(random() * (most + 1));
  return {
    qopProfile: random() < 0.5 ? 'auth' : 'auth-int, auth',
    nonceResetEvery: upTo(3),
    lagReads: upTo(3),
    acceptThenDrop: upTo(1),
    dropBefore: upTo(2),
    sleepFirstN: upTo(3),
    neverOff: random() < 0.2,
    refuse: random() < 0.2 ? { RequestPowerStateChange: 2 } : {},
    answerAs: random() < 0.15 ? 'truncated-xml' : 'soap',
  };
}

const WORLDS = 24;
const seen = new Set<string>();

test.each([1, 2, 3])(`in ${WORLDS} drawn worlds (seed %i) one call is at most one command, and its result says what may be true`, async (seed) => {
  const random = seededRandom(seed);
  const { amt, machine, open, close } = await startAmtBench({ initialPower: 'on' });
  for (let world = 0; world < WORLDS; world += 1) {
    amt.setPower('on');
    await amt.settled();
    const faults = drawFaults(random);
    const before = { commands: amt.counts().powerCommands.length, offs: machine.filter((told) => told === 'off').length };
    await amt.setFaults(faults);
    const bmc = open({ timeouts: { pauseMs: 0 } });
    const reads = Array.from({ length: Math.floor(random() * 3) }, () => bmc.observePower());
    const [result] = await Promise.all([bmc.powerOff(), bmc.observePower(), ...reads]);
    await amt.settled();

    const commands = amt.counts().powerCommands.slice(before.commands);
    const obeyed = machine.filter((told) => told === 'off').length - before.offs;
    const context = { world, faults, result, commands, obeyed };
    expect({ ...context, tooMany: commands.length > 1 }).toEqual({ ...context, tooMany: false });
    const holds = {
      accepted: commands.length === 1 && commands[0]!.returnValue === 0 && !commands[0]!.answerLost,
      refused: obeyed === 0,
      'not-sent': commands.length === 0 && obeyed === 0,
      unknown: commands.length === 1,
    }[result.kind];
    expect({ ...context, holds }).toEqual({ ...context, holds: true });
    seen.add(result.kind);
    await bmc.close();
  }
  await noSocketsLeft();
  await close();
});

test('the drawn worlds meet every kind of result: else they would prove little', () => {
  expect([...seen].sort()).toEqual(['accepted', 'not-sent', 'refused', 'unknown']);
});
