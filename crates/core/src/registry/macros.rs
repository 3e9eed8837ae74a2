//! Macros that expand the table of the registry into enums of configurations, AQMs and disciplines, with their traits.

/// Takes the AQMs first, each of which is a discipline with one queue, and after the arrow the disciplines of several
/// queues.
macro_rules! registry {
    (
        $($aqm:ident $aqm_config:ty, $aqm_name:literal, $aqm_kind:literal, $aqm_about:literal, $aqm_source:literal;)*
        => $($more:tt)*
    ) => {
        aqms! { $($aqm $aqm_config, $aqm_name, $aqm_about;)* }
        impl<P: Packet> AnyQdisc<P> {
            /// Returns the state of the algorithm without its packets, for people to read; its report for a discipline
            /// of several queues.
            pub fn state(&self) -> String {
                match self {
                    $(Self::$aqm(q) => format!("{:?}", q.aqm()),)*
                    Self::Foreign(q) => q.aqm().state(),
                    Self::ForeignScheduler(q) => q.container().scheduler().state(),
                    Self::ForeignAckPath(q) => q.state(),
                    other => other.report().map(|report| report.to_string()).unwrap_or_default(),
                }
            }
        }

        disciplines! {
            $($aqm $aqm_config, $aqm_name, $aqm_kind, $aqm_about, $aqm_source;)*
            $($more)*
        }
    };
}

/// Expands the AQMs, which judge the packets of one queue.
macro_rules! aqms {
    ($($variant:ident $config:ty, $name:literal, $about:literal;)*) => {
        /// The configuration of any AQM of the registry.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum AnyAqmConfig {
            $(#[doc = $about] $variant($config),)*
            /// The configuration of an AQM from outside this crate.
            Foreign(foreign::Config),
        }

        /// Any AQM of the registry, for queues whose AQM is chosen by name.
        #[derive(Debug, Clone)]
        pub enum AnyAqm {
            $(#[doc = $about] $variant(<$config as AqmConfig>::Aqm),)*
            /// An AQM from outside this crate.
            Foreign(AnyForeignAqm),
        }

        impl AnyAqmConfig {
            /// The names of all AQMs.
            pub const NAMES: &[&str] = &[$($name,)*];

            /// The default configuration of `name` as the AQM of a flow queue; `None` if there is no such AQM.
            pub fn per_flow(name: &str) -> Option<Self> {
                let mut queues = FlowQueues::default();
                match name {
                    $($name => Some(Self::$variant(<$config>::per_flow(&mut queues))),)*
                    _ => None,
                }
            }

            /// Reads other parameters of the AQM that this configuration is of.
            ///
            /// # Errors
            /// The errors of the deserializer.
            pub fn read_as_this(&self, parameters: serde_json::Value) -> Result<Self, serde_json::Error> {
                match self {
                    $(Self::$variant(_) => serde_json::from_value(parameters).map(Self::$variant),)*
                    Self::Foreign(config) => {
                        let parameters = serde_json::from_value(parameters)?;
                        Ok(Self::Foreign(foreign::Config::unknown(config.name(), parameters)))
                    }
                }
            }

            /// The name in the registry, or the name of an algorithm from outside.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Foreign(config) => config.name(),
                }
            }

            /// True if the AQM needs to see the segments of both directions.
            pub fn is_ack_path(&self) -> bool {
                match self {
                    $(Self::$variant(config) => config.watches(),)*
                    Self::Foreign(_) => false,
                }
            }

            /// Refuses parameters that do not work.
            ///
            /// # Errors
            /// Names the first parameter that is out of its range.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $(Self::$variant(config) => AqmConfig::validate(config),)*
                    Self::Foreign(_) => Ok(()),
                }
            }

            /// Builds the algorithm for a queue before `link`. Call it only after [`AnyAqmConfig::validate`].
            pub fn aqm(&self, link: &LinkFacts) -> AnyAqm {
                match self {
                    $(Self::$variant(config) => AnyAqm::$variant(config.aqm(link)),)*
                    Self::Foreign(config) => AnyAqm::Foreign(config.aqm(link)),
                }
            }
        }

        impl Aqm for AnyAqm {
            const WAKES: bool = true;

            #[inline]
            fn on_arrival<P: Packet>(&mut self, packet: &P, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
                match self {
                    $(Self::$variant(aqm) => aqm.on_arrival(packet, backlog, now, rng),)*
                    Self::Foreign(aqm) => aqm.on_arrival(packet, backlog, now, rng),
                }
            }
            #[inline]
            fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
                match self {
                    $(Self::$variant(aqm) => aqm.on_enqueue(packet, backlog, now, rng),)*
                    Self::Foreign(aqm) => aqm.on_enqueue(packet, backlog, now, rng),
                }
            }
            #[inline]
            fn on_dequeue(
                &mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng,
            ) -> Verdict {
                match self {
                    $(Self::$variant(aqm) => aqm.on_dequeue(packet, sojourn, backlog, now, rng),)*
                    Self::Foreign(aqm) => aqm.on_dequeue(packet, sojourn, backlog, now, rng),
                }
            }
            fn on_overflow(&mut self, now: Instant) {
                match self {
                    $(Self::$variant(aqm) => aqm.on_overflow(now),)*
                    Self::Foreign(aqm) => aqm.on_overflow(now),
                }
            }
            fn was_forced(&self) -> bool {
                match self {
                    $(Self::$variant(aqm) => aqm.was_forced(),)*
                    Self::Foreign(aqm) => aqm.was_forced(),
                }
            }
            fn drops_head(&self) -> bool {
                match self {
                    $(Self::$variant(aqm) => aqm.drops_head(),)*
                    Self::Foreign(aqm) => aqm.drops_head(),
                }
            }
            fn on_shed(&mut self, backlog: Backlog, now: Instant) {
                match self {
                    $(Self::$variant(aqm) => aqm.on_shed(backlog, now),)*
                    Self::Foreign(aqm) => aqm.on_shed(backlog, now),
                }
            }
            fn wants_whole_backlog(&self) -> bool {
                match self {
                    $(Self::$variant(aqm) => aqm.wants_whole_backlog(),)*
                    Self::Foreign(aqm) => aqm.wants_whole_backlog(),
                }
            }
            fn on_empty(&mut self, now: Instant) {
                match self {
                    $(Self::$variant(aqm) => aqm.on_empty(now),)*
                    Self::Foreign(aqm) => aqm.on_empty(now),
                }
            }
            fn next_wakeup(&self) -> Option<Instant> {
                match self {
                    $(Self::$variant(aqm) => aqm.next_wakeup(),)*
                    Self::Foreign(aqm) => aqm.next_wakeup(),
                }
            }
            fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
                match self {
                    $(Self::$variant(aqm) => aqm.on_wakeup(backlog, now),)*
                    Self::Foreign(aqm) => aqm.on_wakeup(backlog, now),
                }
            }
            fn report(&self) -> Option<serde_json::Value> {
                match self {
                    $(Self::$variant(aqm) => aqm.report(),)*
                    Self::Foreign(aqm) => aqm.report(),
                }
            }
            fn on_fact(&mut self, fact: &Fact, now: Instant) {
                match self {
                    $(Self::$variant(aqm) => aqm.on_fact(fact, now),)*
                    Self::Foreign(aqm) => aqm.on_fact(fact, now),
                }
            }
        }

        /// An AQM that edits segments is refused as the AQM of one flow, so none of these edits segments.
        impl AckPath for AnyAqm {}
    };
}

/// Expands the disciplines: each AQM with one queue, and the disciplines of several queues.
macro_rules! disciplines {
    ($($variant:ident $config:ty, $name:literal, $kind:literal, $about:literal, $source:literal;)*) => {
        /// The configuration of any discipline of the registry.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum AnyConfig {
            $(#[doc = $about] $variant($config),)*
            /// The configuration of an AQM from outside this crate.
            Foreign(foreign::Config),
            /// The configuration of a packet scheduler from outside this crate.
            ForeignScheduler(classful::foreign::Config),
            /// The configuration of an element on the ACK path from outside this crate, and of the discipline behind it.
            ForeignAckPath(Box<before::Config>),
            /// The configuration of a tree of subscribers.
            Tree(Box<tree::Config>),
        }

        impl schemars::JsonSchema for AnyConfig {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "Discipline".into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                choice(vec![$(($name, <$config as schemars::JsonSchema>::json_schema(generator)),)*])
            }
        }

        /// Any discipline of the registry.
        #[derive(Debug, Clone)]
        pub enum AnyQdisc<P: Packet> {
            $(#[doc = $about] $variant(<$config as Discipline>::Queue<P>),)*
            /// An AQM from outside this crate, with one queue.
            Foreign(Fifo<P, AnyForeignAqm>),
            /// A packet scheduler from outside this crate, with the queues of its classes.
            ForeignScheduler(classful::foreign::Queues<P>),
            /// An element on the ACK path from outside this crate, before a discipline.
            ForeignAckPath(Box<before::Queue<P>>),
            /// Queues of subscribers in a tree.
            Tree(Box<tree::Tree<P>>),
        }

        /// The entries of all disciplines, in the order of the documentation.
        pub fn entries() -> Vec<Entry> {
            vec![$(Entry {
                name: $name, kind: $kind, about: $about, source: $source,
                parameters: parameters::<$config>(),
            },)*]
        }

        /// The names of all disciplines.
        pub const NAMES: &[&str] = &[$($name,)*];

        impl AnyConfig {
            /// The default configuration of `name`.
            pub fn default_of(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant(Default::default())),)*
                    _ => None,
                }
            }

            /// Reads the parameters of `name`; `None` if no such algorithm exists.
            ///
            /// # Errors
            /// The errors of the deserializer, with their positions in the text.
            pub fn deserialize<'de, D: Deserializer<'de>>(name: &str, parameters: D) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some(Deserialize::deserialize(parameters).map(Self::$variant)),)*
                    _ => None,
                }
            }

            /// The name in the registry, or the name of an algorithm from outside.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Foreign(config) => config.name(),
                    Self::ForeignScheduler(config) => config.scheduler.name(),
                    Self::ForeignAckPath(config) => config.element.name(),
                    Self::Tree(_) => tree::NAME,
                }
            }

            /// Refuses parameters that do not work.
            ///
            /// # Errors
            /// Names the first parameter that is out of its range.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $(Self::$variant(config) => Discipline::validate(config),)*
                    Self::Foreign(_) => Ok(()),
                    Self::ForeignScheduler(config) => config.validate(),
                    Self::ForeignAckPath(config) => config.queue.validate(),
                    Self::Tree(config) => config.validate(),
                }
            }

            /// Builds the discipline for a link. Call it only after [`AnyConfig::validate`].
            pub fn build<P: Packet>(&self, link: &LinkFacts) -> AnyQdisc<P> {
                match self {
                    $(Self::$variant(config) => AnyQdisc::$variant(config.build(link)),)*
                    Self::Foreign(config) => AnyQdisc::Foreign(Fifo::new(link.limit, config.aqm(link))),
                    Self::ForeignScheduler(config) => AnyQdisc::ForeignScheduler(config.build(link)),
                    Self::ForeignAckPath(config) => AnyQdisc::ForeignAckPath(Box::new(config.build(link))),
                    Self::Tree(config) => AnyQdisc::Tree(Box::new(config.build(link))),
                }
            }
        }

        macro_rules! each {
            ($self:ident, $q:ident => $call:expr) => {
                match $self {
                    $(Self::$variant($q) => $call,)*
                    Self::Foreign($q) => $call,
                    Self::ForeignScheduler($q) => $call,
                    Self::ForeignAckPath($q) => $call,
                    Self::Tree($q) => $call,
                }
            };
        }

        impl<P: Packet> Qdisc<P> for AnyQdisc<P> {
            #[inline]
            fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
                if let Self::DropTail(q) = self {
                    return q.enqueue(packet, now, rng, observer);
                }
                self.enqueue_managed(packet, now, rng, observer)
            }
            #[inline]
            fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
                if let Self::DropTail(q) = self {
                    return q.dequeue(now, rng, observer);
                }
                self.dequeue_managed(now, rng, observer)
            }
            fn next_wakeup(&self) -> Option<Instant> {
                each!(self, q => q.next_wakeup())
            }
            fn on_wakeup(&mut self, now: Instant) {
                each!(self, q => q.on_wakeup(now))
            }
            fn on_fact(&mut self, fact: &Fact, now: Instant) {
                each!(self, q => q.on_fact(fact, now))
            }
            fn take_out(&mut self, flow: FlowId, taken: &mut Vec<P>) {
                each!(self, q => q.take_out(flow, taken))
            }
            #[inline]
            fn backlog(&self) -> Backlog {
                if let Self::DropTail(q) = self {
                    return q.backlog();
                }
                self.backlog_managed()
            }
            fn stats(&self) -> &Stats {
                each!(self, q => q.stats())
            }
            fn report(&self) -> Option<serde_json::Value> {
                each!(self, q => q.report())
            }
        }

        // The simplest discipline is used before most links: it is matched first and inlined at its use. For the other
        // disciplines the cost of a call is small compared with their work.
        impl<P: Packet> AnyQdisc<P> {
            #[inline(never)]
            fn enqueue_managed<O: PacketObserver<P>>(
                &mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O,
            ) -> Enqueued {
                each!(self, q => q.enqueue(packet, now, rng, observer))
            }
            #[inline(never)]
            fn dequeue_managed<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
                each!(self, q => q.dequeue(now, rng, observer))
            }
            #[inline(never)]
            fn backlog_managed(&self) -> Backlog {
                each!(self, q => q.backlog())
            }

            /// True if this discipline ever asks to be woken.
            pub fn wakes(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <<$config as Discipline>::Queue<P> as Qdisc<P>>::WAKES,)*
                    Self::Foreign(_) => <Fifo<P, AnyForeignAqm> as Qdisc<P>>::WAKES,
                    Self::ForeignScheduler(_) => <classful::foreign::Queues<P> as Qdisc<P>>::WAKES,
                    Self::ForeignAckPath(_) => <before::Queue<P> as Qdisc<P>>::WAKES,
                    Self::Tree(_) => <tree::Tree<P> as Qdisc<P>>::WAKES,
                }
            }

            /// True if this discipline can give up a flow.
            pub fn gives_up(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <<$config as Discipline>::Queue<P> as Qdisc<P>>::GIVES_UP,)*
                    Self::Foreign(_) => <Fifo<P, AnyForeignAqm> as Qdisc<P>>::GIVES_UP,
                    Self::ForeignScheduler(_) => <classful::foreign::Queues<P> as Qdisc<P>>::GIVES_UP,
                    Self::ForeignAckPath(_) => <before::Queue<P> as Qdisc<P>>::GIVES_UP,
                    Self::Tree(_) => <tree::Tree<P> as Qdisc<P>>::GIVES_UP,
                }
            }

            /// True if this discipline takes the classes of flows for codepoints of Diffserv.
            pub fn reads_codepoints(&self) -> bool {
                matches!(self, Self::Cake(_))
            }

            /// True if this discipline needs to see the segments of both directions.
            pub fn sees_segments(&self) -> bool {
                each!(self, q => q.watches())
            }
        }

        impl<P: Packet> AckPath for AnyQdisc<P> {
            fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
                each!(self, q => q.outbound(segment, now))
            }
            fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
                each!(self, q => q.inbound(segment, now))
            }
            fn budget_of(&self, flow: FlowId) -> Option<Rate> {
                each!(self, q => q.budget_of(flow))
            }
            fn shares(&self) -> Option<(Rate, Members)> {
                each!(self, q => q.shares())
            }
        }
    };
}
