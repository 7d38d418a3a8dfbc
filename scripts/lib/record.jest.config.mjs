// The recorder is run by jest, as the world it plays is; it is no test, and no project of the suite.
import config from '../../jest.config.mjs';
import { ROOT } from './paths.mjs';

const { projects: [fast], testTimeout } = config;
export default { ...fast, testTimeout, displayName: 'record', rootDir: ROOT, testMatch: ['<rootDir>/test/replay/record-histories.ts'] };
