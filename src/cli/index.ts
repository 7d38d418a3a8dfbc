export { runCli, type CliDeps, type ExitCode } from './run-cli.js';
export type { AmtEndpointOptions, DemoOptions, DhcpConfigOptions, DoctorCheck, Roles, SimulateAmtOptions, SimulateNodeOptions } from './roles.js';
export type { Terminal } from './output.js';
