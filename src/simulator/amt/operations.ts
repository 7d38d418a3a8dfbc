/** What each WS-Man action does: Identify, Get, Put, Enumerate, Pull, Release and the methods that matter. */
import { instanceXml, referenceXml, type Answer, type AnswerWriter, type Property } from './answers.js';
import type { BootOrder } from './boot-order.js';
import { referenceOf, type AmtClass } from './classes.js';
import type { AmtFaults } from './faults.js';
import { BOOT_CONFIGURATION, NS, uriOf } from './names.js';
import type { PowerState } from './power-state.js';
import { readReference, type Selectors, type WsmanRequest } from './request.js';
import { child, textOf } from './xml.js';

export interface OperationDeps {
  readonly classes: ReadonlyMap<string, AmtClass>;
  readonly power: PowerState;
  readonly bootOrder: BootOrder;
  readonly faults: AmtFaults;
  readonly write: AnswerWriter;
  readonly now: () => Date;
}

/** An answer, and what the request was, for the journal. */
export interface Performed {
  readonly answer: Answer;
  /** `Get CIM_BootService`, `ChangeBootOrder` … */
  readonly call: string;
  /** Set for RequestPowerStateChange. */
  readonly power?: { readonly value: number; readonly returnValue: number };
}

/** ReturnValues of the boot methods. */
const ACCEPTED = 0;
const INVALID_REFERENCE = 4;
const INVALID_PARAMETER = 5;

const CONTEXTS_KEPT = 32;

const POWER_METHOD = `${uriOf('CIM_PowerManagementService')}/RequestPowerStateChange`;

type Method = (request: WsmanRequest) => Omit<Performed, 'call'>;

/** The value that a RequestPowerStateChange asks for; null when the request is another one. */
export function requestedPower({ action, resource, body }: WsmanRequest): number | null {
  if (action !== POWER_METHOD) return null;
  return Number(textOf(child(body, resource, 'RequestPowerStateChange_INPUT'), resource, 'PowerState') ?? Number.NaN);
}

export function createOperations({ classes, power, bootOrder, faults, write, now }: OperationDeps): { perform(request: WsmanRequest): Performed } {
  const contexts = new Map<string, { known: AmtClass | undefined; references: boolean }>();
  let opened = 0;

  const inputOf = (request: WsmanRequest, method: string): ReturnType<typeof child> => child(request.body, request.resource, `${method}_INPUT`);

  /** The value that the switch `refuse` asks for, else what the method itself makes of it. */
  const valued = (request: WsmanRequest, method: string, obey: () => number): Omit<Performed, 'call'> => ({ answer: write.output(request, method, faults.refuse[method] ?? obey()) });

  const methods: Readonly<Record<string, Method>> = {
    [POWER_METHOD](request) {
      const input = inputOf(request, 'RequestPowerStateChange');
      const value = requestedPower(request)!;
      const target = readReference(child(input, request.resource, 'ManagedElement'));
      if (!input || target?.resource !== uriOf('CIM_ComputerSystem')) return { answer: write.fault(request, 'SchemaValidationError') };
      const returnValue = faults.refuse['RequestPowerStateChange'] ?? (target.selectors['Name'] === 'ManagedSystem' ? power.request(value) : INVALID_PARAMETER);
      return { answer: write.output(request, 'RequestPowerStateChange', returnValue), power: { value, returnValue } };
    },
    [`${uriOf('CIM_BootService')}/SetBootConfigRole`](request) {
      const input = inputOf(request, 'SetBootConfigRole');
      if (!input) return { answer: write.fault(request, 'SchemaValidationError') };
      const setting = readReference(child(input, request.resource, 'BootConfigSetting'));
      return valued(request, 'SetBootConfigRole', () => {
        if (setting?.selectors['InstanceID'] !== BOOT_CONFIGURATION) return INVALID_REFERENCE;
        return bootOrder.setRole(Number(textOf(input, request.resource, 'Role'))) === 'taken' ? ACCEPTED : INVALID_PARAMETER;
      });
    },
    [`${uriOf('CIM_BootConfigSetting')}/ChangeBootOrder`](request) {
      const input = inputOf(request, 'ChangeBootOrder');
      if (!input) return { answer: write.fault(request, 'SchemaValidationError') };
      const name = faults.lowerCaseSource ? 'source' : 'Source';
      if (input.children.some((given) => given.name !== name)) return { answer: write.fault(request, 'SchemaValidationError') };
      const source = child(input, request.resource, name);
      // Client control mode lets nobody set a source without consent; clearing is allowed.
      if (source && faults.ccmAccessDenied) return { answer: write.fault(request, 'AccessDenied') };
      return valued(request, 'ChangeBootOrder', () => {
        if (!source) {
          bootOrder.clearSource();
          return ACCEPTED;
        }
        return bootOrder.setSource(readReference(source)?.selectors['InstanceID'] ?? '') === 'taken' ? ACCEPTED : INVALID_PARAMETER;
      });
    },
    [`${uriOf('AMT_TimeSynchronizationService')}/GetLowAccuracyTimeSynch`](request) {
      const ta0 = Math.floor(now().getTime() / 1000) + faults.clockSkewSeconds;
      return { answer: write.output(request, 'GetLowAccuracyTimeSynch', faults.refuse['GetLowAccuracyTimeSynch'] ?? ACCEPTED, [['Ta0', String(ta0)]]) };
    },
  };

  /** Every selector that is given must fit; none need be given (Intel's clients give none). */
  const fits = (selectors: Selectors, properties: readonly Property[]): boolean =>
    Object.entries(selectors).every(([name, value]) => properties.some(([known, held]) => known === name && (typeof held !== 'string' || held === value)));

  function get(request: WsmanRequest, known: AmtClass): Answer {
    const found = known.instances().find((properties) => fits(request.selectors, properties));
    return found ? write.ok(request, instanceXml(known.itemName ?? known.name, found)) : write.fault(request, 'InvalidSelectors');
  }

  function put(request: WsmanRequest, known: AmtClass): Answer {
    const given = child(request.body, request.resource, known.name);
    if (known.name !== 'AMT_BootSettingData' || !given) return write.fault(request, given ? 'ActionNotSupported' : 'SchemaValidationError');
    const fields = given.children.filter(({ uri }) => uri === request.resource).map(({ name, text }) => [name, text] as const);
    if (bootOrder.putSettings(fields) === 'rejected') return write.fault(request, 'SchemaValidationError');
    return write.ok(request, instanceXml(known.name, bootOrder.settings()));
  }

  function enumerate(request: WsmanRequest): Answer {
    const asked = child(request.body, NS.enumeration, 'Enumerate');
    if (!asked) return write.fault(request, 'SchemaValidationError');
    opened += 1;
    const context = `${opened.toString(16).toUpperCase().padStart(8, '0')}-0000-0000-0000-000000000000`;
    // A class that is not there gives an empty set.
    contexts.set(context, { known: classFor(request.resource), references: textOf(asked, NS.wsman, 'EnumerationMode') === 'EnumerateEPR' });
    if (contexts.size > CONTEXTS_KEPT) contexts.delete(contexts.keys().next().value!);
    return write.ok(request, `<g:EnumerateResponse><g:EnumerationContext>${context}</g:EnumerationContext></g:EnumerateResponse>`);
  }

  function pull(request: WsmanRequest): Answer {
    const asked = child(request.body, NS.enumeration, 'Pull');
    const id = textOf(asked, NS.enumeration, 'EnumerationContext') ?? '';
    const context = contexts.get(id);
    if (!context) return write.fault(request, 'InvalidEnumerationContext');
    contexts.delete(id);
    const { known } = context;
    const references = context.references || textOf(asked, NS.wsman, 'EnumerationMode') === 'EnumerateEPR';
    const items = (known?.instances() ?? []).map((properties) =>
      references ? `<b:EndpointReference>${referenceXml(referenceOf(known!, properties))}</b:EndpointReference>` : instanceXml(known!.itemName ?? known!.name, properties));
    // All of it at once, and no context beside the end: a client that looks for one would ask for ever.
    return write.ok(request, `<g:PullResponse><g:Items>${items.join('')}</g:Items><g:EndOfSequence/></g:PullResponse>`);
  }

  function release(request: WsmanRequest): Answer {
    const id = textOf(child(request.body, NS.enumeration, 'Release'), NS.enumeration, 'EnumerationContext') ?? '';
    return contexts.delete(id) ? write.ok(request, '') : write.fault(request, 'InvalidEnumerationContext');
  }

  const classFor = (resource: string): AmtClass | undefined => (faults.absentClasses.includes(className(resource)) ? undefined : classes.get(resource));

  const className = (resource: string): string => resource.split('/').at(-1)!.slice(0, 80);

  return {
    perform(request) {
      if (child(request.body, NS.identity, 'Identify')) return { answer: write.identified(faults.version), call: 'Identify' };
      const { action, resource } = request;
      const known = classFor(resource);
      const named = (verb: string): string => `${verb} ${className(resource)}`;
      switch (action) {
        case `${NS.enumeration}/Enumerate`:
          return { answer: enumerate(request), call: named('Enumerate') };
        case `${NS.enumeration}/Pull`:
          return { answer: pull(request), call: named('Pull') };
        case `${NS.enumeration}/Release`:
          return { answer: release(request), call: named('Release') };
      }
      if (!known) return { answer: write.fault(request, 'DestinationUnreachable'), call: named('nothing at') };
      if (action === `${NS.transfer}/Get`) return { answer: get(request, known), call: named('Get') };
      if (action === `${NS.transfer}/Put`) return { answer: put(request, known), call: named('Put') };
      const method = Object.hasOwn(methods, action) && action.startsWith(`${resource}/`) ? methods[action]! : null;
      if (!method) return { answer: write.fault(request, 'ActionNotSupported'), call: named('unknown action on') };
      const call = className(action);
      if (!known.instances().some((properties) => fits(request.selectors, properties))) return { answer: write.fault(request, 'InvalidSelectors'), call };
      return { ...method(request), call };
    },
  };
}
