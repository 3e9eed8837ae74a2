//! Places for clients of the page, of which there are few: so who holds many and shows nothing must not lock others out.
//!
//! When all places are taken, a client goes that has not shown yet that it may look: of the address with most of those, the one
//! that is there for longest. So a client keeps its place if it asks before all others have been replaced. Only if all others may
//! look is the newest sent away.

use penstock_linux::tcp::Stream;
use std::io;
use std::net::{IpAddr, Shutdown};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of clients at a time.
const MOST: usize = 32;

#[derive(Debug)]
struct Held {
    number: u64,
    from: IpAddr,
    /// True once it has shown that it may look.
    trusted: bool,
    stream: Stream,
}

#[derive(Debug, Default)]
struct All {
    /// In the order in which they have come.
    held: Vec<Held>,
    next: u64,
}

/// All places.
#[derive(Debug, Default)]
pub struct Places(Mutex<All>);

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Place<'p> {
    places: &'p Places,
    number: u64,
}

impl Places {
    /// Gives a client a place; `None` if there is none.
    pub fn take(&self, stream: &Stream) -> io::Result<Option<Place<'_>>> {
        let (from, stream) = (stream.peer_addr()?.ip(), stream.try_clone()?);
        let mut all = self.all();
        if all.held.len() >= MOST {
            let Some(worst) = all.worst() else { return Ok(None) };
            // Its thread reads the end, and is gone.
            let _ = all.held.remove(worst).stream.shutdown(Shutdown::Both);
        }
        let number = all.next;
        all.next += 1;
        all.held.push(Held { number, from, trusted: false, stream });
        Ok(Some(Place { places: self, number }))
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    fn worst(&self) -> Option<usize> {
        let strange = |one: &&Held| !one.trusted;
        let many = |from: IpAddr| self.held.iter().filter(strange).filter(|one| one.from == from).count();
        let places = 0..self.held.len();
        // The first of equal ones is the oldest.
        places.rev().filter(|at| !self.held[*at].trusted).max_by_key(|at| many(self.held[*at].from))
    }
}

impl Place<'_> {
    /// Notes that the client may look.
    pub fn trust(&self) {
        self.places.all().held.iter_mut().filter(|one| one.number == self.number).for_each(|one| one.trusted = true);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.places.all().held.retain(|one| one.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_linux::tcp::Listener;
    use std::io::Read as _;

    /// Clients of addresses of this host, and their ends here.
    fn client(listener: &Listener) -> [Stream; 2] {
        let near = Stream::connect(listener.local_addr().unwrap()).unwrap();
        [near, listener.accept().unwrap().0]
    }

    #[test]
    fn who_shows_nothing_goes_first_and_the_oldest_of_them() {
        let (listener, places) = (Listener::bind("127.0.0.1:0").unwrap(), Places::default());
        let mut clients: Vec<[Stream; 2]> = (0..MOST + 2).map(|_| client(&listener)).collect();
        let mut held: Vec<_> = clients[..MOST].iter().map(|[_, end]| places.take(end).unwrap().unwrap()).collect();
        held[0].trust();
        held.push(places.take(&clients[MOST][1]).unwrap().unwrap());
        assert_eq!(clients[1][0].read(&mut [0]).unwrap(), 0, "the oldest that has shown nothing is cut off");
        held.iter().for_each(Place::trust);
        assert!(places.take(&clients[MOST + 1][1]).unwrap().is_none(), "nobody who may look goes");
        held.truncate(5);
        assert!(places.take(&clients[MOST + 1][1]).unwrap().is_some(), "who is gone leaves a place");
    }

    #[test]
    fn the_address_with_most_places_loses_one() {
        let end = |listener: &Listener| client(listener)[1].try_clone().unwrap();
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let held = |number: u64, from: [u8; 4], trusted: bool| Held {
            number,
            from: from.into(),
            trusted,
            stream: end(&listener),
        };
        let [few, many] = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let held = vec![held(0, few, false), held(1, many, true), held(2, many, false), held(3, many, false)];
        let mut all = All { held, next: 4 };
        assert_eq!(all.worst(), Some(2));
        all.held.iter_mut().for_each(|one| one.trusted = one.from == IpAddr::from(many));
        assert_eq!(all.worst(), Some(0));
    }
}
