/** Every activity, and the type that workflows see. */
import type { BmcIdentityActivities } from './bmc-identity.js';
import type { ImageActivities } from './image.js';
import type { LifecycleActivities } from './lifecycle.js';
import type { NetbootActivities } from './netboot.js';
import type { NetboxActivities } from './netbox.js';
import type { OrderActivities } from './orders.js';
import type { PlanningActivities } from './planning.js';
import type { PowerActivities } from './power.js';
import type { PowerWatchActivities } from './power-watch.js';
import type { RunActivities } from './runs.js';

export { createBmcIdentityActivities } from './bmc-identity.js';
export { createImageActivities } from './image.js';
export { createLifecycleActivities, restartMissingLifecycles } from './lifecycle.js';
export { createNetbootActivities } from './netboot.js';
export { createNetboxActivities } from './netbox.js';
export { createOrderActivities } from './orders.js';
export { createPlanningActivities } from './planning.js';
export { createRunPlanner } from './run-planner.js';
export { createPowerActivities } from './power.js';
export { createPowerWatchActivities } from './power-watch.js';
export { createRunActivities } from './runs.js';
export { activityInterceptors } from './interceptor.js';

/** On the main queue: they ask the store, NetBox and Temporal. */
export type CentralActivities = RunActivities & LifecycleActivities & NetboxActivities & NetbootActivities & OrderActivities & PlanningActivities;
/** On the site's queue: they touch a node or its image. */
export type SiteActivities = PowerActivities & PowerWatchActivities & BmcIdentityActivities & ImageActivities;
