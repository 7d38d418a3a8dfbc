export { CONFIG_ROLES, isLoopback, programEnvironment, readConfig, shownConfig, type Config, type ConfigRole, type Environment } from './config.js';
export { envExample } from './env-example.js';
