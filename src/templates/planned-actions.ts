/** From a checked template to the actions of one run. Pure. */
import type { TemplateFacts } from '../contracts/images.js';
import type { PlannedAction } from '../contracts/plan.js';
import { ACTION_NAMES, type ActionName } from '../domain/actions.js';
import { LIMITS } from '../domain/limits.js';
import { evaluateCondition } from './conditions.js';
import type { PlacedTemplate, TemplateAction } from './template-yaml.js';

type Path = readonly PropertyKey[];
interface Kept {
  readonly action: PlannedAction;
  readonly path: Path;
}

const DEFAULT_SECONDS = LIMITS.actionDefault.seconds;
const MOST_SECONDS = LIMITS.actionMost.seconds;

function nameOf({ refuseAt }: PlacedTemplate, image: string, path: Path): ActionName {
  const name = ACTION_NAMES.find((candidate) => image === `metalflow/${candidate}`);
  if (name) return name;
  const ours = image.startsWith('metalflow/');
  const given = image.slice(0, 80);
  const known = ACTION_NAMES.map((one) => `metalflow/${one}`).join(', ');
  return refuseAt([...path, 'image'], ours ? `there is no action ${given}; there are ${known}` : `image ${given}: container actions come with the gRPC agent plane`);
}

/** Absent or 0 means the default, which stays below the template's own limit. */
function timeoutOf({ template, refuseAt }: PlacedTemplate, given: number, path: Path): number {
  const whole = template.global_timeout || MOST_SECONDS;
  if (given > MOST_SECONDS) return refuseAt([...path, 'timeout'], `timeout: ${given} s is more than the ${MOST_SECONDS} s an action may take`);
  if (given > whole) return refuseAt([...path, 'timeout'], `timeout: ${given} s is more than global_timeout, ${whole} s`);
  return given || Math.min(DEFAULT_SECONDS, whole);
}

function applies({ refuseAt }: PlacedTemplate, condition: TemplateAction['if'], facts: TemplateFacts, path: Path): boolean {
  if (condition === undefined || typeof condition === 'boolean') return condition ?? true;
  const judged = evaluateCondition(condition, facts);
  return judged.kind === 'problem' ? refuseAt([...path, 'if'], judged.what) : judged.kind === 'holds';
}

/** The order of actions that a run can carry out: anything else would be found out with the disks half done. */
function refuseBadOrder({ refuseAt }: PlacedTemplate, kept: readonly Kept[], facts: TemplateFacts): void {
  const at = (name: ActionName): number => kept.findIndex(({ action }) => action.name === name);
  for (const [index, { action, path }] of kept.entries()) {
    if (at(action.name) !== index) refuseAt(path, `metalflow/${action.name} is there twice`);
  }
  const wipe = at('wipe-disk');
  const image = at('write-image');
  const reboot = at('reboot');
  if (facts.run.wipes && wipe === -1) refuseAt(['tasks'], 'this run wipes, and the template has no metalflow/wipe-disk for it');
  if (!facts.run.wipes && wipe !== -1) refuseAt(kept[wipe]!.path, 'this run does not wipe: metalflow/wipe-disk needs "if: run.wipes"');
  if (image !== -1 && wipe > image) refuseAt(kept[wipe]!.path, 'metalflow/wipe-disk after metalflow/write-image would destroy what was written');
  if (reboot !== -1 && reboot !== kept.length - 1) refuseAt(kept[reboot]!.path, 'metalflow/reboot must be the last action: it ends what the agent can do');
}

/**
 * One entry an action, in order; those whose `if` fails are left out. A wipe-disk stands for each disk of the device's
 * wipe_disks: the run makes one order a disk of it once it knows the inventory.
 * @throws (through refuseAt) template_invalid
 */
export function plannedActions(placed: PlacedTemplate, facts: TemplateFacts): PlannedAction[] {
  const { template, refuseAt } = placed;
  const names = new Set<string>();
  const kept: Kept[] = [];
  if ((template.global_timeout ?? 0) > 7 * MOST_SECONDS) refuseAt(['global_timeout'], `global_timeout: is more than ${7 * MOST_SECONDS} s`);
  for (const [t, task] of template.tasks.entries()) {
    if (task.worker !== facts.device.id && task.worker !== facts.device.name) refuseAt(['tasks', t, 'worker'], 'worker: is not this node; say "{{ .device.id }}"');
    for (const [a, action] of task.actions.entries()) {
      const path = ['tasks', t, 'actions', a];
      if (names.has(action.name)) refuseAt([...path, 'name'], `action ${action.name} is there twice`);
      names.add(action.name);
      // All of it is checked, also what this run leaves out: a template is right or wrong for every run.
      const planned = { title: action.name, name: nameOf(placed, action.image, path), timeoutSeconds: timeoutOf(placed, action.timeout ?? 0, path) };
      if (applies(placed, action.if, facts, path)) kept.push({ action: planned, path });
    }
  }
  if (kept.length === 0) refuseAt(['tasks'], 'no action is left: every "if" says no');
  refuseBadOrder(placed, kept, facts);
  return kept.map(({ action }) => action);
}
