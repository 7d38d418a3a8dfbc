// The recorder is run by jest, as the world it plays is; it is no test, and no project of the suite.
import config from '../../jest.config.mjs';
import { ROOT } from './paths.mjs';

const [fast] = config.projects;
export default { ...fast, displayName: 'record', rootDir: ROOT, testMatch: ['<rootDir>/test/replay/record-histories.ts'] };
