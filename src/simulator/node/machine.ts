/** What a simulated node gives its agent: the port a real machine has too, so that the agent cannot tell. */
import type { AgentMachine } from '../../contracts/agent-machine.js';

/** Starts the agent on a machine, against the agent plane at `api`. `stop` takes effect before it returns; its promise is for the tidying up. */
export type StartAgent = (machine: AgentMachine, api: string) => { stop(): Promise<void> | void };
