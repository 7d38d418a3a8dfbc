/** On a fresh machine jest knows no times and begins with the largest files; the longest suite would begin last, and have both workers wait for one. */
import Sequencer from '@jest/test-sequencer';

const LONGEST = ['e2e/crash-points', 'e2e/crash-edges', 'e2e/node-dies'];
const rank = ({ path }) => LONGEST.findIndex((name) => path.includes(name)) >>> 0;

export default class LongestFirst extends Sequencer {
  async sort(tests) {
    return [...(await super.sort(tests))].sort((a, b) => rank(a) - rank(b));
  }
}
