//! Instructions of BPF with labels, as far as [`super::program`] needs them (RFC 9669).

/// A register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct R(pub u8);

/// The frame pointer: variables of the stack are at negative offsets from it.
pub(super) const FP: R = R(10);

/// The size of what is loaded or stored: a byte, 4 bytes, 8 bytes; the value is its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    B = 0x10,
    W = 0x00,
    D = 0x18,
}

/// An operation on 64 bits; the value is its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Add = 0x00,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Rsh = 0x70,
    Mov = 0xb0,
}

/// A condition on unsigned numbers of 64 bits; the value is its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum If {
    Eq = 0x10,
    Gt = 0x20,
    Ge = 0x30,
    Ne = 0x50,
    Le = 0xb0,
}

/// The second operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum V {
    Reg(R),
    Imm(i32),
}

/// Helpers of the kernel for maps.
const LOOKUP: i32 = 1;
const UPDATE: i32 = 2;

/// A place in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

/// An instruction as the kernel reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A program that is being written.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<Instruction>,
    places: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn push(&mut self, code: u8, dst: R, src: R, offset: i16, immediate: i32) {
        self.code.push(Instruction { code, registers: dst.0 | src.0 << 4, offset, immediate });
    }

    /// Returns a label whose place is set later by [`Assembler::here`].
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Puts a label here.
    pub fn here(&mut self, label: Label) {
        self.places[label.0] = Some(self.code.len());
    }

    /// `dst = dst op value`.
    pub fn op(&mut self, op: Op, dst: R, value: V) {
        match value {
            V::Reg(src) => self.push(op as u8 | 0x0f, dst, src, 0, 0),
            V::Imm(n) => self.push(op as u8 | 0x07, dst, R(0), 0, n),
        }
    }

    /// The same with one operation after the other.
    pub fn ops<const N: usize>(&mut self, dst: R, steps: [(Op, V); N]) {
        steps.into_iter().for_each(|(op, value)| self.op(op, dst, value));
    }

    /// `dst = *(src + offset)`; goes to `otherwise` if that is zero.
    pub fn load_some(&mut self, size: Size, dst: R, src: R, offset: i16, otherwise: Label) {
        self.load(size, dst, src, offset);
        self.jump_if(dst, If::Eq, V::Imm(0), otherwise);
    }

    pub fn mov(&mut self, dst: R, value: V) {
        self.op(Op::Mov, dst, value);
    }

    /// `dst =` the larger one of both.
    pub fn at_least(&mut self, dst: R, value: V) {
        self.unless(dst, If::Ge, value);
    }

    /// `dst =` the smaller one of both.
    pub fn at_most(&mut self, dst: R, value: V) {
        self.unless(dst, If::Le, value);
    }

    fn unless(&mut self, dst: R, condition: If, value: V) {
        let so = self.label();
        self.jump_if(dst, condition, value, so);
        self.mov(dst, value);
        self.here(so);
    }

    /// `dst =` the address of a variable on the stack.
    pub fn address(&mut self, dst: R, variable: i16) {
        self.mov(dst, V::Reg(FP));
        self.op(Op::Add, dst, V::Imm(variable.into()));
    }

    /// R1 and R2 = a map, and the address of a key on the stack.
    pub fn keyed(&mut self, map: i32, key: i16) {
        self.map(R(1), map);
        self.address(R(2), key);
    }

    /// R0 = the entry of a map with the key on the stack; goes to `otherwise` without one.
    pub fn find(&mut self, map: i32, key: i16, otherwise: Label) {
        self.keyed(map, key);
        self.call(LOOKUP);
        self.jump_if(R(0), If::Eq, V::Imm(0), otherwise);
    }

    /// Writes the entry of a map: key and value are on the stack. R0 is 0 if that worked.
    pub fn update(&mut self, map: i32, key: i16, value: i16) {
        self.keyed(map, key);
        self.address(R(3), value);
        self.mov(R(4), V::Imm(0));
        self.call(UPDATE);
    }

    /// `dst = number`, of 64 bits.
    pub fn wide(&mut self, dst: R, number: u64) {
        self.push(0x18, dst, R(0), 0, number as u32 as i32);
        self.push(0, R(0), R(0), 0, (number >> 32) as u32 as i32);
    }

    /// `dst =` the map with this descriptor.
    pub fn map(&mut self, dst: R, descriptor: i32) {
        self.push(0x18, dst, R(1), 0, descriptor);
        self.push(0, R(0), R(0), 0, 0);
    }

    /// `dst = *(src + offset)`.
    pub fn load(&mut self, size: Size, dst: R, src: R, offset: i16) {
        self.push(size as u8 | 0x61, dst, src, offset, 0);
    }

    /// `*(dst + offset) = value`.
    pub fn store(&mut self, size: Size, dst: R, offset: i16, value: V) {
        match value {
            V::Reg(src) => self.push(size as u8 | 0x63, dst, src, offset, 0),
            V::Imm(n) => self.push(size as u8 | 0x62, dst, R(0), offset, n),
        }
    }

    /// `*(dst + offset) += value` in one step; R5 is lost.
    pub fn atomic_add(&mut self, dst: R, offset: i16, value: V) {
        self.mov(R(5), value);
        self.push(0xdb, dst, R(5), offset, 0);
    }

    /// If `*(dst + offset)` is R0, it becomes `src`; R0 becomes what was there. In one step.
    pub fn compare_exchange(&mut self, dst: R, offset: i16, src: R) {
        self.push(0xdb, dst, src, offset, 0xf1);
    }

    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x05, R(0), R(0), 0, 0);
    }

    pub fn jump_if(&mut self, a: R, condition: If, b: V, to: Label) {
        self.jumps.push((self.code.len(), to));
        match b {
            V::Reg(src) => self.push(condition as u8 | 0x0d, a, src, 0, 0),
            V::Imm(n) => self.push(condition as u8 | 0x05, a, R(0), 0, n),
        }
    }

    /// R0 = the result of a helper of the kernel with R1 to R5; these are lost.
    pub fn call(&mut self, helper: i32) {
        self.push(0x85, R(0), R(0), 0, helper);
    }

    /// The same with a function of the kernel, which has this number among its types.
    pub fn call_kernel(&mut self, function: u32) {
        self.push(0x85, R(0), R(2), 0, function as i32);
    }

    pub fn exit(&mut self) {
        self.push(0x95, R(0), R(0), 0, 0);
    }

    /// Returns the instructions, with the distances of jumps.
    pub fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let place = self.places[label.0].unwrap_or_else(|| unreachable!("a label without a place"));
            self.code[at].offset = (place as i64 - at as i64 - 1) as i16;
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9669: `r1 = 7` is b7, `if r1 == 7 goto +1` is 15, `exit` is 95.
    #[test]
    fn instructions_are_those_of_the_standard() {
        let mut a = Assembler::default();
        let end = a.label();
        a.mov(R(1), V::Imm(7));
        a.jump_if(R(1), If::Eq, V::Imm(7), end);
        a.op(Op::Add, R(1), V::Reg(R(2)));
        a.here(end);
        a.exit();
        let code: Vec<_> = a.finish().iter().map(|i| (i.code, i.registers, i.offset, i.immediate)).collect();
        assert_eq!(code, [(0xb7, 1, 0, 7), (0x15, 1, 1, 7), (0x0f, 0x21, 0, 0), (0x95, 0, 0, 0)]);
    }
}
