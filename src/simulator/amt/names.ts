/** What an AMT's WS-Management is made of: namespaces, resource URIs, instance ids. */

export const NS = {
  soap: 'http://www.w3.org/2003/05/soap-envelope',
  addressing: 'http://schemas.xmlsoap.org/ws/2004/08/addressing',
  wsman: 'http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd',
  enumeration: 'http://schemas.xmlsoap.org/ws/2004/09/enumeration',
  transfer: 'http://schemas.xmlsoap.org/ws/2004/09/transfer',
  identity: 'http://schemas.dmtf.org/wbem/wsman/identity/1/wsmanidentity.xsd',
} as const;

export const ANONYMOUS = `${NS.addressing}/role/anonymous`;

const SCHEMAS: Readonly<Record<string, string>> = {
  CIM: 'http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/',
  AMT: 'http://intel.com/wbem/wscim/1/amt-schema/1/',
  IPS: 'http://intel.com/wbem/wscim/1/ips-schema/1/',
};

/** `CIM_BootService` → its resource URI. */
export const uriOf = (className: string): string => `${SCHEMAS[className.slice(0, 3)]}${className}`;

export const BOOT_CONFIGURATION = 'Intel(r) AMT: Boot Configuration 0';
export const BOOT_SOURCES = ['Intel(r) AMT: Force PXE Boot', 'Intel(r) AMT: Force Hard-drive Boot', 'Intel(r) AMT: Force CD/DVD Boot'] as const;
export type BootSource = (typeof BOOT_SOURCES)[number];
export const PXE: BootSource = 'Intel(r) AMT: Force PXE Boot';
