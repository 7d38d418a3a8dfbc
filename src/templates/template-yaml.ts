/** A rendered template: YAML to a checked value whose every part knows its place. Pure. */
import { isNode, parseDocument, type Document } from 'yaml';
import { z } from 'zod';
import type { Refuse } from './marks.js';

const Name = z.string().min(1).max(200);
const Seconds = z.number().int().min(0);
const TextMap = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).nullable();
const TextList = z.array(z.string()).nullable();

/** What an action of Tinkerbell may have besides; none of it means anything to an action our agent performs itself. */
const CONTAINER_ONLY = {
  command: TextList.optional(),
  environment: TextMap.optional(),
  volumes: TextList.optional(),
  pid: z.string().nullable().optional(),
  'on-timeout': TextList.optional(),
  'on-failure': TextList.optional(),
};
const TASK_CONTAINER_ONLY = { environment: TextMap.optional(), volumes: TextList.optional() };

const TemplateAction = z.strictObject({ name: Name, image: z.string().min(1).max(400), timeout: Seconds.nullish(), if: z.union([z.string().min(1), z.boolean()]).optional(), ...CONTAINER_ONLY });
const TemplateTask = z.strictObject({ name: Name, worker: z.string().min(1).max(400), actions: z.array(TemplateAction).min(1).max(100), ...TASK_CONTAINER_ONLY });
const Template = z.strictObject({ version: z.union([z.literal('0.1'), z.literal(0.1)]), name: Name, global_timeout: Seconds.nullish(), tasks: z.array(TemplateTask).min(1).max(20) });

export type Template = z.infer<typeof Template>;
export type TemplateAction = z.infer<typeof TemplateAction>;

export interface PlacedTemplate {
  readonly template: Template;
  /** Refuses the template for what stands at this path. */
  refuseAt(path: readonly PropertyKey[], what: string): never;
}

/** Offset of the deepest node on the path: a missing key is looked for where it should stand. */
function offsetOf(document: Document, path: readonly PropertyKey[]): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}

const isFilled = (value: unknown): boolean => value !== undefined && value !== null && Object.keys(Object(value)).length > 0;

function refuseContainerParts(part: object, keys: readonly string[], path: readonly PropertyKey[], refuseAt: PlacedTemplate['refuseAt']): void {
  for (const key of keys) {
    if (isFilled((part as Record<string, unknown>)[key])) refuseAt([...path, key], `${key}: means something to container actions only, and those come with the gRPC agent plane`);
  }
}

/** @param refuse with an offset in `text` */
export function readTemplate(text: string, refuse: Refuse): PlacedTemplate {
  const document = parseDocument(text, { prettyErrors: false });
  const broken = document.errors[0];
  if (broken) return refuse(broken.pos[0], broken.message);
  const refuseAt = (path: readonly PropertyKey[], what: string): never => refuse(offsetOf(document, path), what);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    return refuse(0, (error as Error).message);
  }
  const parsed = Template.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    return refuseAt(issue.path, `${issue.path.join('.') || 'the template'}: ${issue.message}`);
  }
  for (const [t, task] of parsed.data.tasks.entries()) {
    refuseContainerParts(task, Object.keys(TASK_CONTAINER_ONLY), ['tasks', t], refuseAt);
    for (const [a, action] of task.actions.entries()) refuseContainerParts(action, Object.keys(CONTAINER_ONLY), ['tasks', t, 'actions', a], refuseAt);
  }
  return { template: parsed.data, refuseAt };
}
