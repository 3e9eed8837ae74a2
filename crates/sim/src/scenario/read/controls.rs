//! Reading of the congestion control of a flow: its name, or a table of its name and parameters.

use super::{Check, Checker};
use crate::scenario::profiles::Profile;
use penstock_core::cc::AnyControlConfig;
use penstock_grammar::named::Controls;
use penstock_grammar::source::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

impl<'a> Checker<'a> {
    /// Reads `"cubic"` or `{ name = "cubic", beta = 0.8 }`; `None` if the key is missing. `hystart` is the old form of
    /// a parameter: it applies to controls which have this parameter, unless the parameter itself is given. Other
    /// parameters are those of the profile of the hosts.
    pub(super) fn control(
        &self,
        cc: Option<Value<'a>>,
        hystart: Option<Value<'a>>,
        hosts: Option<&Profile>,
    ) -> Check<Option<AnyControlConfig>> {
        if let Some(value) = hystart.as_ref().filter(|value| value.get_ref().as_bool().is_none()) {
            return Err(self.source.span(value.span(), "`hystart` is a boolean, true or false"));
        }
        let cc = match hystart {
            Some(hystart) => Some(with_hystart(cc, hystart)),
            None => cc,
        };
        let completed = |cc| hosts.map_or_else(|| Value::clone(&cc), |profile| profile.completed("cc", &cc));
        cc.map(|cc| self.source.named(&completed(cc), &Controls(self.library))).transpose()
    }
}

/// Adds `hystart` to the parameters of the control, if the control has this parameter and the file does not give it.
fn with_hystart<'a>(cc: Option<Value<'a>>, hystart: Value<'a>) -> Value<'a> {
    let span = cc.as_ref().map_or(hystart.span(), Spanned::span);
    let name_alone = |name| {
        let (key, name) = (Spanned::new(span.clone(), "name".into()), Spanned::new(span.clone(), name));
        DeTable::from_iter([(key, name)])
    };
    let mut table = match cc.map(Spanned::into_inner) {
        None => name_alone(DeValue::String("cubic".into())),
        Some(DeValue::Table(table)) => table,
        Some(name @ DeValue::String(_)) => name_alone(name),
        Some(other) => return Spanned::new(span, other),
    };
    let defaults = table.get("name").and_then(|name| AnyControlConfig::default_of(name.get_ref().as_str()?));
    let has = defaults.is_some_and(|config| config.parameters().contains_key("hystart"));
    if has && !table.contains_key("hystart") {
        table.insert(Spanned::new(hystart.span(), "hystart".into()), hystart);
    }
    Spanned::new(span, DeValue::Table(table))
}
