"""What stands below each figure: a title, and how to read it."""

from __future__ import annotations

EXPERIMENT = {
    "delay_throughput": (
        "Throughput of the bottleneck",
        "With headers, over the whole run. The short line in each row is the number of the paper's Table 3 or 4; "
        "DropTail 300, which has LINDROP's buffer, is not in the paper. Further right is better.",
    ),
    "delay_queue": (
        "Queue of the bottleneck",
        "The mean over the whole run, in packets of the mean size. The short line in each row is the number of the "
        "paper's Table 5. All buffers hold 300 packets but that of DropTail, which holds 100.",
    ),
    "queue_time": (
        "Queue over time",
        "The mean queue of each second, in packets of the mean size: 100 connections in the LAN, 10 in WAN_100, 100 in "
        "WAN_300.",
    ),
    "delay_drops": (
        "Who drops with LINDROP",
        "The share of the drops that LINDROP decided on; the others found no room. As published, each step down of "
        "the spacing between drops and one up leave it wider (0.98 x 1.05 > 1); with n_pd = 1.02 they cancel, with "
        "1.005 it becomes narrower.",
    ),
    "lindrop_steps": (
        "LINDROP's steps",
        "Throughput in the LAN with 10 connections, over n_pu and n_pd. A drop is further from the next when the "
        "product of both is larger: to the lower left LINDROP drops much, to the upper right next to nothing.",
    ),
    "lindrop_max": (
        "LINDROP's avg_max",
        "In the LAN with 10 connections: throughput, and the queueing delay from its 10th to its 90th percentile with "
        "a line at the median.",
    ),
    "tempest_smooth": (
        "Smooth arrivals",
        "Time of an enqueue and a dequeue of one packet, the least of the repetitions. The light part of a bar is the "
        "harness, which takes as long without a scheduler; what is above it is the scheduler. Times of two machines "
        "cannot be compared, their ratios can.",
    ),
    "tempest_bursty": (
        "Arrivals in bursts",
        "The same when a flow gets 1 to 2 packets times its weight at once.",
    ),
    "tempest_growth": (
        "Over the number of flows",
        "Time of the scheduler alone. Dashed: a + b log2(n), fitted to what WF²Q+ measured, as its complexity is "
        "O(log n). The others are O(1): what they rise by is what the caches hold no more.",
    ),
    "tempest_bwfi": (
        "How far a flow falls behind its share",
        "B-WFI of the flow of growing weight beside 100 flows of weight 1. Dashed: the worst that theory allows: 1 "
        "packet with WF²Q+, about 5 with QFQ, more with QFQ+ by what aggregates add, and with DRR what follows "
        "from its T-WFI. Lower is better.",
    ),
    "tempest_delay": (
        "The longest wait of the heavy flow",
        "In departures of any flow, of the flow of growing weight. It waits behind its own burst, too, which is as "
        "large as its weight.",
    ),
    "tempest_twfi": (
        "How late a packet may be",
        "T-WFI of the flows of weight 20 whose stations lose at most a fifth: how much later a packet leaves than in a "
        "perfectly fair system. Dashed: the worst that theory allows without a second layer. Lower is better.",
    ),
    "tempest_throughput": (
        "What arrives of what is sent",
        "Normalized throughput over 20 stations whose losses go from 1 to 0.0001. Dashed: what stations above the "
        "threshold get if only these are served, and what is left if nobody looks at the channel. Higher is better.",
    ),
    "c2ml_ends": (
        "When the last of the transfers ends",
        "5 MB for each node. Lines are ours, dots the numbers of the paper's tables, whose runs end at 900 s. Lower is "
        "better.",
    ),
    "c2ml_queue": (
        "Longest queue",
        "Of the same runs, on a logarithmic scale; the buffer holds 4000 kB.",
    ),
    "c2ml_fairness": (
        "Worst fairness",
        "Jain's index of the worst second after ten, in five minutes of bulk flows.",
    ),
    "c2ml_three": (
        "Three nodes that join one after the other",
        "Payload of each second; 1 Mbit/s, a buffer of one bandwidth-delay product.",
    ),
    "c2ml_friends": (
        "Six controls at one link",
        "Payload of each second; each control begins 3 s after the one before.",
    ),
    "qrm_worst": (
        "What is left for the worst good node",
        "What the node with the least delivered, as a part of an even share of the link. Higher is better.",
    ),
    "qrm_queue": (
        "Longest queue",
        "Of the same runs; the dashed line is the bound of Theorem 2.",
    ),
    "qrm_seconds": (
        "One attacker among five nodes",
        "Payload of each second; good nodes thin, the attacker thick.",
    ),
    "dybra_seconds": (
        "Ten clients, half of which have a bad channel from 15 to 45 s",
        "Left: what the bottleneck carried in each second. Right: the longest queue of each second.",
    ),
    "dybra_friends": (
        "Controls whose channels stay good",
        "Payload of each second.",
    ),
    "dybra_scale": (
        "Queue and number of clients",
        "The mean over the run, on a logarithmic scale.",
    ),
    "ways": (
        "Ways to share a satellite link",
        "Goodput of the nodes that obey and have a good channel, as a part of their even share; and the mean queueing "
        "delay.",
    ),
    "hfs_throughput": (
        "What arrives of what is sent, over the buffer",
        "Normalized throughput over 20 stations whose losses go from 1 to 0.0001. Lines with marks have a second layer "
        "that holds up to Q packets; dashed lines have none. Thin lines: HFS with one assumption changed. Dotted: what "
        "stations above the threshold get if only these are served, and what is left if nobody looks at the channel. "
        "Higher is better.",
    ),
    "hfs_guarantees": (
        "How late a packet may be, over the buffer",
        "T-WFI of the flows of weight 20 to stations that lose at most 20 %: how much later a packet leaves than in a "
        "perfectly fair system. Dashed: one layer. Below 0 no packet is ever late. Lower is better.",
    ),
    "hfs_mac_throughput": (
        "Which scheduler beside the radio: throughput",
        "Normalized throughput with QFQ+ in the layer of guarantees and each scheduler in the other, over the packets "
        "that this one holds. Higher is better.",
    ),
    "hfs_mac_delay": (
        "Which scheduler beside the radio: delay",
        "The longest wait of a packet of weight 20 to the station in the best condition, in departures, from its "
        "arrival in the first layer. Lower is better.",
    ),
    "hfs_time": (
        "What two layers cost",
        "Time of the schedulers for a packet, without the harness. Lines with marks have two layers, dashed ones one. "
        "Times of two machines cannot be compared, their ratios can.",
    ),
    "ern_general": (
        "All rates and numbers of flows",
        "Mean and standard deviation over all settings with bulk flows only.",
    ),
    "ern_flows": (
        "Over the number of flows",
        "At 30 Mbit/s: Jain's index of what flows get in the whole run, and the mean queueing time less the target of "
        "14 ms.",
    ),
    "ern_rates": (
        "Over the rate of the bottleneck",
        "With 200 flows: Jain's index of what flows get in the whole run, and the mean queueing time less the target "
        "of 14 ms.",
    ),
    "ern_udp": (
        "Beside UDP flows",
        "50 bulk flows and so many UDP flows of 64 kbit/s at 25 Mbit/s: Jain's index of the bulk flows, and the mean "
        "queueing time less the target of 14 ms. From 400 on the UDP flows alone are more than the link carries.",
    ),
    "ern_http": (
        "Beside HTTP sessions",
        "20 bulk flows and so many sessions at 25 Mbit/s: use of the link, Jain's index of the bulk flows, and the "
        "mean queueing time less the target of 14 ms.",
    ),
    "goodput": (
        "Goodput",
        "Payload that reaches all receivers together in each second. A box spans the 10th to the 90th percentile, "
        "the thick line is the median, the dashed line the most that full frames can carry; a second in which the gap "
        "after a loss is filled can deliver more than the link carried in it. Higher and flatter is better.",
    ),
    "rtt": (
        "Round trip time",
        "Every sample of every flow. A box spans the 10th to the 90th percentile, the thick line is the median; what "
        "lies above the dashed line, the smallest sample of all runs, was spent in the queue. Lower and flatter is "
        "better.",
    ),
    "fairness": (
        "Fairness",
        "Jain's index of the flows' goodput in each second; shown is the worst second of a run after its warm-up. "
        "1 means that all flows get the same.",
    ),
    "data": (
        "Data carried and dropped",
        "Payload that arrived in the whole run, with the dropped payload in black on top of it. The number above a "
        "bar is the dropped payload in percent of what arrived, the dashed line the most that the link can carry.",
    ),
    "shares": (
        "Goodput of four flows",
        "80 MB each, begun 25 s apart, the shortest round trip first. Coloured: payload of each flow in each second; "
        "dark: of all together. Equal shares lie on each other, whatever the round trip time. Seconds above the "
        "frame are those in which the gap after a loss is filled.",
    ),
    "ends": (
        "When the transfers were complete",
        "Each mark is a flow; a cross is one that was not complete when the run ended. Further left is better, and so "
        "is closer together: 320 MB take 269 s of the link at least.",
    ),
    "reallocation": (
        "What becomes of the share that a flow cannot use",
        "Flow 2 goes through a link of 2 Mbit/s that has a PINK of its own. Left, the DSL link's PINK keeps a full "
        "share for it; the others give what it cannot use to the rest.",
    ),
    "corners": (
        "The same with two bad flows",
        "Flow 2 goes through a link of 2 Mbit/s, flow 3 through one of 0.5 Mbit/s, each with a PINK of its own.",
    ),
    "evenness": (
        "Fairness",
        "Jain's index of what flows get in each number of flows, each as a part of its max-min fair share. 1 means "
        "that nobody could get more without taking it from somebody who has less.",
    ),
    "utilization": (
        "Use of the DSL link",
        "Payload of all flows in the last ten seconds of each number of flows, as a part of c times the rate. The "
        "dotted line is what is left when a bad flow takes its corner's rate or its share, whichever is less.",
    ),
    "convergence": (
        "Time to the new rates",
        "From a join until every flow stays within 10 % of the mean that it ends with. Newcomers begin with one "
        "segment, which is most of it; the bad one shows how soon its rest is given on.",
    ),
    "throughput": (
        "Throughput over c",
        "With headers, of each second; a box spans the 10th to the 90th percentile, the thick line is the median. "
        "Windows count payload, so with 1000 B in 1052 B the link is full at c = 0.9506.",
    ),
    "rtt_c": (
        "Round trip time over c",
        "Every sample of every flow. Above c = 0.9506 windows are larger than what the link carries in a round trip; "
        "what is too much waits in the queue.",
    ),
    "joins": (
        "Four flows that come one after the other",
        "Payload of each flow in each second; dark: of all together. A new flow comes every 5 s. Seconds above the "
        "frame are those in which the gap after a loss is filled.",
    ),
    "distances": (
        "Four flows to agencies at different distances",
        "Payload of each flow in each second; dark: of all together. All begin together. Seconds above the "
        "frame are those in which the gap after a loss is filled.",
    ),
    "completion": (
        "The slowest file",
        "Time until the last of some files of 5 MB, all begun together, has arrived. The dotted line is the time that "
        "sending them takes on a link that is never idle.",
    ),
    "segments": (
        "Segments that do not divide a share",
        "64 flows. A share of 1.45 segments is one segment for a sender that sends whole ones only: 31 % of the share "
        "is lost. Windows that alternate between one and two segments give it all.",
    ),
    "udp": (
        "Traffic that obeys no window",
        "Four TCP flows and one UDP stream of constant rate. PINK shares out the whole link unless it is told what to "
        "leave; then the stream finds its room and the queue stays short.",
    ),
    "bursts": (
        "The worst case of Theorem 1",
        "All flows send their whole first window in the same instant; the invariant max_queue stops a run "
        "that exceeds the bandwidth-delay product.",
    ),
    "flood_time": (
        "Eight transfers in a flood",
        "Payload of all transfers together in each second, with 1,000 SYNs per second where the ground is grey.",
    ),
    "flood_cost": (
        "What a flood costs",
        "Payload of all transfers together while the flood lasts. The dashed lines are what is left of the goodput "
        "without a flood when the SYNs have taken theirs.",
    ),
    "queue_counts": (
        "Mean queue",
        "Bytes waiting at the bottleneck, as a mean over time. The dashed line is what 5 ms of the link carry. Left, "
        "the number of TCP flows is varied beside five streams, right the number of streams of 640 kbit/s beside five "
        "TCP flows.",
    ),
    "use_counts": (
        "Use of the link",
        "The same runs. With few flows the link has room: ACKs wait behind the reverse flows in a drop-tail queue.",
    ),
    "window_spread": (
        "How steady the windows are",
        "Variance of the congestion window of a flow, taken at the end of each second, over the square of its mean, "
        "for five flows through half a megabit per second.",
    ),
    "use_time": (
        "Throughput over time",
        "With headers, as means over five seconds, of five flows through half a megabit per second.",
    ),
    "udp_comes": (
        "A UDP flow comes and goes",
        "Five TCP flows; a UDP flow of the link's rate sends in the shaded time. Top: how long packets waited, as a "
        "mean over each second. Bottom: what the link carried.",
    ),
    "delay_cdf": (
        "Delay and use of the link, as distributions",
        "Top: share of packets that waited no longer, from its 10th, 50th, 90th and 99th percentile. Bottom: share of "
        "seconds in which the link carried no more.",
    ),
    "delay_time": (
        "Delay over time",
        "How long packets waited, as a mean over each second. The dashed lines are the bounds of Minstrel PIE's "
        "target; PIE's is the upper one.",
    ),
    "link_time": ("Use of the link over time", "What the link carried in each second, as a part of its rate."),
    "ellipses": (
        "Goodput against delay",
        "An ellipse holds one standard deviation of the seconds of a run around their mean, as RFC 7928 draws them; "
        "the delay is the mean of a second's packets. Delay grows to the left: higher and further right is better.",
    ),
    "ellipses_udp": ("Goodput against delay with one UDP flow", "As above; UDP sends more than the link carries."),
    "ellipses_congestion": (
        "Goodput against delay at three levels of congestion",
        "As above, with as many TCP flows as the law of TCP needs for drops of 0.1, 0.5 and 1 %.",
    ),
    "buffers": (
        "Sizes of the buffer",
        "Top: round trip times, from the 10th to the 90th percentile with a line at the median, on a logarithmic "
        "scale. Bottom: use of the link. CUBIC senders.",
    ),
    "sat_three": (
        "Three transfers of 5 MB",
        "Payload of each second. A large buffer holds 4 MB, a standard one the bandwidth-delay product of 75 kB.",
    ),
    "sat_six": (
        "Six controls, each with a transfer of 5 MB",
        "Payload of each second; the flows begin 3 s apart, in the order of the legend. 2 Mbit/s, a buffer of 4 MB.",
    ),
    "fq_throughput": (
        "TCP beside an unresponsive stream",
        "Payload of each second: TCP flows thin, all of them together thick; grey: the UDP stream, which is on where "
        "the ground is grey and then sends as much as the link has. With flow queueing every flow keeps its part.",
    ),
    "fq_mix": (
        "TCP beside an unresponsive stream, at 10 Mbit/s",
        "Payload of each second: TCP flows thin, all of them together thick; grey: the UDP stream, which is on where "
        "the ground is grey. A second in which the gap after a loss is filled can deliver more than the link carried.",
    ),
    "fq_rtt": (
        "Round trip times of TCP",
        "Every sample of every TCP flow. A box spans the 10th to the 90th percentile, the thick line is the median, "
        "the stroke above the 99th percentile.",
    ),
    "fq_controls": (
        "Two CUBIC flows and two BBR flows",
        "Payload of each flow in each second, and the median of its round trips.",
    ),
    "fq_fairness": (
        "Fairness beside an unresponsive stream",
        "Jain's index of all TCP flows and the stream while it is on. The document does not say how much the stream "
        "sends: left, as much as the link has; right, the rate that its table for PIE suggests.",
    ),
    "fq_call": (
        "A call among bulk transfers",
        "One VoIP stream beside four TCP flows each way. A box spans the 10th to the 90th percentile of its packets' "
        "delay in the queue, in steps of about 1 ms; the stroke is the longest.",
    ),
    "friendliness": (
        "Who shares with whom",
        "Two flows of the control at the left beside two of the control below: percent of the payload of all four "
        "that the two at the left got. 50 is a fair share; vermilion takes, blue gives way. CoDel marks what is "
        "ECN-capable, the flows of DCTCP and Prague; DropTail cannot mark.",
    ),
}
RUN = {
    "network": (
        "Network",
        "Nodes, and which flows begin (before the arrow) and end at them. A dashed link changes while the run goes on; "
        "its numbers are those of the start.",
    ),
    "link_changes": (
        "Links that change",
        "What became of rate, delay (one way) and loss, as far as they change. One line stands for both directions if "
        "they are the same. Of more than 10,000 changes of a link only every second is kept, or fourth, and so on.",
    ),
    "goodput": ("Goodput of the flows", "Payload that reaches a receiver in each second."),
    "queue": ("Bottleneck", "Throughput with headers, and how long packets waited, as means over each second."),
}
