#!/bin/sh
# The shaper of a home with VDSL2: eth1 is the interface to the modem.
tc qdisc del dev eth1 root 2>/dev/null || true

# Up: 95 % of 40 Mbit/s.
sudo /sbin/tc qdisc add dev eth1 root handle 1: cake bandwidth 38Mbit diffserv4 \
    dual-srchost nat pppoe-ptm ether-vlan ack-filter rtt 80ms memlimit 4Mb

# Down, through an IFB.
modprobe ifb
ip link add ifb4eth1 type ifb
ip link set ifb4eth1 up
tc qdisc add dev eth1 handle ffff: ingress
tc qdisc add dev ifb4eth1 root cake bandwidth 95mbit besteffort wash dual-dsthost ingress conservative overhead 34 ptm
tc filter add dev eth1 parent ffff: protocol all matchall action mirred egress redirect dev ifb4eth1
service dnsmasq restart
