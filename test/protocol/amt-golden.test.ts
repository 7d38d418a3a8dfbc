/** Our six bodies against those of Intel's own message builder: the same elements, namespaces, attributes and text. */
import { AMT, CIM } from '@device-management-toolkit/wsman-messages';
import * as ours from '../../src/bmc/amt/envelope.js';
import { BOOT_CONFIGURATION, FORCE_PXE_BOOT } from '../../src/bmc/amt/names.js';
import { readXml, type XmlElement } from '../../src/simulator/amt/xml.js';
import { startAmtBench } from '../support/amt.js';
import { post } from '../support/amt-wire.js';

const cim = new CIM.Messages();
const amt = new AMT.Messages();
const id = '7';

/** Prefixes, blanks and message ids are nobody's business. */
function essence(xml: string): unknown {
  const strip = ({ uri, name, attributes, children, text }: XmlElement): unknown => ({ uri, name, attributes, text: name === 'MessageID' ? '' : text, children: children.map(strip) });
  return strip(readXml(xml));
}

/** Their type wants every property that AMT 16 has; the builder takes what it gets. */
const settings = { ElementName: 'Intel(r) AMT Boot Configuration Settings', InstanceID: 'Intel(r) AMT:BootSettingData 0', BIOSPause: false, BootMediaIndex: 0, UseSOL: false };
const settingFields = Object.entries(settings).map(([name, value]): ours.Field => [name, String(value)]);

describe('a request of ours is the request of Intel’s builder', () => {
  test.each([
    ['Get AMT_BootSettingData', ours.getEnvelope('AMT_BootSettingData', id), amt.BootSettingData.Get()],
    ['Get CIM_ComputerSystemPackage', ours.getEnvelope('CIM_ComputerSystemPackage', id), cim.ComputerSystemPackage.Get()],
    ['Get AMT_BootCapabilities', ours.getEnvelope('AMT_BootCapabilities', id), amt.BootCapabilities.Get()],
    ['Put AMT_BootSettingData', ours.putEnvelope('AMT_BootSettingData', settingFields, id), amt.BootSettingData.Put({ ...settings } as never)],
    ['ChangeBootOrder that clears', ours.changeBootOrderEnvelope(null, id), cim.BootConfigSetting.ChangeBootOrder()],
    ['ChangeBootOrder to the network', ours.changeBootOrderEnvelope(FORCE_PXE_BOOT, id), cim.BootConfigSetting.ChangeBootOrder(FORCE_PXE_BOOT as never)],
    ['SetBootConfigRole', ours.setBootConfigRoleEnvelope(id), cim.BootService.SetBootConfigRole(BOOT_CONFIGURATION as never, 1)],
    ['RequestPowerStateChange 2', ours.requestPowerStateChangeEnvelope(2, id), cim.PowerManagementService.RequestPowerStateChange(2)],
    ['RequestPowerStateChange 8', ours.requestPowerStateChangeEnvelope(8, id), cim.PowerManagementService.RequestPowerStateChange(8)],
  ])('%s', (_name, mine, theirs) => {
    expect(essence(mine)).toEqual(essence(theirs));
  });

  test('except that ours escapes what it is given', () => {
    const hostile: ours.Field[] = [['ElementName', '</h:ElementName><h:BIOSSetup>true</h:BIOSSetup>&']];
    const body = readXml(ours.putEnvelope('AMT_BootSettingData', hostile, '</a:MessageID>'));
    const put = body.children[1]!.children[0]!;
    expect(put.children.map(({ name, text }) => [name, text])).toEqual(hostile);
  });
});

test('the simulator takes the whole boot order of Intel\'s builder, as MPS and console send it', async () => {
  const bench = await startAmtBench();
  const enumerated = cim.ServiceAvailableToElement.Enumerate();
  const answers = await post(
    bench.amt, amt.BootSettingData.Get(), cim.BootConfigSetting.ChangeBootOrder(), amt.BootSettingData.Put({ ...settings } as never),
    cim.BootService.SetBootConfigRole(BOOT_CONFIGURATION as never, 1), cim.BootConfigSetting.ChangeBootOrder(FORCE_PXE_BOOT as never), cim.PowerManagementService.RequestPowerStateChange(2), enumerated,
  );
  const [pulled] = await post(bench.amt, cim.ServiceAvailableToElement.Pull(/EnumerationContext>([^<]+)</.exec(answers.at(-1)!.body)![1]!));
  await bench.amt.settled();
  await bench.close();
  expect(answers.map(({ status, body }) => [status, /ReturnValue>(\d+)</.exec(body)?.[1]])).toEqual([[200, undefined], [200, '0'], [200, undefined], [200, '0'], [200, '0'], [200, '0'], [200, undefined]]);
  expect(pulled!.body).toContain('PowerState>2<');
  expect(bench.machine).toEqual(['on network']);
});
