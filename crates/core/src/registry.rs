//! Every algorithm by name. Listings on the command line, the parsing of scenarios, tables in the documentation and the
//! bindings read this registry. A new algorithm needs its file and one line in the `registry!` table below.

pub mod before;
#[macro_use]
mod macros;
mod outside;
mod per_flow;
pub mod tree;

pub use per_flow::PerFlow;

use crate::ack_path::AckPath;
use crate::allocation::Members;
use crate::aqm;
use crate::aqm::foreign::{self, AnyForeignAqm};
use crate::config::{AqmConfig, ConfigError, Discipline, FlowQueues, LinkFacts};
use crate::fact::Fact;
use crate::fq;
use crate::judge::{Aqm, Meta};
use crate::listing::{Entry, choice, parameters};
use crate::packet::{FlowId, Packet, TcpView};
use crate::qdisc::{Backlog, Enqueued, PacketObserver, Qdisc, Stats, Verdict};
use crate::queue::Fifo;
use crate::rng::Rng;
use crate::sched::classful::{self, ByName, Layers, Single};
use crate::sched::{drr, kps, lte_bearers, prio, qfq, qfq_plus, sfq, stfq, w2f2q, wf2q_plus};
use crate::units::{Instant, Rate, Span};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

registry! {
    DropTail aqm::droptail::Config, "droptail", "aqm", "no management: packets die only for want of room", "000 §5; Linux pfifo, bfifo";
    Red aqm::red::Config, "red", "aqm", "drops arrivals with a probability that grows with the average queue", "Floyd and Jacobson 1993";
    Ared aqm::ared::Config, "ared", "aqm", "RED that adapts max_p to hold the average between its thresholds", "Floyd, Gummadi, Shenker 2001";
    RedErn aqm::red_ern::Config, "red-ern", "aqm", "RED that marks flows by the rates which their senders tell", "003 §III, §V";
    FengRed aqm::feng_red::Config, "feng-red", "aqm", "RED that scales max_p each time the average crosses a threshold", "Feng, Kandlur, Saha, Shin 1999";
    NonlinearRed aqm::nonlinear_red::Config, "nonlinear-red", "aqm", "RED whose probability rises with the square of the average", "Zhou, Yeung, Li 2006";
    AnAqm aqm::an_aqm::Config, "an-aqm", "aqm", "a neuron learns how errors of queue and rate move the drop probability", "Sun and Zukerman 2007; 001 §2";
    Lindrop aqm::lindrop::Config, "lindrop", "aqm", "drops one packet in so many, ever more often while the average queue grows; no random numbers", "001 §3, Algorithm 1";
    Codel aqm::codel::Config, "codel", "aqm", "drops from the head while the delay stays above a target for an interval", "RFC 8289";
    ModifiedCodel aqm::modified_codel::Config, "modified-codel", "aqm", "CoDel whose drops come at interval / count, with an interval of 30 ms", "Patil 2020 §3.2.2";
    Cobalt aqm::cobalt::Config, "cobalt", "aqm", "CoDel that forgets slowly, and BLUE against flows that do not listen", "Morton 2016; cake (Linux); Patil 2020 §2.3.2";
    Pie aqm::pie::Config, "pie", "aqm", "drops arrivals with a probability that a PI controller sets to hold the delay at a target", "RFC 8033";
    MinstrelPie aqm::minstrel_pie::Config, "minstrel-pie", "aqm", "PIE whose target falls while the link is busy, against unresponsive flows", "004 §4.2";
    Pi2 aqm::pi2::Config, "pi2", "aqm", "a PI controller whose output is squared for classic traffic and doubled for scalable", "De Schepper et al. 2016";
    Green aqm::green::Config, "green", "aqm", "drops each flow at the rate at which TCP's law gives it the fair share", "Feng, Kapadia, Thulasidasan 2002";
    Pi aqm::pi::Config, "pi", "aqm", "steers the drop probability so that the queue settles at a reference length", "Hollot, Misra, Towsley, Gong 2001";
    Rem aqm::rem::Config, "rem", "aqm", "drops by a price that grows with excess input and excess queue", "Athuraliya, Low, Li, Yin 2001";
    Avq aqm::avq::Config, "avq", "aqm", "signals when a virtual queue with less capacity overflows", "Kunniyur and Srikant 2001";
    Blue aqm::blue::Config, "blue", "aqm", "drops with a probability that losses raise and an idle link lowers", "Feng, Shin, Kandlur, Saha 2002";
    Sfb aqm::sfb::Config, "sfb", "aqm", "BLUE for each flow in a few shared bins, with a penalty box for flows that do not react", "Feng, Kandlur, Saha, Shin 2001";
    Qrm crate::ack::qrm::Config, "qrm", "ack-path", "refuses what a node sends beyond its budget; the queue stays below the bandwidth-delay product", "002 §3.1";
    =>
    Pink crate::ack::pink::Config, "pink", "ack-path", "writes each flow's share of the link into the windows of passing ACKs; drops nothing", "000 §3, §4";
    Weir crate::weir::Config, "weir", "ack-path", "no parameters: hosts first, windows for TCP, fair queues with an AQM for all else", "this project";
    Choke aqm::choke::Config, "choke", "aqm", "compares an arrival with a packet drawn from the queue and drops both if of one flow", "Pan, Prabhakar, Psounis 2000";
    DualPi2 aqm::dualpi2::Config, "dualpi2", "aqm", "PI2 with a queue of its own for L4S traffic, coupled to the classic one", "RFC 9332";
    FqCodel fq::Config<aqm::codel::Config>, "fq-codel", "flow-queueing", "a queue with CoDel for each flow; flows take turns, new ones first", "RFC 8290";
    FqCobalt fq::Config<aqm::cobalt::Config>, "fq-cobalt", "flow-queueing", "a queue with COBALT for each flow; flows take turns, new ones first", "cake (Linux); RFC 8290";
    FqPie fq::Config<aqm::pie::Config>, "fq-pie", "flow-queueing", "a queue with PIE for each flow; flows take turns, new ones first", "Patil 2020 §5.2; Al-Saadi and Armitage 2016";
    FqMinstrelPie fq::Config<aqm::minstrel_pie::Config>, "fq-minstrel-pie", "flow-queueing", "a queue with Minstrel PIE for each flow; flows take turns, new ones first", "Patil 2020 §5.3";
    Fq fq::Config<PerFlow>, "fq", "flow-queueing", "a queue for each flow, with any AQM by name; flows take turns, new ones first", "RFC 8290 §3; Patil 2020 §5.1";
    Cake fq::cake::Config, "cake", "flow-queueing", "a shaper, tins by Diffserv, and queues with COBALT, fair to hosts first and to their flows second", "Høiland-Jørgensen, Täht, Morton 2018; Linux sch_cake";
    Drr classful::Config<Single<drr::Config>>, "drr", "scheduler", "classes take turns of as many bytes as their weight", "Shreedhar and Varghese 1996";
    Prio classful::Config<Single<prio::Config>>, "prio", "scheduler", "strict priority: the largest weight first", "Linux sch_prio";
    Sfq classful::Config<Single<sfq::Config>>, "sfq", "scheduler", "classes are hashed to buckets, buckets take turns", "McKenney 1990";
    Stfq classful::Config<Single<stfq::Config>>, "stfq", "scheduler", "the least virtual start first", "Goyal, Vin, Cheng 1996";
    Wf2qPlus classful::Config<Single<wf2q_plus::Config>>, "wf2q-plus", "scheduler", "of what a fluid system would have begun, what it would finish first", "Bennett and Zhang 1997";
    Kps classful::Config<Single<kps::Config>>, "kps", "scheduler", "WF2Q+ with timer wheels for strata of weights", "after Karsten 2006, 2010";
    Qfq classful::Config<Single<qfq::Config>>, "qfq", "scheduler", "WF2Q+ with rounded timestamps, in a fixed number of steps", "Checconi, Rizzo, Valente 2013";
    QfqPlus classful::Config<Single<qfq_plus::Config>>, "qfq-plus", "scheduler", "QFQ over groups of classes with DRR inside", "Valente 2013";
    W2f2q classful::Config<Single<w2f2q::Config>>, "w2f2q", "scheduler", "WF2Q+ that skips stations with a bad channel and makes up for it later", "after Yi and others 2000";
    LteBearers lte_bearers::Config, "lte-bearers", "scheduler", "guaranteed bit rates first, then bearers by priority, then the excess of guarantees", "002 §2.1.2.2; 3GPP TS 36.321 §5.4.3.1";
    Hfs classful::Config<Layers<qfq_plus::Config, qfq_plus::Config>>, "hfs", "scheduler", "two QFQ+ with a buffer between them: guarantees first, then the channel", "002 §4.2.4.3";
    HfsDrr classful::Config<Layers<qfq_plus::Config, drr::Config>>, "hfs-drr", "scheduler", "HFS with DRR beside the channel", "002 §4.3.3.3";
    DoubleDrr classful::Config<Layers<drr::Config, drr::Config>>, "double-drr", "scheduler", "the modular wireless architecture with DRR in both layers", "002 §4.2.5";
    DoubleWf2qPlus classful::Config<Layers<wf2q_plus::Config, wf2q_plus::Config>>, "double-wf2q-plus", "scheduler", "the modular wireless architecture with WF2Q+ in both layers", "002 §4.2.5";
    Modular classful::Config<ByName>, "modular", "scheduler", "the modular wireless architecture with any two schedulers by name", "002 §4.1.2";
}

/// The entries of all disciplines, of the packet schedulers which are no disciplines, and of all congestion controls.
pub fn all_entries() -> Vec<Entry> {
    let mut all = entries();
    all.extend(crate::sched::table::entries().into_iter().filter(|entry| !NAMES.contains(&entry.name)));
    all.extend(crate::cc::entries());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::rng::Streams;
    use crate::units::{Bytes, Limit, Rate};

    #[test]
    fn every_default_is_valid_and_documented() {
        for entry in entries() {
            AnyConfig::default_of(entry.name).unwrap().validate().unwrap();
            for parameter in entry.parameters {
                assert!(!parameter.about.is_empty(), "{}.{} has no description", entry.name, parameter.name);
            }
        }
    }

    /// Beyond twice the upper threshold of 15 packets all drops are forced; between the thresholds none is. A packet that
    /// found no room restarts the count of RED as a drop does: if that happens before every arrival the count is 1, and
    /// the gaps between drops, uniform in 1..1/pb - 1, are geometric with the mean (1 - pb) / pb, about twice as long.
    #[test]
    fn every_form_of_red_tells_forced_drops_and_counts_overflows() {
        let link = LinkFacts { rate: Rate::from_bps(1_000_000), limit: Limit::Packets(10_000) };
        let packet = Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(0) };
        for name in ["red", "ared", "red-ern", "feng-red", "nonlinear-red"] {
            let (mut rng, mut now) = (Streams::new(1).get(name), Instant::ZERO);
            let mut drops = |aqm: &mut AnyAqm, packets, arrivals: u32, overflows: bool| {
                let mut is_dropped = |_: &u32| {
                    now += Span::from_millis(1);
                    if overflows {
                        aqm.on_overflow(now);
                    }
                    let backlog = Backlog { packets, bytes: packets * 1000 };
                    aqm.on_enqueue(&packet, backlog, now, &mut rng) == Verdict::Drop
                };
                (0..arrivals).filter(&mut is_dropped).count()
            };
            let mut aqm = AnyAqmConfig::per_flow(name).unwrap().aqm(&link);
            drops(&mut aqm, 10, 20_000, false); // the average settles at 10
            let (alone, after) = (drops(&mut aqm, 10, 30_000, false), drops(&mut aqm, 10, 30_000, true));
            assert!(alone > 500 && !aqm.was_forced(), "{name}: {alone}");
            assert!((0.4..0.65).contains(&(after as f64 / alone as f64)), "{name}: {after} of {alone}");
            assert!(drops(&mut aqm, 1000, 10_000, false) > 9900 && aqm.was_forced(), "{name}");
        }
    }
}
