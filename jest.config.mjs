// One project a speed: `fast` is `npm test`, `integration` and `bench` run by their own scripts.
const shared = {
  testEnvironment: 'node',
  transform: {
    '^.+\\.(ts|mjs)$': ['@swc/jest', { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' }, sourceMaps: 'inline' }],
  },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  moduleFileExtensions: ['ts', 'js', 'mjs', 'json', 'node'],
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/.tools', '<rootDir>/.work'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
};
const project = (displayName, folders, extra = {}) => ({
  ...shared,
  displayName,
  testMatch: folders.map((folder) => `<rootDir>/test/${folder}/**/*.test.ts`),
  ...extra,
});
export default {
  projects: [
    project('fast', ['unit', 'workflow', 'protocol', 'replay']),
    project('integration', ['integration', 'e2e']),
    project('bench', ['bench']),
  ],
  // Ends what would never end; how fast anything is, is for the benches. Jest takes it from here alone, not from a project.
  testTimeout: 900_000,
  testSequencer: '<rootDir>/test/support/longest-first.mjs',
  maxWorkers: 2,
  workerIdleMemoryLimit: '1500MB',
};
