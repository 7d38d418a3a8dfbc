#!/usr/bin/env python3
"""PyPI `powerctl` 0.1.3, its AMT driver alone, on the command line. It ignores ReturnValues and knows no network boot."""
import argparse
import asyncio

import powerctl.core.host as hosts
from powerctl.drivers.amt import AMTDriver


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["status", "on", "off", "cycle", "reset"])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=16992)
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", default="")
    options = parser.parse_args()

    credentials = getattr(hosts, "Credentials", None) or getattr(hosts, "HostCredentials")
    driver = AMTDriver(hosts.Host(
        hostname=options.host,
        protocol="amt",
        port=options.port,
        credentials=credentials(username=options.user, password=options.password),
        extra={"tls": False},
    ))
    call = {
        "status": driver.status,
        "on": driver.power_on,
        "off": driver.power_off,
        "cycle": driver.power_cycle,
        "reset": driver.reboot,
    }[options.command]
    print(asyncio.run(call()))


main()
