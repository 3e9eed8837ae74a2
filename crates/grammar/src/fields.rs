//! The keys that a struct can have, taken from its `Deserialize`, so that no second list of them is needed.

use serde::Deserialize;
use serde::de::{Error as _, value::Error};
use serde::{Deserializer, forward_to_deserialize_any};

/// Returns the names of the fields of a struct whose `Deserialize` is derived, in their order; empty for other types.
///
/// ```
/// # use serde::Deserialize;
/// #[derive(Deserialize)]
/// struct Place { street: String, number: u32 }
/// assert_eq!(penstock_grammar::fields::of::<Place>(), ["street", "number"]);
/// ```
pub fn of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    // The error is only a means to return early: the fields have been noted before it.
    let _ = T::deserialize(Ask(&mut names));
    names
}

/// A deserializer which notes the names of the fields it is asked for, and then fails.
struct Ask<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Ask<'_> {
    type Error = Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only the names of fields are asked for"))
    }

    fn deserialize_struct<V: serde::de::Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
