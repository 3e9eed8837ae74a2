# A small network: two houses and a shop share 100 Mbit/s down and 20 Mbit/s up.
tc qdisc add dev eth0 root handle 1: htb default 99 r2q 100
tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit
tc class add dev eth0 parent 1:1 classid 1:2 htb rate 8mbit ceil 12mbit
tc class add dev eth0 parent 1:2 classid 1:10 htb rate 3mbit ceil 12mbit burst 15k
tc class add dev eth0 parent 1:2 classid 1:11 htb rate 5mbit ceil 12mbit prio 1
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbps ceil 20mbit
tc class add dev eth0 parent 1:1 classid 1:99 htb rate 512kbit ceil 2mbit
tc qdisc add dev eth0 parent 1:10 handle 10: fq_codel limit 600 flows 256 target 8ms noecn
tc qdisc add dev eth0 parent 1:11 handle 11: codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.1.0.0/28 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.1.0.16/28 flowid 1:11
tc filter add dev eth0 parent 1: protocol ipv6 prio 2 u32 match ip6 src 2001:db8:1::/56 flowid 1:11
tc filter add dev eth0 parent 1: protocol ip prio 3 flower src_ip 10.2.0.0/16 classid 1:20
tc filter add dev eth0 parent 1: protocol ip prio 4 u32 match ip dport 53 0xffff flowid 1:10
tc qdisc add dev ifb0 root handle 2: htb default 99
tc class add dev ifb0 parent 2: classid 2:1 htb rate 100mbit
tc class add dev ifb0 parent 2:1 classid 2:10 htb rate 10mbit ceil 60mbit
tc class add dev ifb0 parent 2:1 classid 2:11 htb rate 20mbit ceil 60mbit
tc class add dev ifb0 parent 2:1 classid 2:20 htb rate 40mbit ceil 100mbit
tc filter add dev ifb0 parent 2: protocol ip prio 1 u32 match ip dst 10.1.0.0/28 flowid 2:10
tc filter add dev ifb0 parent 2: protocol ip prio 1 u32 match ip dst 10.1.0.16/28 flowid 2:11
tc filter add dev ifb0 parent 2: protocol ipv6 prio 2 u32 match ip6 dst 2001:db8:1::/56 flowid 2:11
tc filter add dev ifb0 parent 2: protocol ip prio 3 flower dst_ip 10.2.0.0/16 classid 2:20
