//! C²ML as the congestion control of the kernel's connections (struct_ops): equations 2.1 and 2.2 of the dissertation at
//! each ACK, around the kernel's own Reno or CUBIC, as `penstock_core::cc::c2ml` has them in [`Form::On`].
//!
//! ```text
//! ceiling      part * smallest round trip, in whole segments with their headers, one at least              eq. (2.1)
//! new part     ssthresh = ceiling, cwnd into [ceiling/2, ceiling]                                           eq. (2.2)
//! each ACK     ssthresh = ceiling, the control's own rule, cwnd = min(cwnd, ceiling)
//! ```
//!
//! [`super::program`] divides the budget once per round trip, notes the part in the entry of the socket, and makes this the
//! socket's control, whatever an application has set. A socket without an entry, and all of them when the order has ended,
//! have the control's own rule alone: so it is when the agent hangs or is gone, even if nobody is left who could free a
//! connection.
//!
//! Offsets and numbers are those of the running kernel, from its types. It takes Linux 6.4 or later.
//!
//! [`Form::On`]: penstock_core::cc::c2ml::Form::On

use super::assembler::{Assembler, FP, If, Instruction, Op, R, Size, V};
use super::btf::Types;
use super::kernel::{self, CONTROL_NAME, Hook};
use super::program::{CLOCK, FRAME, LONGEST_RTT, Maps, PART, SEEN};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// Where the kernel shows its types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// How many agents of a kernel can have a control of the same kind.
const MOST: usize = 64;
const OPS: &str = "tcp_congestion_ops";
const VALUE: &str = "bpf_struct_ops_tcp_congestion_ops";

/// A control that the kernel gets a budget for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub enum Control {
    /// Reno.
    #[serde(rename = "c2ml_reno")]
    Reno,
    /// CUBIC.
    #[serde(rename = "c2ml_cubic")]
    Cubic,
}

/// What a control is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Init,
    CongAvoid,
    /// The kernel's function answers with this many arguments.
    Own(u8),
}

impl Control {
    /// The name under which the kernel has the first control of this kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "c2ml_reno",
            Self::Cubic => "c2ml_cubic",
        }
    }

    /// Members of `struct tcp_congestion_ops`, and the kernel's functions that they are built on.
    fn members(self) -> &'static [(&'static str, Call, Option<&'static str>)] {
        const UNDO: (&str, Call, Option<&str>) = ("undo_cwnd", Call::Own(1), Some("tcp_reno_undo_cwnd"));
        match self {
            Self::Reno => &[
                ("init", Call::Init, None),
                ("ssthresh", Call::Own(1), Some("tcp_reno_ssthresh")),
                ("cong_avoid", Call::CongAvoid, Some("tcp_reno_cong_avoid")),
                UNDO,
            ],
            Self::Cubic => &[
                ("init", Call::Init, Some("cubictcp_init")),
                ("ssthresh", Call::Own(1), Some("cubictcp_recalc_ssthresh")),
                ("cong_avoid", Call::CongAvoid, Some("cubictcp_cong_avoid")),
                ("set_state", Call::Own(2), Some("cubictcp_state")),
                ("cwnd_event", Call::Own(2), Some("cubictcp_cwnd_event")),
                ("pkts_acked", Call::Own(2), Some("cubictcp_acked")),
                UNDO,
            ],
        }
    }
}

/// A control that the kernel knows for as long as this lives. Connections that have it keep it.
#[derive(Debug)]
pub(super) struct Registered {
    /// Its name, with zeros at the end.
    pub name: [u8; CONTROL_NAME],
    _link: OwnedFd,
}

/// Offsets in the kernel's structures.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    cookie: i16,
    rtt: i16,
    cwnd: i16,
    ssthresh: i16,
}

fn lacks(what: &str) -> io::Error {
    io::Error::other(format!("this kernel has no {what}"))
}

impl Offsets {
    fn of(types: &Types) -> io::Result<Self> {
        let offset = |structure: &str, member: &str| {
            let found = types.structure(structure).and_then(|one| one.member(member));
            let (_, offset) = found.ok_or_else(|| lacks(&format!("{member} in its {structure}")))?;
            i16::try_from(offset).map_err(io::Error::other)
        };
        Ok(Self {
            cookie: offset("sock_common", "skc_cookie")?,
            // The value of the first of three samples.
            rtt: offset("tcp_sock", "rtt_min")? + offset("minmax_sample", "v")?,
            cwnd: offset("tcp_sock", "snd_cwnd")?,
            ssthresh: offset("tcp_sock", "snd_ssthresh")?,
        })
    }
}

/// Makes a control known to the kernel. The error says what this kernel does not have.
pub(super) fn register(control: Control, maps: Maps) -> io::Result<Registered> {
    let functions: Vec<&str> = control.members().iter().filter_map(|(_, _, function)| *function).collect();
    let bytes = std::fs::read(TYPES).map_err(|e| io::Error::other(format!("{TYPES}, the kernel's types: {e}")))?;
    let structures = [OPS, VALUE, "sock_common", "tcp_sock", "minmax_sample"];
    let types = Types::read(&bytes, &structures, &functions).ok_or_else(|| lacks("types that can be read"))?;
    let offsets = Offsets::of(&types)?;
    let ops = types.structure(OPS).ok_or_else(|| lacks("types of congestion controls"))?;
    let value = types.structure(VALUE).ok_or_else(|| lacks("congestion controls by programs"))?;
    let (_, data) = value.member("data").ok_or_else(|| lacks("congestion controls by programs"))?;
    let place = |member: &str| {
        let (index, offset) = ops.member(member).ok_or_else(|| lacks(&format!("{member} of a congestion control")))?;
        Ok::<_, io::Error>((index, (data + offset) as usize))
    };
    let mut bytes = vec![0u8; value.size as usize];
    let mut programs = Vec::new();
    for (member, call, function) in control.members() {
        let function = function.map(|name| types.function(name).ok_or_else(|| lacks(name))).transpose()?;
        let (index, at) = place(member)?;
        let code = program(*call, function, offsets, maps);
        let loaded = kernel::load(Hook::Control { ops: ops.id, member: index }, member, &code)?;
        put(&mut bytes, at, &(loaded.as_raw_fd() as u64).to_ne_bytes())?;
        programs.push(loaded);
    }
    let (_, at) = place("name")?;
    for number in 1..=MOST {
        let text = if number == 1 { control.name().to_owned() } else { format!("{}_{number}", control.name()) };
        let name: [u8; CONTROL_NAME] = std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(0));
        put(&mut bytes, at, &name)?;
        match kernel::operations(value.id, &bytes) {
            Ok(link) => return Ok(Registered { name, _link: link }),
            // Another agent of this kernel has that name.
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("{MOST} agents have a {} already", control.name())))
}

/// Copies bytes into those of the structure.
fn put(bytes: &mut [u8], at: usize, what: &[u8]) -> io::Result<()> {
    let to = bytes.get_mut(at..at + what.len()).ok_or_else(|| lacks("congestion controls of a known layout"))?;
    to.copy_from_slice(what);
    Ok(())
}

const ARGUMENTS: R = R(6);
const SOCK: R = R(7);
/// The ceiling in segments; 0 without one.
const CEILING: R = R(8);
const ENTRY: R = R(9);
/// Variables on the stack.
const COOKIE: i16 = -8;
const ZERO: i16 = -16;

/// Returns the program of one member; `function` is what the kernel has for it.
fn program(call: Call, function: Option<u32>, offsets: Offsets, maps: Maps) -> Vec<Instruction> {
    let mut a = Assembler::default();
    a.mov(ARGUMENTS, V::Reg(R(1)));
    a.load(Size::D, SOCK, ARGUMENTS, 0);
    let out = a.label();
    match call {
        Call::Own(many) => {
            own(&mut a, function, many);
            a.exit();
            return a.finish();
        }
        Call::Init => {
            own(&mut a, function, 1);
            ceiling(&mut a, offsets, maps);
            a.jump_if(CEILING, If::Eq, V::Imm(0), out);
            begin(&mut a, offsets);
        }
        Call::CongAvoid => {
            let [plain, same] = std::array::from_fn(|_| a.label());
            ceiling(&mut a, offsets, maps);
            a.jump_if(CEILING, If::Eq, V::Imm(0), plain);
            a.load(Size::D, R(1), ENTRY, PART);
            a.load(Size::D, R(2), ENTRY, SEEN);
            a.jump_if(R(1), If::Eq, V::Reg(R(2)), same);
            begin(&mut a, offsets);
            a.here(same);
            a.store(Size::W, SOCK, offsets.ssthresh, V::Reg(CEILING));
            a.here(plain);
            own(&mut a, function, 3);
            a.jump_if(CEILING, If::Eq, V::Imm(0), out);
            a.load(Size::W, R(1), SOCK, offsets.cwnd);
            a.jump_if(CEILING, If::Ge, V::Reg(R(1)), out);
            a.store(Size::W, SOCK, offsets.cwnd, V::Reg(CEILING));
        }
    }
    a.here(out);
    a.mov(R(0), V::Imm(0));
    a.exit();
    a.finish()
}

/// Calls the kernel's function with the first arguments.
fn own(a: &mut Assembler, function: Option<u32>, many: u8) {
    let Some(function) = function else { return };
    a.mov(R(1), V::Reg(SOCK));
    for argument in 1..many {
        a.load(Size::D, R(argument + 1), ARGUMENTS, 8 * i16::from(argument));
    }
    a.call_kernel(function);
}

/// Finds the entry of the socket and computes its ceiling, equation 2.1; 0 if the socket has no part of a budget.
fn ceiling(a: &mut Assembler, offsets: Offsets, maps: Maps) {
    let [none, some] = std::array::from_fn(|_| a.label());
    a.store(Size::D, FP, ZERO, V::Imm(0));
    a.find(maps.order, ZERO, none);
    a.load(Size::D, CEILING, R(0), 8);
    a.call(CLOCK);
    a.jump_if(R(0), If::Ge, V::Reg(CEILING), none);
    a.load(Size::D, R(1), SOCK, offsets.cookie);
    a.store(Size::D, FP, COOKIE, V::Reg(R(1)));
    a.find(maps.sockets, COOKIE, none);
    a.mov(ENTRY, V::Reg(R(0)));
    a.load_some(Size::D, CEILING, ENTRY, PART, none);
    a.load(Size::W, R(1), SOCK, offsets.rtt);
    a.jump_if(R(1), If::Gt, V::Imm(LONGEST_RTT), none);
    a.load_some(Size::W, R(2), ENTRY, FRAME, none);
    a.ops(CEILING, [(Op::Mul, V::Reg(R(1))), (Op::Div, V::Imm(1_000_000)), (Op::Div, V::Reg(R(2)))]);
    a.at_least(CEILING, V::Imm(1));
    a.jump(some);
    a.here(none);
    a.mov(CEILING, V::Imm(0));
    a.here(some);
}

/// Adopts a new part: the window comes between half of the ceiling and the ceiling, equation 2.2.
fn begin(a: &mut Assembler, offsets: Offsets) {
    a.load(Size::D, R(1), ENTRY, PART);
    a.store(Size::D, ENTRY, SEEN, V::Reg(R(1)));
    a.store(Size::W, SOCK, offsets.ssthresh, V::Reg(CEILING));
    a.mov(R(1), V::Reg(CEILING));
    a.op(Op::Rsh, R(1), V::Imm(1));
    a.at_least(R(1), V::Imm(1));
    a.load(Size::W, R(2), SOCK, offsets.cwnd);
    a.at_least(R(2), V::Reg(R(1)));
    a.at_most(R(2), V::Reg(CEILING));
    a.store(Size::W, SOCK, offsets.cwnd, V::Reg(R(2)));
}
