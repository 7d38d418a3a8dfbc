/** Everything a worker registers. */
export { installation } from './installation.js';
export { netboxReconcile } from './netbox-reconcile.js';
export { nodeLifecycle } from './node-lifecycle.js';
export { nodeRun } from './node-run.js';
export { powerWatch } from './power-watch.js';
