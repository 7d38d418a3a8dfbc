"""Debian's cloud-init as a client: its own search for a data source, with folders and settings of the test.

usage: datasource.py <request JSON>
  source    "Ec2" or "NoCloud"
  folder    where cloud-init may write; its seed folder is <folder>/seed
  settings  what /etc/cloud would say of that data source
  aws       firmware says that this is EC2: cloud-init then insists on IMDSv2
  local     before the network is up, from the seed folder only
  macs      {mac: name} of the network cards
Prints what cloud-init found as one JSON object, or {"found": false}; its log goes to stderr.
"""
import base64
import json
import logging
import os
import sys

from cloudinit import distros, helpers, sources
from cloudinit.net import network_state
from cloudinit.reporting import events
from cloudinit.sources import DataSourceEc2

REQUEST = json.loads(sys.argv[1])


def b64(value):
    if value is None:
        return None
    return base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()


def pretend_firmware():
    """The test's machine has firmware of its own; only what it says is replaced, never what is made of it."""
    uuid = "ec2e1916-9099-7caf-fd21-012345abcdef" if REQUEST.get("aws") else "4c4c4544-0042-3510-8052-b4c04f4a4c31"
    said = {"uuid": uuid, "uuid_source": "dmi", "serial": uuid, "asset_tag": "", "vendor": "", "product_name": ""}
    DataSourceEc2._collect_platform_data = lambda: said


def networks(config):
    """The network as cloud-init's renderers would be handed it."""
    if not config:
        return None
    state = network_state.parse_net_config_data(config)
    return [
        {
            "name": one["name"],
            "mac": one.get("mac_address"),
            "subnets": [
                {
                    "type": subnet["type"],
                    "address": "%s/%s" % (subnet["address"], subnet["prefix"]) if "address" in subnet else None,
                    "nameservers": subnet.get("dns_nameservers", []),
                }
                for subnet in one["subnets"]
            ],
            "routes": [
                "%s/%s via %s" % (route["network"], route["prefix"], route["gateway"])
                for subnet in one["subnets"]
                for route in subnet.get("routes", [])
            ],
        }
        for one in state.iter_interfaces()
    ]


def main():
    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG, force=True)
    pretend_firmware()
    paths = helpers.Paths({"cloud_dir": REQUEST["folder"], "run_dir": os.path.join(REQUEST["folder"], "run")})
    os.makedirs(paths.run_dir, exist_ok=True)
    distro = distros.fetch("debian")("debian", {}, paths)
    needs = [sources.DEP_FILESYSTEM] + ([] if REQUEST.get("local") else [sources.DEP_NETWORK])
    settings = {"datasource": {REQUEST["source"]: REQUEST["settings"]}}
    reporter = events.ReportEventStack("test", "test", reporting_enabled=False)
    try:
        found, name = sources.find_source(settings, distro, paths, needs, [REQUEST["source"]], ["cloudinit.sources"], reporter)
    except sources.DataSourceNotFoundException:
        print(json.dumps({"found": False}))
        return
    metadata = found.metadata
    network = None
    if REQUEST["source"] == "NoCloud":
        network = found.network_config
    elif metadata.get("network"):
        network = DataSourceEc2.convert_ec2_metadata_network_config(metadata["network"], macs_to_nics=REQUEST.get("macs"))
    print(
        json.dumps(
            {
                "found": True,
                "name": name,
                "instanceId": found.get_instance_id(),
                "hostname": found.get_hostname().hostname,
                "zone": found.availability_zone,
                "keys": found.get_public_ssh_keys(),
                "userData": b64(found.get_userdata_raw()),
                "vendorData": b64(found.get_vendordata_raw()),
                "metadata": metadata,
                "network": network,
                "networks": networks(network),
                "token": bool(getattr(found, "_api_token", None)),
            }
        )
    )


main()
