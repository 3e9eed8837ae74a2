// A dumbbell in ns-3: bulk TCP senders over one bottleneck, what the run cost and what it measured.
//
//   client i --- left ===bottleneck=== right --- server i
//
// Prints one line of JSON. `penstock verify speed` builds this program and gives it the numbers of bench/scenarios;
// `penstock verify ns3` gives it those of drawn networks, and any [tcp] that ns-3's sockets can follow. What ns-3 spends
// beyond the packets is kept small, so that the comparison of speeds is in its favour where it is not even:
//
// - Gateways look routes up by index, in constant time. ns-3's own static and global routing scan a list of all routes
//   for each packet, a cost that grows with the number of pairs.
// - Only the bottleneck has a queue discipline. All other queues are device queues.
// - No flow monitor, no trace file: one counter of packets that leave the bottleneck.
// - `cpu_s` is the time within Simulator::Run. Building the network is not in it.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#ifndef NS3_VERSION_TEXT
#define NS3_VERSION_TEXT "unknown"
#endif

using namespace ns3;

namespace
{

constexpr uint16_t kPort = 5001;
constexpr uint32_t kLeftNet = 0x0a000000;   // 10.0.0.0
constexpr uint32_t kRightNet = 0x0b000000;  // 11.0.0.0
constexpr uint32_t kMiddleNet = 0x0c000000; // 12.0.0.0
// Larger than a SYN or an ACK with all its options, smaller than any segment with payload that a bulk sender sends.
constexpr uint32_t kLargestControl = 100;
constexpr uint32_t kPppHeader = 2;

struct Options
{
    DataRate rate{"10Mbps"};
    Time delay = MilliSeconds(50);
    uint32_t flows = 4;
    Time duration = Seconds(10);
    std::string aqm = "droptail";
    QueueSize limit{"125000B"};
    QueueSize reverseLimit{"1000p"};
    DataRate accessRate{"100Mbps"};
    Time accessDelay = MicroSeconds(1450);
    uint32_t mss = 1448;
    uint32_t sendBuffer = 1000000;
    uint32_t receiveBuffer = 1000000;
    Time minRto = Seconds(1);
    Time delayedAck = MilliSeconds(200);
    uint32_t seed = 1;
    Time startSpread = Seconds(0);
    std::string cc = "newreno";
    bool sack = true;
    bool prr = true;
    bool timestamps = true;
    bool ecn = false;
    bool aqmEcn = false;
    bool limitedTransmit = true;
    bool ackEverySegment = false;
    bool hystart = true;
    uint32_t initialWindow = 10;
    uint32_t initialSsthresh = UINT32_MAX;
    Time hyblaRtt = MilliSeconds(50);
    bool measure = false;
    bool ownDefaults = false;
    std::string scheduler = "ns3::MapScheduler";
    double redMin = 5;
    double redMax = 15;
    double redMaxP = 0.1;
    double redWeight = 0.002;
    uint32_t redMeanPacket = 1000;
    bool redWait = false;
    bool redHardDrop = true;
    bool redGentle = true;
    Time codelTarget = MilliSeconds(5);
    Time codelInterval = MilliSeconds(100);
    Time pieTarget = MilliSeconds(15);
    Time pieTupdate = MilliSeconds(15);
};

void
AddAqmOptions(CommandLine& cmd, Options& o)
{
    cmd.AddValue("red-min", "RED: lower threshold, packets", o.redMin);
    cmd.AddValue("red-max", "RED: upper threshold, packets", o.redMax);
    cmd.AddValue("red-max-p", "RED: probability at the upper threshold", o.redMaxP);
    cmd.AddValue("red-weight", "RED: weight of the newest queue length", o.redWeight);
    cmd.AddValue("red-mean-packet", "RED: mean packet, bytes", o.redMeanPacket);
    cmd.AddValue("red-wait", "RED: space drops at least 1/p apart", o.redWait);
    cmd.AddValue("red-gentle", "RED: gentle form", o.redGentle);
    cmd.AddValue("red-hard-drop", "RED: drop above the hard limit what is marked below it", o.redHardDrop);
    cmd.AddValue("aqm-ecn", "The discipline marks packets that are capable of ECN", o.aqmEcn);
    cmd.AddValue("codel-target", "CoDel: acceptable standing delay", o.codelTarget);
    cmd.AddValue("codel-interval", "CoDel: time above the target", o.codelInterval);
    cmd.AddValue("pie-target", "PIE: reference delay", o.pieTarget);
    cmd.AddValue("pie-tupdate", "PIE: time between two updates of the probability", o.pieTupdate);
}

void
AddTcpOptions(CommandLine& cmd, Options& o)
{
    cmd.AddValue("cc", "Congestion control, as Penstock names it", o.cc);
    cmd.AddValue("sack", "Selective acknowledgments", o.sack);
    cmd.AddValue("prr", "Proportional rate reduction; otherwise classic recovery", o.prr);
    cmd.AddValue("timestamps", "Timestamps", o.timestamps);
    cmd.AddValue("ecn", "ECN (RFC 3168)", o.ecn);
    cmd.AddValue("limited-transmit", "Limited transmit", o.limitedTransmit);
    cmd.AddValue("ack-every-segment", "No delayed ACKs", o.ackEverySegment);
    cmd.AddValue("hystart", "CUBIC: HyStart", o.hystart);
    cmd.AddValue("initial-window", "Segments", o.initialWindow);
    cmd.AddValue("initial-ssthresh", "Bytes", o.initialSsthresh);
    cmd.AddValue("hybla-rtt", "Hybla: reference round trip time", o.hyblaRtt);
}

Options
Parse(int argc, char** argv)
{
    Options o;
    CommandLine cmd(__FILE__);
    cmd.AddValue("rate", "Bottleneck rate, such as 10Mbps", o.rate);
    cmd.AddValue("delay", "Bottleneck delay, one way", o.delay);
    cmd.AddValue("flows", "Pairs of hosts, one flow each", o.flows);
    cmd.AddValue("duration", "Simulated time", o.duration);
    cmd.AddValue("aqm", "droptail, red, ared, codel, pie or fq-codel", o.aqm);
    cmd.AddValue("limit", "Bottleneck queue, such as 125000B or 1000p", o.limit);
    cmd.AddValue("reverse-limit", "Queue of the way back", o.reverseLimit);
    cmd.AddValue("access-rate", "Rate of each host's link", o.accessRate);
    cmd.AddValue("access-delay", "Delay of each host's link", o.accessDelay);
    cmd.AddValue("mss", "Payload of a segment, bytes", o.mss);
    cmd.AddValue("send-buffer", "Bytes", o.sendBuffer);
    cmd.AddValue("receive-buffer", "Bytes", o.receiveBuffer);
    cmd.AddValue("min-rto", "Least retransmission timeout", o.minRto);
    cmd.AddValue("delayed-ack", "Longest wait of an ACK", o.delayedAck);
    cmd.AddValue("seed", "Random numbers", o.seed);
    cmd.AddValue("start-spread", "Flows start uniformly within this time", o.startSpread);
    cmd.AddValue("scheduler", "ns-3's event queue", o.scheduler);
    cmd.AddValue("own-defaults", "Leave all attributes of TCP and of the discipline as ns-3 has them", o.ownDefaults);
    cmd.AddValue("measure", "Measure queueing delays, which costs time", o.measure);
    AddTcpOptions(cmd, o);
    AddAqmOptions(cmd, o);
    cmd.Parse(argc, argv);
    return o;
}

// Routes of one node by index: a host has one way out, a gateway knows its hosts by the number of the pair.
class PairRouting : public Ipv4RoutingProtocol
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("PairRouting").SetParent<Ipv4RoutingProtocol>().AddConstructor<PairRouting>();
        return tid;
    }

    // Everything that has no route of its own.
    void SetDefault(Ptr<Ipv4Route> route) { m_default = route; }

    // The way to the hosts of a network, by number of the pair.
    void SetHosts(uint32_t network, std::vector<Ptr<Ipv4Route>> routes)
    {
        m_network = network;
        m_hosts = std::move(routes);
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& header, Ptr<NetDevice>,
                               Socket::SocketErrno& error) override
    {
        error = Socket::ERROR_NOTERROR;
        return Find(header.GetDestination());
    }

    bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
                    UnicastForwardCallback forward, MulticastForwardCallback, LocalDeliverCallback deliver,
                    ErrorCallback) override
    {
        // Nothing is sent to a gateway itself.
        if (m_hosts.empty())
        {
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
        }
        else
        {
            forward(Find(header.GetDestination()), packet, header);
        }
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void SetIpv4(Ptr<Ipv4> ipv4) override { m_ipv4 = ipv4; }
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

  private:
    Ptr<Ipv4Route> Find(Ipv4Address to) const
    {
        const uint32_t index = (to.Get() - m_network) / 4; // wraps for other networks
        return index < m_hosts.size() ? m_hosts[index] : m_default;
    }

    Ptr<Ipv4> m_ipv4;
    uint32_t m_network = 0;
    std::vector<Ptr<Ipv4Route>> m_hosts;
    Ptr<Ipv4Route> m_default;
};

class PairRoutingHelper : public Ipv4RoutingHelper
{
  public:
    PairRoutingHelper* Copy() const override { return new PairRoutingHelper(*this); }
    Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override { return CreateObject<PairRouting>(); }
};

Ptr<PairRouting>
RoutingOf(Ptr<Node> node)
{
    return DynamicCast<PairRouting>(node->GetObject<Ipv4>()->GetRoutingProtocol());
}

// Gives a device its address; returns the route that leaves through it.
Ptr<Ipv4Route>
Address(Ptr<NetDevice> device, uint32_t address)
{
    auto ipv4 = device->GetNode()->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(address), Ipv4Mask("/30")));
    ipv4->SetUp(interface);
    auto route = Create<Ipv4Route>();
    route->SetSource(Ipv4Address(address));
    route->SetGateway(Ipv4Address(address ^ 3)); // the other end has .1 or .2 as well
    route->SetOutputDevice(device);
    return route;
}

struct Network
{
    NodeContainer clients;
    NodeContainer servers;
    NodeContainer gateways;
    Ptr<PointToPointNetDevice> bottleneck;
    Ptr<PointToPointNetDevice> back;
    Ptr<QueueDisc> queue;
    std::vector<Ptr<PointToPointNetDevice>> access;
    ApplicationContainer sinks;
};

// Penstock's names of controls, and ns-3's. Its TcpNewReno grows per ACK; the form that counts bytes, as Penstock's does,
// is called TcpLinuxReno.
const std::map<std::string, std::string> kControls = {
    {"newreno", "ns3::TcpLinuxReno"},   {"cubic", "ns3::TcpCubic"}, {"bic", "ns3::TcpBic"},
    {"newreno-acks", "ns3::TcpNewReno"},
    {"highspeed", "ns3::TcpHighSpeed"}, {"hybla", "ns3::TcpHybla"}, {"scalable", "ns3::TcpScalable"},
    {"vegas", "ns3::TcpVegas"},         {"bbr", "ns3::TcpBbr"},
};

void
SetTcp(const Options& o)
{
    const auto type = kControls.find(o.cc);
    if (type == kControls.end())
    {
        NS_FATAL_ERROR("--cc=" << o.cc << ": ns-3 has no such control");
    }
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(type->second)));
    if (o.ownDefaults)
    {
        return;
    }
    const std::string recovery = o.prr ? "ns3::TcpPrrRecovery" : "ns3::TcpClassicRecovery";
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName(recovery)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(o.mss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(o.sendBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(o.receiveBuffer));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(o.minRto));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(o.delayedAck));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(o.ackEverySegment ? 1 : 2));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(o.initialWindow));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(o.initialSsthresh));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(o.sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(o.timestamps));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(o.limitedTransmit));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(o.hystart));
    Config::SetDefault("ns3::TcpHybla::RRTT", TimeValue(o.hyblaRtt));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", EnumValue(o.ecn ? TcpSocketState::On : TcpSocketState::Off));
    // The rest are ns-3's defaults: window scaling, no pacing.
}

std::string
Text(Time time)
{
    return std::to_string(time.GetMicroSeconds()) + "us";
}

// A discipline of which only the limit and the link are told.
void
SetOwnQueue(TrafficControlHelper& tch, const Options& o)
{
    const std::map<std::string, std::string> kinds = {
        {"droptail", "ns3::FifoQueueDisc"}, {"codel", "ns3::CoDelQueueDisc"}, {"pie", "ns3::PieQueueDisc"}};
    const auto kind = kinds.find(o.aqm);
    if (kind != kinds.end())
    {
        tch.SetRootQueueDisc(kind->second, "MaxSize", QueueSizeValue(o.limit));
    }
    else if (o.aqm == "red" || o.aqm == "ared")
    {
        tch.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", QueueSizeValue(o.limit), "LinkBandwidth",
                             DataRateValue(o.rate), "LinkDelay", TimeValue(o.delay), "ARED",
                             BooleanValue(o.aqm == "ared"));
    }
    else
    {
        NS_FATAL_ERROR("--aqm=" << o.aqm << ": with its own defaults droptail, red, ared, codel or pie");
    }
}

void
SetQueue(TrafficControlHelper& tch, const Options& o)
{
    if (o.ownDefaults)
    {
        SetOwnQueue(tch, o);
        return;
    }
    if (o.aqm == "droptail")
    {
        tch.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", QueueSizeValue(o.limit));
    }
    else if (o.aqm == "codel")
    {
        tch.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", QueueSizeValue(o.limit), "Target",
                             TimeValue(o.codelTarget), "Interval", TimeValue(o.codelInterval), "UseEcn",
                             BooleanValue(o.aqmEcn));
    }
    else if (o.aqm == "red")
    {
        tch.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", QueueSizeValue(o.limit), "MinTh", DoubleValue(o.redMin),
                             "MaxTh", DoubleValue(o.redMax), "LInterm", DoubleValue(1.0 / o.redMaxP), "QW",
                             DoubleValue(o.redWeight), "MeanPktSize", UintegerValue(o.redMeanPacket), "Wait",
                             BooleanValue(o.redWait), "Gentle", BooleanValue(o.redGentle), "UseEcn",
                             BooleanValue(o.aqmEcn), "UseHardDrop", BooleanValue(o.redHardDrop), "LinkBandwidth",
                             DataRateValue(o.rate), "LinkDelay", TimeValue(o.delay));
    }
    else if (o.aqm == "pie")
    {
        tch.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", QueueSizeValue(o.limit), "QueueDelayReference",
                             TimeValue(o.pieTarget), "Tupdate", TimeValue(o.pieTupdate), "UseDerandomization",
                             BooleanValue(true), "UseEcn", BooleanValue(o.aqmEcn));
    }
    else if (o.aqm == "fq-codel")
    {
        tch.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", QueueSizeValue(o.limit), "Target",
                             StringValue(Text(o.codelTarget)), "Interval", StringValue(Text(o.codelInterval)));
    }
    else
    {
        NS_FATAL_ERROR("--aqm=" << o.aqm << ": droptail, red, codel, pie or fq-codel");
    }
}

// The bottleneck; its device holds one packet, so that all others wait in the queue discipline.
void
Bottleneck(Network& net, const Options& o)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(o.rate));
    link.SetChannelAttribute("Delay", TimeValue(o.delay));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize("1p")));
    auto devices = link.Install(net.gateways);
    net.bottleneck = DynamicCast<PointToPointNetDevice>(devices.Get(0));
    net.back = DynamicCast<PointToPointNetDevice>(devices.Get(1));
    net.back->GetQueue()->SetMaxSize(o.reverseLimit);
    TrafficControlHelper tch;
    SetQueue(tch, o);
    auto routeRight = Address(devices.Get(0), kMiddleNet + 1);
    auto routeLeft = Address(devices.Get(1), kMiddleNet + 2);
    net.queue = tch.Install(devices.Get(0)).Get(0);
    RoutingOf(net.gateways.Get(0))->SetDefault(routeRight);
    RoutingOf(net.gateways.Get(1))->SetDefault(routeLeft);
}

// The links of the hosts of one side.
void
Access(Network& net, const Options& o, const NodeContainer& hosts, Ptr<Node> gateway, uint32_t network)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(o.accessRate));
    link.SetChannelAttribute("Delay", TimeValue(o.accessDelay));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize("1000000p")));
    std::vector<Ptr<Ipv4Route>> routes;
    for (uint32_t i = 0; i < hosts.GetN(); ++i)
    {
        auto devices = link.Install(hosts.Get(i), gateway);
        RoutingOf(hosts.Get(i))->SetDefault(Address(devices.Get(0), network + 4 * i + 1));
        routes.push_back(Address(devices.Get(1), network + 4 * i + 2));
        net.access.push_back(DynamicCast<PointToPointNetDevice>(devices.Get(0)));
        net.access.push_back(DynamicCast<PointToPointNetDevice>(devices.Get(1)));
    }
    RoutingOf(gateway)->SetHosts(network, std::move(routes));
}

// Timeouts of the senders: how often one of them entered the state Loss.
uint64_t g_timeouts = 0;

void
CongestionState(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
{
    g_timeouts += now == TcpSocketState::CA_LOSS;
}

// The socket of an application exists from its start on.
void
WatchTimeouts(uint32_t node)
{
    Config::ConnectWithoutContext("/NodeList/" + std::to_string(node) +
                                      "/$ns3::TcpL4Protocol/SocketList/*/CongState",
                                  MakeCallback(&CongestionState));
}

void
Applications(Network& net, const Options& o)
{
    auto uniform = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < o.flows; ++i)
    {
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
        net.sinks.Add(sink.Install(net.servers.Get(i)));
        InetSocketAddress to(Ipv4Address(kRightNet + 4 * i + 1), kPort);
        BulkSendHelper bulk("ns3::TcpSocketFactory", to);
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        // Whole segments, so that the send buffer neither splits nor joins.
        bulk.SetAttribute("SendSize", UintegerValue(o.mss));
        auto app = bulk.Install(net.clients.Get(i));
        const Time start = Seconds(uniform->GetValue(0.0, o.startSpread.GetSeconds()));
        app.Start(start);
        if (o.measure)
        {
            Simulator::Schedule(start + NanoSeconds(1), &WatchTimeouts, net.clients.Get(i)->GetId());
        }
    }
}

Network
Build(const Options& o)
{
    Network net;
    net.clients.Create(o.flows);
    net.servers.Create(o.flows);
    net.gateways.Create(2);
    InternetStackHelper stack;
    PairRoutingHelper routing;
    stack.SetRoutingHelper(routing);
    stack.SetIpv6StackInstall(false);
    stack.Install(net.clients);
    stack.Install(net.servers);
    stack.Install(net.gateways);
    Bottleneck(net, o);
    Access(net, o, net.clients, net.gateways.Get(0), kLeftNet);
    Access(net, o, net.servers, net.gateways.Get(1), kRightNet);
    Applications(net, o);
    return net;
}

// What left the bottleneck.
struct Counter
{
    uint64_t packets = 0;
    uint64_t bytes = 0;

    void Sent(Ptr<const Packet> packet)
    {
        const uint32_t size = packet->GetSize() - kPppHeader;
        packets += size > kLargestControl;
        bytes += size;
    }
};

// How long packets with data waited: from the queue discipline's taking them until their transmission begins, which is
// after the place in the device.
struct Delays
{
    std::unordered_map<uint64_t, Time> since;
    double sumMs = 0;
    uint64_t packets = 0;

    void Enqueued(Ptr<const QueueDiscItem> item)
    {
        since[item->GetPacket()->GetUid()] = Simulator::Now();
    }

    void Begun(Ptr<const Packet> packet)
    {
        const auto found = since.find(packet->GetUid());
        if (found == since.end())
        {
            return;
        }
        if (packet->GetSize() > kLargestControl)
        {
            sumMs += (Simulator::Now() - found->second).GetSeconds() * 1e3;
            ++packets;
        }
        since.erase(found);
    }

    double MeanMs() const { return packets == 0 ? 0 : sumMs / double(packets); }
};

double
CpuSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool
FileContains(const std::string& path, const std::string& text)
{
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return bytes.find(text) != std::string::npos;
}

// The library was built apart from this file, so macros here say nothing of it: what was loaded is looked at.
std::string
LibraryBuild()
{
    std::string path;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; path.empty() && std::getline(maps, line);)
    {
        const auto start = line.find('/');
        if (start != std::string::npos && line.find("-internet", start) != std::string::npos)
        {
            path = line.substr(start);
        }
    }
    const auto* components = LogComponent::GetComponentList();
    const bool logging = components->find("TcpSocketBase") != components->end();
    std::string build = logging ? "logging compiled in" : "no logging";
    if (!path.empty())
    {
        build += FileContains(path, "assert failed. cond=\"") ? ", assertions compiled in" : ", no assertions";
    }
    return build;
}

std::string
ProgramBuild()
{
    std::string build;
#ifdef NS3_LOG_ENABLE
    build += "logging";
#else
    build += "no logging";
#endif
#ifdef NS3_ASSERT_ENABLE
    build += ", assertions";
#else
    build += ", no assertions";
#endif
    return build;
}

uint64_t
AccessDrops(const Network& net)
{
    uint64_t drops = net.back->GetQueue()->GetTotalDroppedPackets();
    for (const auto& device : net.access)
    {
        drops += device->GetQueue()->GetTotalDroppedPackets();
    }
    return drops;
}

void
Print(const Network& net, const Options& o, const Counter& sent, const Delays& delays, double cpu, double wall)
{
    uint64_t delivered = 0;
    for (uint32_t i = 0; i < net.sinks.GetN(); ++i)
    {
        delivered += DynamicCast<PacketSink>(net.sinks.Get(i))->GetTotalRx();
    }
    const double seconds = o.duration.GetSeconds();
    std::cout.precision(9);
    std::cout << "{\"packets\": " << sent.packets << ", \"cpu_s\": " << cpu << ", \"wall_s\": " << wall
              << ", \"goodput_bps\": " << double(delivered) * 8 / seconds
              << ", \"utilization\": " << double(sent.bytes) * 8 / seconds / double(o.rate.GetBitRate())
              << ", \"events\": " << Simulator::GetEventCount()
              << ", \"drops\": " << net.queue->GetStats().nTotalDroppedPackets
              << ", \"queue_delay_ms\": " << delays.MeanMs()
              << ", \"marks\": " << net.queue->GetStats().nTotalMarkedPackets << ", \"timeouts\": " << g_timeouts
              << ", \"drops_elsewhere\": " << AccessDrops(net) << ", \"version\": \"" << NS3_VERSION_TEXT
              << "\", \"build\": \"library: " << LibraryBuild() << "; program: " << ProgramBuild() << "\"}"
              << std::endl;
}

} // namespace

int
main(int argc, char** argv)
{
    const Options o = Parse(argc, argv);
    RngSeedManager::SetRun(o.seed);
    GlobalValue::Bind("SchedulerType", StringValue(o.scheduler));
    SetTcp(o);
    const Network net = Build(o);
    Counter sent;
    net.bottleneck->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Counter::Sent, &sent));
    Delays delays;
    if (o.measure)
    {
        net.queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Delays::Enqueued, &delays));
        net.bottleneck->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Delays::Begun, &delays));
    }
    Simulator::Stop(o.duration);
    const auto wall = std::chrono::steady_clock::now();
    const double cpu = CpuSeconds();
    Simulator::Run();
    const double cpuUsed = CpuSeconds() - cpu;
    const std::chrono::duration<double> wallUsed = std::chrono::steady_clock::now() - wall;
    Print(net, o, sent, delays, cpuUsed, wallUsed.count());
    Simulator::Destroy();
    return 0;
}
