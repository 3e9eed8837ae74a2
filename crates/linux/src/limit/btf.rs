//! The types of the running kernel (BTF), as far as [`super::control`] needs them: structures with their members, and
//! functions that programs may call. The layout is that of the kernel's `Documentation/bpf/btf.rst`.

use std::collections::BTreeMap;

const MAGIC: u16 = 0xeb9f;
/// Kinds of types.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const FUNC: u32 = 12;

/// A structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Structure {
    /// The number of the type.
    pub id: u32,
    /// Bytes.
    pub size: u32,
    members: Vec<(String, u32)>,
}

impl Structure {
    /// The place of a member among all, and its offset in bytes.
    pub fn member(&self, name: &str) -> Option<(u32, u32)> {
        let at = self.members.iter().position(|(member, _)| member == name)?;
        Some((at as u32, self.members[at].1))
    }
}

/// Some of the types.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Types {
    structures: BTreeMap<String, Structure>,
    functions: BTreeMap<String, u32>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// What follows the first 12 bytes of a type of this kind with `many` parts, in bytes.
fn rest(kind: u32, many: usize) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        STRUCT | UNION | 15 | 19 => 12 * many,
        6 | 13 => 8 * many,
        _ => return None,
    })
}

impl Types {
    /// Reads the structures and functions with these names; `None` if the bytes are no types.
    pub fn read(bytes: &[u8], structures: &[&str], functions: &[&str]) -> Option<Self> {
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        if half(0)? != MAGIC {
            return None;
        }
        let header = word(bytes, 4)? as usize;
        let part = |at: usize| {
            let (from, len) = (header.checked_add(word(bytes, at)? as usize)?, word(bytes, at + 4)? as usize);
            bytes.get(from..from.checked_add(len)?)
        };
        let (types, strings) = (part(8)?, part(16)?);
        let name = |of: u32| strings.get(of as usize..)?.split(|byte| *byte == 0).next();
        let (mut found, mut at, mut id) = (Self::default(), 0, 0u32);
        while at < types.len() {
            id = id.checked_add(1)?;
            let [of, info, size] = [word(types, at)?, word(types, at + 4)?, word(types, at + 8)?];
            let (kind, many) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let (begin, end) = (at + 12, at + 12 + rest(kind, many)?);
            at = end;
            if !matches!(kind, STRUCT | FUNC) {
                continue;
            }
            let Some(called) = name(of).and_then(|name| std::str::from_utf8(name).ok()) else { continue };
            if kind == FUNC && functions.contains(&called) {
                found.functions.entry(called.to_owned()).or_insert(id);
            } else if kind == STRUCT && structures.contains(&called) {
                let member = |member: &[u8]| {
                    let bits = word(member, 8)?;
                    // With bit fields, the upper byte is their width.
                    let bits = if info >> 31 == 1 { bits & 0x00ff_ffff } else { bits };
                    Some((String::from_utf8_lossy(name(word(member, 0)?)?).into_owned(), bits / 8))
                };
                let members = types.get(begin..end)?.chunks_exact(12).map(member).collect::<Option<_>>()?;
                found.structures.entry(called.to_owned()).or_insert(Structure { id, size, members });
            }
        }
        Some(found)
    }

    /// The structure with this name.
    pub fn structure(&self, name: &str) -> Option<&Structure> {
        self.structures.get(name)
    }

    /// The number of the function with this name.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.functions.get(name).copied()
    }
}

/// Returns types of which the only one is an integer: what the kernel wants to see beside a map that has its own types.
pub(super) fn smallest() -> Vec<u8> {
    // Header; the integer with a name, 4 bytes and 32 bits; the strings "" and "i".
    let words: [u32; 10] = [u32::from(MAGIC) | 1 << 16, 24, 0, 16, 16, 3, 1, 1 << 24, 4, 32];
    words.into_iter().flat_map(u32::to_ne_bytes).chain(*b"\0i\0").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(words: &[u32], strings: &[u8]) -> Vec<u8> {
        let len = 4 * words.len() as u32;
        let header = [u32::from(MAGIC) | 1 << 16, 24, 0, len, len, strings.len() as u32];
        header.iter().chain(words).flat_map(|word| word.to_ne_bytes()).chain(strings.iter().copied()).collect()
    }

    /// An integer, `struct s { int a; int b : 3; }` with `b` at bit 32, and a function `f`, by the kernel's documentation.
    #[test]
    fn structures_and_functions_are_found_by_name() {
        let strings = b"\0i\0s\0a\0b\0f\0";
        let words = [
            &[1, 1 << 24, 4, 32][..],
            &[3, STRUCT << 24 | 2 | 1 << 31, 8, 5, 1, 0, 7, 1, 3 << 24 | 32],
            &[0, 13 << 24, 1],
            &[9, FUNC << 24, 3],
        ]
        .concat();
        let bytes = types(&words, strings);
        let read = Types::read(&bytes, &["s", "t"], &["f", "g"]).unwrap();
        let structure = read.structure("s").unwrap();
        assert_eq!((structure.id, structure.size), (2, 8));
        assert_eq!(
            (structure.member("a"), structure.member("b"), structure.member("c")),
            (Some((0, 0)), Some((1, 4)), None)
        );
        assert_eq!((read.structure("t"), read.function("f"), read.function("g")), (None, Some(4), None));
        // Whatever is cut off or changed is no reason to panic.
        for len in 0..bytes.len() {
            assert!(Types::read(&bytes[..len], &["s"], &["f"]).is_none(), "{len}");
        }
        for at in 0..bytes.len() {
            for value in [0, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = Types::read(&changed, &["s"], &["f"]);
            }
        }
        assert_eq!(Types::read(&smallest(), &["i"], &[]), Some(Types::default()));
    }

    /// `Documentation/bpf/btf.rst`, section 2.2: what follows a type of each kind that has three parts.
    #[test]
    fn what_follows_a_type_is_as_long_as_the_documentation_says() {
        // int, pointer, array, struct, union, enum, forward, typedef, volatile, const, restrict, function, prototype, variable,
        // section, float, declaration tag, type tag, enum of 64 bits.
        let known = [4, 0, 12, 36, 36, 24, 0, 0, 0, 0, 0, 0, 24, 4, 36, 0, 4, 0, 36].map(Some);
        assert_eq!((1..20).map(|kind| rest(kind, 3)).collect::<Vec<_>>(), known);
        assert_eq!((rest(0, 3), rest(20, 3)), (None, None));
    }

    /// Without bit fields the whole word is the offset in bits. Of two with one name, the first counts.
    #[test]
    fn an_offset_is_a_whole_word_where_there_are_no_bit_fields() {
        let strings = b"\0s\0a\0";
        let one = |bits: u32| vec![1, STRUCT << 24 | 1, 8, 3, 0, bits];
        let words = [vec![0, 2 << 24, 0], one(0x0900_0018), one(8)].concat();
        let read = Types::read(&types(&words, strings), &["s"], &[]).unwrap();
        let structure = read.structure("s").unwrap();
        assert_eq!((structure.id, structure.member("a")), (2, Some((0, 0x0120_0003))));
    }

    /// The strings begin behind the types, and both are counted from the end of a header that may be longer.
    #[test]
    fn types_and_strings_stand_where_the_header_says() {
        let mut bytes: Vec<u8> = [u32::from(MAGIC) | 1 << 16, 28, 4, 12, 20, 5, 0, 0xffff_ffff]
            .into_iter()
            .chain([1, FUNC << 24, 0, 0xffff_ffff])
            .flat_map(u32::to_ne_bytes)
            .collect();
        bytes.extend(b"\0fun\0");
        assert_eq!(Types::read(&bytes, &[], &["fun"]).unwrap().function("fun"), Some(1));
        bytes[0] ^= 1;
        assert_eq!(Types::read(&bytes, &[], &["fun"]), None);
    }
}
