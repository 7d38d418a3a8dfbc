#!/usr/bin/env python3
"""How long one network boot order takes these clients, in one process: JSON of milliseconds, one number a round.

sdague    ChangeBootOrder, SetBootConfigRole, RequestPowerStateChange; every request logs in anew
powerctl  RequestPowerStateChange alone: it knows no network boot
The machine is switched off before each round through the simulator's control page, which is not counted.
"""
import argparse
import asyncio
import json
import time
import urllib.request

import amt.client
import powerctl.core.host as hosts
from powerctl.drivers.amt import AMTDriver


def switch_off(url):
    request = urllib.request.Request(url, data=b'{"power": "off-soft"}', headers={"Content-Type": "application/json"}, method="POST")
    urllib.request.urlopen(request, timeout=10).read()


def sdague(options):
    amt.client.AMT_PROTOCOL_PORT_MAP["http"] = options.port
    client = amt.client.Client(options.host, options.password, options.user)

    def order():
        client.pxe_next_boot()
        if client.power_on() != 0:
            raise SystemExit("refused")

    return order


def powerctl(options):
    credentials = getattr(hosts, "Credentials", None) or getattr(hosts, "HostCredentials")
    driver = AMTDriver(hosts.Host(
        hostname=options.host, protocol="amt", port=options.port,
        credentials=credentials(username=options.user, password=options.password), extra={"tls": False},
    ))
    return lambda: asyncio.run(driver.power_on())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client", choices=["sdague", "powerctl"])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", required=True)
    parser.add_argument("--off-url", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()

    order = {"sdague": sdague, "powerctl": powerctl}[options.client](options)
    took = []
    for _ in range(options.rounds):
        switch_off(options.off_url)
        began = time.monotonic()
        order()
        took.append((time.monotonic() - began) * 1000)
    print(json.dumps(took))


main()
