/** Holds the installation id on Temporal's side: which store this namespace belongs to. Lives for ever, does nothing. */
import { condition, defineQuery, setCurrentDetails, setHandler } from '@temporalio/workflow';

export const installationId = defineQuery<string>('installationId');

export async function installation(input: { id: string }): Promise<void> {
  setHandler(installationId, () => input.id);
  setCurrentDetails(`This namespace belongs to the metalflow store \`${input.id}\`. Do not terminate this workflow: every node would be held until it is adopted.`);
  await condition(() => false);
}
