tc qdisc add dev eth0 root handle 1: netem delay 50ms 5ms 25% distribution normal loss gemodel 1% 30% 70% 0.1% duplicate 0.5% limit 2000
tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 10mbit burst 32kbit latency 50ms
tc qdisc add dev eth0 parent 10:1 handle 100: pie limit 300 target 20ms alpha 3
tc qdisc add dev ifb0 root netem delay 30ms reorder 25% 50% loss 2% rate 40mbit 44 48 5 corrupt 0.1%
