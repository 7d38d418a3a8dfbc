export { CONFIG_ROLES, isLoopback, readConfig, shownConfig, type Config, type ConfigRole, type Environment } from './config.js';
export { envExample } from './env-example.js';
