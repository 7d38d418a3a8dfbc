/** Turns errors of the table into Temporal failures, and carries the test's crash points around every activity. */
import type { ActivityInboundCallsInterceptor, ActivityInterceptorsFactory } from '@temporalio/worker';
import { CompleteAsyncError } from '@temporalio/activity';
import type { CrashPoint } from '../telemetry/crash-point.js';
import type { Logger } from '../telemetry/log.js';
import { toApplicationFailure } from './context.js';

export function activityInterceptors({ crash, log }: { crash: CrashPoint; log: Logger }): ActivityInterceptorsFactory {
  return (context) => {
    const name = context.info.activityType;
    const inbound: ActivityInboundCallsInterceptor = {
      async execute(input, next) {
        crash(`${name}:before`);
        try {
          return await next(input);
        } catch (error) {
          if (!(error instanceof CompleteAsyncError)) log.debug({ activity: name, workflow: context.info.workflowExecution?.workflowId, attempt: context.info.attempt, err: error }, 'activity failed');
          throw toApplicationFailure(error);
        } finally {
          crash(`${name}:before-answer`);
        }
      },
    };
    return { inbound };
  };
}
