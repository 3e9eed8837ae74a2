//! Changes while an appliance runs: `set`, `apply`, `keep`, `rollback` and the end of a temporary change.

use crate::appliance::{Appliance, Desk};
use crate::reader::Read;
use crate::settings::Settings as _;
use crate::socket::message::{Answer, Refusal, Set, Until};
use crate::socket::server::Peer;
use penstock_core::units::Instant;
use serde_json::{Map, Value, json};

/// Sets all values, or none; refuses unknown values, and any while a change is temporary.
pub fn set<A: Appliance>(desk: &mut Desk<A>, appliance: &mut A, peer: Peer, Set { values, until }: &Set) -> Answer {
    desk.history.may_set()?;
    let wanted = appliance.read(values)?;
    let former = appliance.settings().clone();
    let now = appliance.go_to(&wanted)?;
    desk.history.note(former, *until, now);
    let set: Map<_, _> = values.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
    note(desk, now, &set);
    let details = done(now, set, *until);
    desk.log.add(Some(peer), "set", &details);
    Ok(details.to_string())
}

/// Notes for the status that these values hold from now on.
fn note<A: Appliance>(desk: &mut Desk<A>, now: Instant, set: &Map<String, Value>) {
    desk.forget_status();
    desk.chronicle.set(now.as_secs_f64(), set);
}

/// What is answered and logged of a change.
fn done(now: Instant, set: Map<String, Value>, until: Option<Until>) -> Value {
    Until::tell(json!({"at_s": now.as_secs_f64(), "set": set}), until)
}

/// Goes to what a file says, all of it or nothing, and reads it back. Refuses what cannot change while packets pass, and any
/// change while another one is temporary.
pub fn apply<A: Appliance>(
    desk: &mut Desk<A>,
    appliance: &mut A,
    peer: Option<Peer>,
    (file, until): &Read<A::File>,
) -> Answer {
    desk.history.may_set()?;
    let wanted = appliance.wanted(file)?;
    let former = appliance.settings().clone();
    let set = former.difference(&wanted);
    let now = if set.is_empty() { desk.now() } else { appliance.go_to(&wanted)? };
    if let Err(why) = appliance.read_back() {
        let back = appliance.go_to(&former).err();
        let back = back.map_or_else(String::new, |why| format!("; they are not back: {why}"));
        return Err(Refusal::new(format!("{why}, so the former values return{back}")));
    }
    let until = until.filter(|_| !set.is_empty());
    if !set.is_empty() {
        desk.history.note(former, until, now);
    }
    note(desk, now, &set);
    let details = done(now, set, until);
    desk.log.add(peer, "apply", &details);
    Ok(details.to_string())
}

/// Applies the file with which the run began, as SIGHUP asks for, and notes what came of it.
pub fn apply_again<A: Appliance>(desk: &mut Desk<A>, appliance: &mut A, read: Result<Read<A::File>, Refusal>) {
    let applied = read.and_then(|read| apply(desk, appliance, None, &read));
    let name = desk.reader.as_ref().map_or_else(String::new, |reader| reader.path.display().to_string());
    desk.note(match applied {
        Ok(_) => format!("{name} was applied (SIGHUP)"),
        Err(refusal) => format!("{name} was not applied (SIGHUP): {refusal}"),
    });
}

/// A temporary change stays; fails if there is none.
pub fn keep<A: Appliance>(desk: &mut Desk<A>, peer: Peer) -> Answer {
    desk.history.keep()?;
    desk.forget_status();
    desk.log.add(Some(peer), "keep", &Value::Null);
    Ok("{}".into())
}

/// Returns to the settings before the last change. Fails if nothing was changed, or if the appliance refuses them; then they
/// can be asked for again.
pub fn rollback<A: Appliance>(desk: &mut Desk<A>, appliance: &mut A, peer: Peer) -> Answer {
    let former = desk.history.back()?;
    let told = return_to(desk, appliance, former)?;
    desk.log.add(Some(peer), "rollback", &told);
    Ok(told.to_string())
}

/// If the time of a change is over, the former settings return.
pub fn lapse<A: Appliance>(desk: &mut Desk<A>, appliance: &mut A, now: Instant) {
    let Some(former) = desk.history.lapsed(now) else { return };
    if let Ok(told) = return_to(desk, appliance, former) {
        desk.note("the time of a change is over: the former values are back".into());
        desk.log.add(None, "lapse", &told);
    }
}

/// Goes to former settings; returns what holds then. If they are refused, they are tried again a second later.
fn return_to<A: Appliance>(desk: &mut Desk<A>, appliance: &mut A, former: A::Settings) -> Result<Value, Refusal> {
    let set = appliance.settings().difference(&former);
    match appliance.go_to(&former) {
        Ok(now) => note(desk, now, &set),
        Err(refusal) => {
            let now = desk.now();
            desk.history.again(former, now);
            return Err(refusal);
        }
    }
    Ok(json!({"set": former.told()}))
}
