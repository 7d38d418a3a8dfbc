/** One project of jest, after everything it needs is there. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { build } from '../build.mjs';
import { setUp } from '../setup.mjs';
import { inRoot } from './paths.mjs';
import { run, say } from './run.mjs';

/** A file that cannot even be loaded has no failed tests in jest's count, and counts as one here. */
function countsOf(file) {
  const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, numPendingTests, numTodoTests } = JSON.parse(readFileSync(file, 'utf8'));
  return { passed: numPassedTests, failed: numFailedTests + numRuntimeErrorTestSuites, skipped: numPendingTests + numTodoTests };
}

/**
 * Sets up, builds, runs the project. The last line on stdout is `N passed, N failed`, whatever happens.
 * @returns {Promise<number>} exit code: 0 only when something passed and nothing failed
 */
export async function runJest(project, args) {
  let counts = { passed: 0, failed: 1, skipped: 0 };
  try {
    await setUp({ tests: true });
    await build();
    const results = inRoot('.work', `jest-${project}.json`);
    mkdirSync(inRoot('.work'), { recursive: true });
    rmSync(results, { force: true });
    const { code } = await run(process.execPath, [inRoot('node_modules', 'jest', 'bin', 'jest.js'), '--selectProjects', project, '--json', `--outputFile=${results}`, ...args]);
    if (!existsSync(results)) throw new Error(`jest ended with ${code} and ran nothing`);
    counts = countsOf(results);
    // jest ends otherwise than with 0 for more than failed tests: no tests, a broken set-up, a handle that it had to force.
    if (code !== 0 && counts.failed === 0) {
      say(`test: jest ended with ${code}`);
      counts.failed = 1;
    }
  } catch (error) {
    say(`test: ${error.message}`);
  }
  if (counts.skipped > 0) console.log(`${counts.skipped} skipped`);
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  return counts.failed === 0 && counts.passed > 0 ? 0 : 1;
}
