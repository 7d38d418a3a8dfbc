/** The templates that come with metalflow, in the same words a site writes its own in. */

const INSTALL = `version: "0.1"
name: install
global_timeout: 86400
tasks:
  - name: install
    worker: "{{ .device.id }}"
    actions:
      - name: wipe-disk
        image: metalflow/wipe-disk
        timeout: 28800
        if: run.wipes
      - name: write-image
        image: metalflow/write-image
        timeout: 7200
      - name: write-seed
        image: metalflow/write-seed
        timeout: 300
      - name: set-next-boot
        image: metalflow/set-next-boot
        timeout: 120
      - name: reboot
        image: metalflow/reboot
        timeout: 120
`;

/** No reboot at the end: after a wipe, and before a retirement's off, there is nothing to boot. */
const WIPE = `version: "0.1"
name: wipe
global_timeout: 86400
tasks:
  - name: wipe
    worker: "{{ .device.id }}"
    actions:
      - name: wipe-disk
        image: metalflow/wipe-disk
        timeout: 28800
`;

export const BUILT_IN: Readonly<Record<string, string>> = { install: INSTALL, wipe: WIPE };
