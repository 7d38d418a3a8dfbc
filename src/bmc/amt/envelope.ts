/** The WS-Man requests we send, in the form that Intel's own clients send them. Everything that varies is escaped. */
import type { FORCE_PXE_BOOT} from './names.js';
import { ANONYMOUS, BOOT_CONFIGURATION, NS, RESOURCES, ROLE_NEXT_SINGLE_USE, type ResourceName } from './names.js';

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };
// XML 1.0 has no way to write these, escaped or not.
 
const UNWRITABLE = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g;

export const escapeXml = (text: string): string => text.replaceAll(UNWRITABLE, '').replaceAll(/[&<>"']/g, (mark) => ENTITIES[mark]!);

/** An element of a body: its local name, and its text or children. */
export type Field = readonly [name: string, value: string | readonly Field[] | Reference];

/** An endpoint reference (WS-Addressing) to one instance. */
interface Reference {
  readonly resource: ResourceName;
  readonly selectors: Readonly<Record<string, string>>;
}

/** Draws the MessageID of each envelope; AMT echoes it in RelatesTo and wants no more of it. */
export type DrawMessageId = () => string;

const isReference = (value: Field[1]): value is Reference => typeof value === 'object' && 'resource' in value;

function fieldXml([name, value]: Field): string {
  if (typeof value === 'string') return `<h:${name}>${escapeXml(value)}</h:${name}>`;
  return `<h:${name}>${isReference(value) ? referenceXml(value) : value.map(fieldXml).join('')}</h:${name}>`;
}

// The address is the bare namespace, not the anonymous role: that is what Intel's clients have sent for years.
function referenceXml({ resource, selectors }: Reference): string {
  const set = Object.entries(selectors).map(([name, value]) => `<Selector Name="${escapeXml(name)}">${escapeXml(value)}</Selector>`).join('');
  return (
    `<Address xmlns="${NS.addressing}">${NS.addressing}</Address>` +
    `<ReferenceParameters xmlns="${NS.addressing}"><ResourceURI xmlns="${NS.wsman}">${RESOURCES[resource]}</ResourceURI>` +
    `<SelectorSet xmlns="${NS.wsman}">${set}</SelectorSet></ReferenceParameters>`
  );
}

const DECLARATION = '<?xml version="1.0" encoding="utf-8"?>';

type Selectors = Readonly<Record<string, string>>;

const selectorsXml = (selectors: Selectors): string => Object.entries(selectors).map(([name, value]) => `<w:Selector Name="${escapeXml(name)}">${escapeXml(value)}</w:Selector>`).join('');

function envelope(action: string, resource: ResourceName, messageId: string, body: string, selectors: Selectors | null = null): string {
  return (
    `${DECLARATION}<Envelope xmlns="${NS.soap}" xmlns:a="${NS.addressing}" xmlns:w="${NS.wsman}"><Header>` +
    `<a:Action>${action}</a:Action><a:To>/wsman</a:To><w:ResourceURI>${RESOURCES[resource]}</w:ResourceURI>` +
    `<a:MessageID>${escapeXml(messageId)}</a:MessageID><a:ReplyTo><a:Address>${ANONYMOUS}</a:Address></a:ReplyTo>` +
    `<w:OperationTimeout>PT60S</w:OperationTimeout>${selectors === null ? '' : `<w:SelectorSet>${selectorsXml(selectors)}</w:SelectorSet>`}</Header><Body>${body}</Body></Envelope>`
  );
}

const element = (resource: ResourceName, name: string, fields: readonly Field[]): string => `<h:${name} xmlns:h="${RESOURCES[resource]}">${fields.map(fieldXml).join('')}</h:${name}>`;

/** @param selectors only for a class of several instances: Intel's clients name none for the others */
export const getEnvelope = (resource: ResourceName, messageId: string, selectors: Selectors | null = null): string => envelope(`${NS.transfer}/Get`, resource, messageId, '', selectors);

export const enumerateEnvelope = (resource: ResourceName, messageId: string): string =>
  envelope(`${NS.enumeration}/Enumerate`, resource, messageId, `<Enumerate xmlns="${NS.enumeration}"/>`);

/** Asks for everything at once; firmware gives what it has room for. */
export const pullEnvelope = (resource: ResourceName, context: string, messageId: string): string =>
  envelope(
    `${NS.enumeration}/Pull`, resource, messageId,
    `<Pull xmlns="${NS.enumeration}"><EnumerationContext>${escapeXml(context)}</EnumerationContext><MaxElements>999</MaxElements><MaxCharacters>99999</MaxCharacters></Pull>`,
  );

export const putEnvelope = (resource: ResourceName, fields: readonly Field[], messageId: string): string =>
  envelope(`${NS.transfer}/Put`, resource, messageId, element(resource, resource, fields));

const invokeEnvelope = (resource: ResourceName, method: string, fields: readonly Field[], messageId: string): string =>
  envelope(`${RESOURCES[resource]}/${method}`, resource, messageId, element(resource, `${method}_INPUT`, fields));

/** CIM_BootConfigSetting.ChangeBootOrder: the network, or no source at all, which clears what is armed. */
export const changeBootOrderEnvelope = (source: typeof FORCE_PXE_BOOT | null, messageId: string): string =>
  invokeEnvelope('CIM_BootConfigSetting', 'ChangeBootOrder', source === null ? [] : [['Source', { resource: 'CIM_BootSourceSetting', selectors: { InstanceID: source } }]], messageId);

/** CIM_BootService.SetBootConfigRole: our boot configuration counts for the next boot only. */
export const setBootConfigRoleEnvelope = (messageId: string): string =>
  invokeEnvelope('CIM_BootService', 'SetBootConfigRole', [
    ['BootConfigSetting', { resource: 'CIM_BootConfigSetting', selectors: { InstanceID: BOOT_CONFIGURATION } }],
    ['Role', String(ROLE_NEXT_SINGLE_USE)],
  ], messageId);

/** AMT_TimeSynchronizationService.GetLowAccuracyTimeSynch: what AMT's clock says. */
export const getTimeEnvelope = (messageId: string): string => invokeEnvelope('AMT_TimeSynchronizationService', 'GetLowAccuracyTimeSynch', [], messageId);

/** CIM_PowerManagementService.RequestPowerStateChange of the host (`ManagedSystem`), not of the ME. */
export const requestPowerStateChangeEnvelope = (state: number, messageId: string): string =>
  invokeEnvelope('CIM_PowerManagementService', 'RequestPowerStateChange', [
    ['PowerState', String(state)],
    ['ManagedElement', { resource: 'CIM_ComputerSystem', selectors: { CreationClassName: 'CIM_ComputerSystem', Name: 'ManagedSystem' } }],
  ], messageId);

/** WS-Man Identify (DSP0226 §11): who answers here; it has no header. */
export const identifyEnvelope = (): string =>
  `${DECLARATION}<Envelope xmlns="${NS.soap}"><Header/><Body><i:Identify xmlns:i="${NS.identity}"/></Body></Envelope>`;
