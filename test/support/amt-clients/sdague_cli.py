#!/usr/bin/env python3
"""PyPI `amt` 0.8.0 on the command line, against any port: a client whose authors never saw our simulator.

status     prints the PowerState number and the client's word for it
on off cycle   exit 2 when AMT's ReturnValue is not 0
pxe        ChangeBootOrder, then SetBootConfigRole; the client does not look at their ReturnValues
"""
import argparse
import sys

import amt.client
import amt.wsman


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["status", "on", "off", "cycle", "pxe"])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=16992)
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", default="")
    options = parser.parse_args()

    # The library knows ports by protocol only.
    amt.client.AMT_PROTOCOL_PORT_MAP["http"] = options.port
    client = amt.client.Client(options.host, options.password, options.user)
    if options.command == "status":
        value = client.power_status()
        print(value, amt.wsman.friendly_power_state(value))
        return 0
    if options.command == "pxe":
        client.pxe_next_boot()
        print("armed")
        return 0
    command = {"on": client.power_on, "off": client.power_off, "cycle": client.power_cycle}[options.command]
    accepted = command() == 0
    print("accepted" if accepted else "refused")
    return 0 if accepted else 2


sys.exit(main())
