import { readAnswer, unescapeXml } from '../../src/bmc/amt/answer.js';
import { clearedBootSettings } from '../../src/bmc/amt/boot-settings.js';
import { escapeXml } from '../../src/bmc/amt/envelope.js';
import { METHODS, returnValueRow } from '../../src/bmc/amt/return-values.js';
import { BootSettingsBody, methodBody, PlatformGuidBody, PowerStateBody } from '../../src/bmc/amt/shapes.js';

const soap = (body: string, prefix = 'a'): string =>
  `<?xml version="1.0"?><${prefix}:Envelope xmlns:${prefix}="http://www.w3.org/2003/05/soap-envelope" xmlns:g="urn:g" xmlns:h="urn:h"><${prefix}:Header/><${prefix}:Body>${body}</${prefix}:Body></${prefix}:Envelope>`;
const power = (xml: string, status = 200): unknown => readAnswer({ status, body: xml }, 'Get power', PowerStateBody);
const associated = (inside: string, prefix = 'h'): string => `<${prefix}:CIM_AssociatedPowerManagementService>${inside}</${prefix}:CIM_AssociatedPowerManagementService>`;
const reads = (value: number): unknown => ({ kind: 'ok', value: expect.objectContaining({ CIM_AssociatedPowerManagementService: expect.objectContaining({ PowerState: value }) }) });

describe('an answer of AMT', () => {
  test.each([
    ['with prefixes h and a', soap(associated('<h:PowerState>8</h:PowerState>'))],
    ['with prefixes g and s (A5)', soap(associated('<g:PowerState>8</g:PowerState>', 'g'), 's')],
    ['with nothing but PowerState (A5, mps#2278)', soap(associated('<h:PowerState>8</h:PowerState>'))],
    ['with repeated neighbours', soap(associated('<h:AvailableRequestedPowerStates>2</h:AvailableRequestedPowerStates><h:AvailableRequestedPowerStates>5</h:AvailableRequestedPowerStates><h:PowerState>8</h:PowerState>'))],
    ['with blanks', soap(associated('\n <h:PowerState> 8 </h:PowerState>\n'))],
  ])('%s is read as off', (_name, xml) => {
    expect(power(xml)).toEqual(reads(8));
  });

  test.each([
    ['a web page', '<!DOCTYPE html><html><body>router</body></html>', 'DOCTYPE'],
    ['a web page without document type', '<html><body>router</body></html>', 'no SOAP envelope'],
    ['an entity bomb', `<!DOCTYPE x [<!ENTITY a "b">]>${soap('')}`, 'DOCTYPE'],
    ['a torn answer', soap(associated('<h:PowerState>8</h:PowerState>')).slice(0, -40), 'no well-formed XML'],
    ['nothing', '', 'no well-formed XML'],
    ['words', 'service unavailable', 'no well-formed XML'],
    ['a reserved name', soap('<__proto__>1</__proto__>'), 'XML that is refused'],
    ['another class', soap('<h:Other/>'), 'CIM_AssociatedPowerManagementService'],
    ['no PowerState', soap(associated('<h:Other>8</h:Other>')), 'PowerState'],
    ['two PowerStates', soap(associated('<h:PowerState>8</h:PowerState><h:PowerState>2</h:PowerState>')), 'PowerState'],
    ['a word for a state', soap(associated('<h:PowerState>off</h:PowerState>')), 'is no number'],
    ['very deep nesting', soap('<a>'.repeat(500) + '</a>'.repeat(500)), 'XML that is refused'],
  ])('%s is one clear error', (_name, xml, why) => {
    expect(power(xml)).toEqual({ kind: 'problem', problem: expect.objectContaining({ code: 'bmc_answer_invalid', effect: 'possible', why: expect.stringContaining(why) }) });
  });

  const fault = (subcode: string): string => soap(`<a:Fault><a:Code><a:Value>a:Sender</a:Value><a:Subcode><a:Value>b:${subcode}</a:Value></a:Subcode></a:Code><a:Reason><a:Text xml:lang="en-US">No &amp; never.</a:Text></a:Reason><a:Detail/></a:Fault>`);

  test('a fault of HTTP 400 is a refusal without effect, with its own reason', () => {
    expect(power(fault('SchemaValidationError'), 400)).toEqual({
      kind: 'problem',
      problem: expect.objectContaining({ code: 'bmc_refused', effect: 'none', details: expect.objectContaining({ step: 'Get power', value: 'SchemaValidationError', meaning: 'No & never.' }) }),
    });
  });
  test('a fault of HTTP 500 leaves the effect open', () => {
    expect(power(fault('InternalError'), 500)).toMatchObject({ problem: { code: 'bmc_refused', effect: 'possible' } });
  });
  test('an access denied names client control mode', () => {
    expect(power(fault('AccessDenied'), 400)).toMatchObject({ problem: { why: expect.stringContaining('admin control mode') } });
  });
  test('a torn answer to a refused request still is a refusal', () => {
    expect(power('<a>', 400)).toMatchObject({ problem: { code: 'bmc_answer_invalid', effect: 'none' } });
  });

  test('numbers stay text until a shape makes them numbers', () => {
    const settings = readAnswer({ status: 200, body: soap('<g:AMT_BootSettingData><g:ElementName>0012</g:ElementName><g:OwningEntity>1E5</g:OwningEntity></g:AMT_BootSettingData>') }, 'Get', BootSettingsBody);
    expect(settings).toEqual({ kind: 'ok', value: { AMT_BootSettingData: { ElementName: '0012', OwningEntity: '1E5' } } });
  });
  test('an empty package has no GUID', () => {
    expect(readAnswer({ status: 200, body: soap('<h:CIM_ComputerSystemPackage/>') }, 'Get', PlatformGuidBody)).toEqual({ kind: 'ok', value: { CIM_ComputerSystemPackage: '' } });
  });
  test('a method gives its ReturnValue', () => {
    expect(readAnswer({ status: 200, body: soap('<g:ChangeBootOrder_OUTPUT><g:ReturnValue>5</g:ReturnValue></g:ChangeBootOrder_OUTPUT>') }, 'ChangeBootOrder', methodBody('ChangeBootOrder'))).toEqual({ kind: 'ok', value: 5 });
    expect(readAnswer({ status: 200, body: soap('<g:ChangeBootOrder_OUTPUT/>') }, 'ChangeBootOrder', methodBody('ChangeBootOrder'))).toMatchObject({ problem: { code: 'bmc_answer_invalid', effect: 'possible' } });
  });
});

describe('ReturnValues', () => {
  test.each(Object.keys(METHODS) as (keyof typeof METHODS)[])('only zero of %s is a plain yes', (method) => {
    const accepted = Object.entries(METHODS[method]).filter(([, { kind }]) => kind === 'accepted').map(([value]) => Number(value));
    expect(accepted).toEqual(method === 'RequestPowerStateChange' ? [0, 4096] : [0]);
  });
  test.each(Object.keys(METHODS) as (keyof typeof METHODS)[])('a value of %s without a row is neither yes nor no: the machine may have obeyed', (method) => {
    expect(returnValueRow(method, 77).kind).toBe('unknown');
  });
  test('a power change that cannot be completed in time is neither yes nor no', () => {
    expect(returnValueRow('RequestPowerStateChange', 3).kind).toBe('unknown');
  });
});

describe('boot settings for one network boot', () => {
  test('clears what spoils it, drops what is read-only, keeps the rest, adds nothing', () => {
    const given = {
      BIOSLastStatus: ['2', '0'], BIOSSetup: 'true', BootMediaIndex: '1', ElementName: 'A &amp; B', EnforceSecureBoot: 'true', InstanceID: 'Intel(r) AMT:BootSettingData 0', OptionsCleared: 'true',
      OwningEntity: 'Intel(r) AMT', RSEPassword: '', UefiBootNumberOfParams: '3', UefiBootParametersArray: 'AAAA', UseIDER: 'true', WinREBootEnabled: 'true', NewIn2030: 'kept',
    };
    expect(clearedBootSettings(given)).toEqual([
      ['BIOSSetup', 'false'], ['BootMediaIndex', '0'], ['ElementName', 'A & B'], ['EnforceSecureBoot', 'true'], ['InstanceID', 'Intel(r) AMT:BootSettingData 0'], ['OwningEntity', 'Intel(r) AMT'],
      ['UefiBootNumberOfParams', '0'], ['UseIDER', 'false'], ['NewIn2030', 'kept'],
    ]);
  });
});

describe('XML text', () => {
  test.each([['a<b>&"\'c', 'a&lt;b&gt;&amp;&quot;&apos;c'], ['\u0000ok\u0008', 'ok'], ['Zürich ✓', 'Zürich ✓']])('%j is written as %j', (text, xml) => {
    expect(escapeXml(text)).toBe(xml);
  });
  test.each([['&lt;&#65;&#x42;&amp;amp;', '<AB&amp;'], ['&unknown;&#x110000;', '&unknown;&#x110000;']])('%j is read as %j', (xml, text) => {
    expect(unescapeXml(xml)).toBe(text);
  });
});
