import { clientArch, CLIENT_ARCHES, IPXE_PROGRAMS } from '../../src/domain/client-arch.js';

describe('the program of a client', () => {
  test.each([
    [0, 'undionly.kpxe', false], [6, 'ipxe.efi', false], [7, 'ipxe.efi', false], [9, 'ipxe.efi', false], [10, 'ipxe-arm64.efi', false], [11, 'ipxe-arm64.efi', false],
    [15, 'ipxe.efi', true], [16, 'ipxe.efi', true], [18, 'ipxe-arm64.efi', true], [19, 'ipxe-arm64.efi', true],
  ])('that says %i in option 93 is %s, by HTTP: %s', (code, program, httpBoot) => {
    expect(clientArch(code)).toMatchObject({ code, program, httpBoot });
  });

  test.each([1, 2, 5, 8, 17, 41, 65_535, -1, 0.5])('that says %d is none of ours', (code) => {
    expect(clientArch(code)).toBeNull();
  });

  test('is one row a number and a name, and each row names a program of the table and a sentence', () => {
    for (const key of ['code', 'name'] as const) expect(new Set(CLIENT_ARCHES.map((arch) => arch[key])).size).toBe(CLIENT_ARCHES.length);
    for (const { name, program, of } of CLIENT_ARCHES) expect([/^[a-z0-9-]+$/.test(name), program in IPXE_PROGRAMS, of.length > 5]).toEqual([true, true, true]);
  });
});
