// The house's borders are lint rules: which room may import which, no cycles, no floating promises.
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import tseslint from 'typescript-eslint';

/** Rooms that may know domain and contracts, and each other only through ports declared in contracts. */
const ROOMS = ['activities', 'power', 'bmc', 'boot', 'agentapi', 'operatorapi', 'attestation', 'templates', 'images', 'netbox', 'store', 'agent', 'simulator'];

const NODE_BUILTINS = ['node:*', 'fs', 'crypto', 'net', 'dgram', 'http', 'https', 'path', 'os', 'child_process'];

/** Relative imports that climb into another room of src/. */
const roomsExcept = (...allowed) =>
  [...ROOMS, 'workflows', 'cli', 'config', 'telemetry', 'main', 'domain', 'contracts']
    .filter((room) => !allowed.includes(room))
    .map((room) => ({ regex: `^(\\.\\./)+${room}/`, message: `this room may not import ${room}; declare a port in contracts and let main inject it` }));

const restrict = (patterns) => ({ '@typescript-eslint/no-restricted-imports': ['error', { patterns }] });

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', '.tools/**', '.work/**', 'test/fixtures/**', '**/*.py'] },
  ...tseslint.configs.recommended,
  {
    files: ['src/**/*.ts', 'test/**/*.ts'],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { 'import-x': importX },
    settings: { 'import-x/resolver-next': [createNodeResolver({ extensionAlias: { '.js': ['.ts', '.js'] } })], 'import-x/extensions': ['.ts'], 'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'none' }],
      'import-x/no-cycle': 'error',
      'max-lines': ['warn', { max: 320, skipBlankLines: true, skipComments: true }],
    },
  },
  { files: ['src/domain/**/*.ts'], rules: restrict([...roomsExcept('domain'), { group: [...NODE_BUILTINS, 'zod', 'pino', 'undici', 'fastify', '@temporalio/*'], message: 'domain imports nothing' }]) },
  { files: ['src/contracts/**/*.ts'], rules: restrict([...roomsExcept('domain', 'contracts'), { group: [...NODE_BUILTINS, 'pino', 'undici', 'fastify', '@temporalio/*'], message: 'contracts import domain and zod' }]) },
  {
    files: ['src/workflows/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': ['error', {
        patterns: [
          ...roomsExcept('domain', 'contracts', 'workflows', 'activities'),
          { regex: '^(\\.\\./)+activities/', allowTypeImports: true, message: 'workflows import activities as types only' },
          { group: [...NODE_BUILTINS, 'pino', 'undici', 'fastify', '@temporalio/client', '@temporalio/worker', '@temporalio/activity'], message: 'workflow code is deterministic: only domain, contracts and @temporalio/workflow' },
        ],
      }],
      'no-restricted-globals': ['error', 'setInterval', 'fetch', 'process', 'Buffer'],
    },
  },
  ...ROOMS.map((room) => ({ files: [`src/${room}/**/*.ts`], rules: restrict(roomsExcept('domain', 'contracts', 'telemetry', room)) })),
  // The rules of a power change are one room's, for runs and for people; an activity is one of its callers.
  { files: ['src/activities/**/*.ts'], rules: restrict(roomsExcept('domain', 'contracts', 'telemetry', 'activities', 'power')) },
  { files: ['src/cli/**/*.ts'], rules: restrict(roomsExcept('domain', 'contracts', 'telemetry', 'config', 'cli')) },
  { files: ['src/config/**/*.ts'], rules: restrict(roomsExcept('domain', 'contracts', 'config')) },
  { files: ['src/telemetry/**/*.ts'], rules: restrict(roomsExcept('domain', 'contracts', 'config', 'telemetry')) },
);
