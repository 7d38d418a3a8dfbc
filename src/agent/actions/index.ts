/** From an action's name to the file that does it. `reboot` is the loop's own: it must be reported before it is done. */
import { MetalflowError } from '../../domain/errors.js';
import type { AgentAction } from '../../contracts/order.js';
import type { ActionContext, ActionDone } from './action.js';
import { setNextBoot } from './set-next-boot.js';
import { wipeDisk } from './wipe-disk.js';
import { writeImage } from './write-image.js';
import { writeSeed } from './write-seed.js';

export function doAction(action: AgentAction, context: ActionContext): Promise<ActionDone> {
  switch (action.name) {
    case 'wipe-disk':
      return wipeDisk(action, context);
    case 'write-image':
      return writeImage(action, context);
    case 'write-seed':
      return writeSeed(action, context);
    case 'set-next-boot':
      return setNextBoot(action, context);
    case 'reboot':
      throw new MetalflowError('unexpected', { what: 'reboot is done by the loop of the agent' });
  }
}
