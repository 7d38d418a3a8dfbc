/** YAML as cloud-init reads it: version 1.1, in which `yes`, `1:30` and `007` are no strings unless they stand in quotes. */
import { stringify } from 'yaml';

export const yamlText = (value: object): string => stringify(value, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0 });
