/** `set-next-boot`: the firmware boots the disk next. */
import type { z } from 'zod';
import type { SetNextBootAction } from '../../contracts/order.js';
import { findDisk } from '../pinned-disk.js';
import type { DoAction } from './action.js';

/** @throws disk_none_matches, disk_several_match, action_failed */
export const setNextBoot: DoAction<z.infer<typeof SetNextBootAction>> = async (action, { machine }) => {
  const disk = await findDisk(machine, action.disk);
  const how = await machine.setNextBoot(disk);
  return { message: `disk ${disk.serial} boots next`, evidence: { serial: disk.serial, how } };
};
