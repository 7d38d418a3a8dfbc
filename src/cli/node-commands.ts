/** `metalflow node …`: a client of the operator plane. What a node is to become stays in NetBox; these only ask. */
import { Argument, Option, type Command } from 'commander';
import { VERBS, type OperatorVerb } from '../contracts/messages.js';
import { LIFECYCLE_STATES } from '../domain/states.js';
import { REQUESTS, type Request } from '../domain/runs.js';
import { evidenceView, journalView, nodesView, nodeView, doneView, planView, strangersView } from './node-views.js';
import { logOptions, printLogs, type LogsOptions } from './log-command.js';
import type { Answer, NodesFilter, OperatorClient, VerbOptions } from './operator-client.js';
import { url } from './option-text.js';
import { asJson, printError, type Terminal } from './output.js';

interface ClientOptions {
  readonly url?: string;
  readonly token?: string;
  readonly json?: boolean;
}

export interface NodeCommandDeps {
  readonly terminal: Terminal;
  /** @throws operator_token_missing, setting_invalid, setting_unknown */
  readonly client: (options: ClientOptions) => Promise<OperatorClient>;
  /** Takes the exit code of a command that was refused. */
  readonly exit: (code: 1) => void;
}

const REQUEST_HELP: { readonly [request in Request]: string } = {
  provision: 'install a node that runs nothing',
  reprovision: 'wipe a node and install it again',
  wipe: 'destroy what the listed disks hold; the node becomes available',
  retire: 'take a node out: wiped when its class says so, and seen off twice',
};

const VERB_HELP: { readonly [verb in OperatorVerb]: string } = {
  hold: 'stop at the next safe point and wait for a person',
  resume: 'go on with what is held',
  cancel: 'end the open run at its next safe point',
  retry: 'try the failed run again, or grant an unknown order once more',
  approve: 'say that what was found is right',
  adopt: 'say that the store and this machine belong together, or that the status in NetBox stands',
  maintenance: 'keep away from the node while a person works on it',
};

/** Adds `node` and its commands to the program. */
export function addNodeCommands(program: Command, deps: NodeCommandDeps): void {
  const { terminal } = deps;
  const node = program.command('node').description('look at nodes and ask for what they are to become');

  const command = (name: string, description: string): Command =>
    node.command(name).description(description)
      .option('--url <url>', 'operator plane (METALFLOW_OPERATOR_URL)', url)
      .option('--token <token>', 'bearer token (METALFLOW_OPERATOR_TOKEN, or the file operator-token of the secrets folder); other users of this machine may see it here')
      .option('--json', 'print JSON');

  const answer = async (options: ClientOptions, ask: (client: OperatorClient) => Promise<Answer>, view: (value: unknown, isTerminal: boolean) => string): Promise<void> => {
    const answered = await ask(await deps.client(options));
    const json = options.json ?? false;
    if (answered.kind === 'refused') {
      printError(terminal, answered.error, json);
      deps.exit(1);
      return;
    }
    terminal.out(json ? asJson(answered.value) : view(answered.value, terminal.isTerminal));
  };

  command('list', 'every node, or those of a state, site or class')
    .addOption(new Option('--state <state>').choices(LIFECYCLE_STATES))
    .option('--site <site>')
    .option('--class <class>')
    .action((options: ClientOptions & NodesFilter) => answer(options, (client) => client.list({ state: options.state, site: options.site, class: options.class }), nodesView));

  command('strangers', 'machines that attested under a boot MAC which no device declares').action((options: ClientOptions) => answer(options, (client) => client.strangers(), strangersView));

  const looks = [
    ['show', 'one node: its state, its open run, what it waits for', (client: OperatorClient, name: string) => client.show(name), nodeView],
    ['journal', 'what happened to a node', (client: OperatorClient, name: string) => client.journal(name), journalView],
    ['evidence', 'what a node attested', (client: OperatorClient, name: string) => client.evidence(name), evidenceView],
  ] as const;
  for (const [name, description, ask, view] of looks) {
    command(name, description).argument('<node>', 'name or NetBox device id').action((which: string, options: ClientOptions) => answer(options, (client) => ask(client, which), view));
  }

  logOptions(command('logs', 'what a node said over syslog')).argument('<node>', 'name or NetBox device id').action(async (which: string, options: ClientOptions & LogsOptions) => {
    const refused = await printLogs(await deps.client(options), which, options, options.json ?? false, terminal);
    if (!refused) return;
    printError(terminal, refused.error, options.json ?? false);
    deps.exit(1);
  });

  command('plan', 'what a run would do; does nothing')
    .argument('<node>', 'name or NetBox device id')
    .addArgument(new Argument('[kind]', 'kind of run').choices(REQUESTS).default('provision'))
    .action((which: string, kind: Request, options: ClientOptions) => answer(options, (client) => client.plan(which, kind), planView));

  for (const request of REQUESTS) {
    const asked = command(request, `${REQUEST_HELP[request]} (sets desired_action in NetBox)`).argument('<node>', 'name or NetBox device id');
    if (request === 'retire') {
      asked
        .option('--attest-removed', 'close it now: the machine is gone, by your word instead of its BMC (an approver only)')
        .option('--reason <text>', 'why, with --attest-removed; kept with your name');
    }
    asked.action((which: string, { attestRemoved, reason, ...options }: ClientOptions & VerbOptions) => {
      if (!attestRemoved && reason !== undefined) asked.error("error: option '--reason <text>' goes with '--attest-removed'");
      // NetBox is not asked for a retirement that nobody could prove: an approver closes it, and it reads unproven for ever.
      return answer(options, (client) => (attestRemoved ? client.say(which, 'approve', { attestRemoved, reason }) : client.request(which, request)), doneView);
    });
  }

  for (const verb of VERBS) {
    const said = command(verb, VERB_HELP[verb]).argument('<node>', 'name or NetBox device id').option('--reason <text>', 'why; kept with your name');
    if (verb === 'approve') said.option('--attest-removed', 'the machine is gone, by your word instead of its BMC');
    if (verb === 'resume') said.option('--done', 'the order whose outcome is unknown was done');
    if (verb === 'maintenance') said.addArgument(new Argument('<switch>').choices(['on', 'off']));
    said.action((which: string, ...rest: unknown[]) => {
      const isOn = verb === 'maintenance' ? { on: rest.shift() === 'on' } : {};
      const { reason, done, attestRemoved, ...options } = rest[0] as ClientOptions & VerbOptions;
      return answer(options, (client) => client.say(which, verb, { ...isOn, reason, done, attestRemoved }), doneView);
    });
  }
}
