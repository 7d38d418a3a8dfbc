/** The smallest workflow that shows what one activity after another costs. */
import { proxyActivities } from '@temporalio/workflow';

const { nothing } = proxyActivities<{ nothing(): Promise<void> }>({ startToCloseTimeout: '10s' });

export async function oneAfterAnother(count: number): Promise<number> {
  const begun = Date.now();
  for (let done = 0; done < count; done++) await nothing();
  return Date.now() - begun;
}
