//! Connections that a flowtable of nftables forwards past this gateway.

use crate::file::{Datapath, File, Mode};
use penstock_linux::flowtables::{self, Flowtable};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the kernel is asked.
const EVERY: Duration = Duration::from_secs(10);

/// What this says of a flowtable that takes packets of an interface past the gateway; `None` if none does.
fn told(file: &File, tables: &[Flowtable]) -> Option<String> {
    let router = file.keys.mode == Mode::Router && file.keys.datapath == Datapath::User;
    let own = |device: &String| *device == file.interfaces.wan || Some(device) == file.interfaces.lan.as_ref();
    // A bridge, and programs at an interface, see packets before software forwards them.
    let Flowtable { table, name, hardware, .. } =
        tables.iter().find(|one| (router || one.hardware) && one.devices.iter().any(own))?;
    let by = if *hardware { " in hardware" } else { "" };
    Some(format!(
        "the flowtable {name} of the table {table} forwards connections{by} past this gateway: take out its rules \
         (`flow add @{name}`; nft list flowtables), or nothing holds what they carry"
    ))
}

/// What `check` says.
pub fn note(file: &File) -> Option<String> {
    told(file, &flowtables::listed().unwrap_or_default())
}

/// The mark of a gateway that runs. The kernel is asked on a thread of its own, which ends with this value.
#[derive(Debug, Default)]
pub struct Offloaded(Arc<Mutex<Option<String>>>);

impl Offloaded {
    /// Begins to ask. Where no thread can be started nothing is told.
    pub fn watch(file: &File) -> Self {
        let (mark, file) = (Arc::new(Mutex::new(None)), file.clone());
        let held = Arc::downgrade(&mark);
        let ask = move || {
            while let Some(mark) = held.upgrade() {
                *mark.lock().unwrap_or_else(PoisonError::into_inner) = note(&file);
                drop(mark);
                std::thread::sleep(EVERY);
            }
        };
        let _ = std::thread::Builder::new().name("flowtables".into()).spawn(ask);
        Self(mark)
    }

    /// What is wrong now.
    pub fn mark(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flowtable_of_our_interfaces_is_told() {
        let file = |keys: &str, lan: &str| {
            let text = format!("{keys}[interfaces]\nwan = 'ppp0'\n{lan}[link]\nrate = '9Mbit/s'\n");
            File::parse(&text, "f").unwrap()
        };
        let table = |device: &str, hardware| Flowtable {
            table: "fw".into(),
            name: "ft".into(),
            devices: vec!["dsl9".into(), device.into()],
            hardware,
        };
        let router = file("", "lan = 'eth1'\n");
        for (device, marked) in [("ppp0", true), ("eth1", true), ("eth2", false)] {
            assert_eq!(told(&router, &[table("x", true), table(device, false)]).is_some(), marked, "{device}");
        }
        let mark = told(&router, &[table("ppp0", true)]).unwrap();
        assert!(mark.contains("flowtable ft of the table fw") && mark.contains("in hardware past"), "{mark}");
        for other in [file("mode = 'bridge'\n", "lan = 'eth1'\n"), file("datapath = 'kernel'\n", "")] {
            assert_eq!(told(&other, &[table("ppp0", false)]), None);
            assert!(told(&other, &[table("ppp0", true)]).is_some());
        }
        assert_eq!(Offloaded::default().mark(), None);
    }
}
