import type { WorkerOptions } from '@temporalio/worker';

/**
 * For workers of tests. The SDK takes a step of a workflow for a deadlock after 5 s of wall clock, which a laden machine may need to load
 * the bundle; its options have the limit (5 s, or none with `debugMode`), and their type does not.
 */
export const PATIENT: Partial<WorkerOptions> = { isolateExecutionTimeout: '5 minutes' } as object;
