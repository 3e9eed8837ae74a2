//! Who may see the page, and who may change rates: tokens, whose SHA-256 is in the file, and sessions of those who logged in
//! with one.

use crate::page::http::Request;
use crate::page::keys::{Hash, Settings};
use penstock_linux::random;
use sha2::{Digest, Sha256};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a login lasts.
pub const SESSION: Duration = Duration::from_secs(12 * 3600);
/// Number of logins at a time; the oldest one goes.
const MOST: usize = 64;
/// After a wrong token the next wrong one waits for so long.
const PAUSE: Duration = Duration::from_millis(700);
/// Number of wrong ones that wait; further ones are answered at once, so that those who guess hold few threads.
const MOST_WAITING: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Look.
    Reader,
    /// Change rates as well.
    Operator,
}

impl Role {
    pub fn name(self) -> &'static str {
        if self == Self::Operator { "operator" } else { "reader" }
    }
}

#[derive(Debug, Default)]
pub struct Access {
    /// Hashes of tokens that may look, and of those that may change rates.
    readers: Vec<Hash>,
    operators: Vec<Hash>,
    sessions: Mutex<Vec<(String, Role, Instant)>>,
    /// Held while a wrong token waits, and how many want to.
    trying: Mutex<()>,
    waiting: AtomicUsize,
}

impl Access {
    /// Takes the hashes of the file. Without any, everybody on this machine may look.
    pub fn new(Settings { readers, operators, .. }: &Settings) -> Self {
        Self { readers: readers.clone(), operators: operators.clone(), ..Self::default() }
    }

    /// True if everybody on this machine may look.
    pub fn is_open(&self) -> bool {
        self.readers.is_empty() && self.operators.is_empty()
    }

    /// Returns what the sender of a request may do; `None` if it must log in.
    pub fn role(&self, request: &Request) -> Option<Role> {
        if self.is_open() {
            // A name that leads here would let pages of others read this one.
            let host = request.header("host");
            let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
            return ["localhost", "127.0.0.1", "[::1]"].contains(&host).then_some(Role::Reader);
        }
        self.session(request).or_else(|| self.token(request.header("authorization").strip_prefix("Bearer ")?.trim()))
    }

    fn session(&self, request: &Request) -> Option<Role> {
        let cookie = request.header("cookie").split(';').find_map(|one| one.trim().strip_prefix("penstock="))?;
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sessions.iter().find(|(id, _, since)| id == cookie && since.elapsed() < SESSION);
        found.map(|(_, role, _)| *role)
    }

    /// Returns the role of a token. Wrong ones take time, one after another, and the right one does not wait for them.
    fn token(&self, token: &str) -> Option<Role> {
        let hash = Sha256::digest(token.as_bytes());
        let is = |known: &Hash| known.iter().zip(hash.iter()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0;
        let has = |known: &[Hash], role| known.iter().any(is).then_some(role);
        let role = has(&self.operators, Role::Operator).or(has(&self.readers, Role::Reader));
        if role.is_none() {
            if self.waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING {
                let _turn = self.trying.lock().unwrap_or_else(PoisonError::into_inner);
                std::thread::sleep(PAUSE);
            }
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        role
    }

    /// Logs in with a token; returns the name of the session. Fails if there are no random numbers.
    pub fn log_in(&self, token: &str) -> io::Result<Option<String>> {
        let Some(role) = self.token(token) else { return Ok(None) };
        let random = random::bytes::<24>()?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|(_, _, since)| since.elapsed() < SESSION);
        if sessions.len() == MOST {
            sessions.remove(0);
        }
        sessions.push((id.clone(), role, Instant::now()));
        Ok(Some(id))
    }

    pub fn log_out(&self, request: &Request) {
        let cookie = request.header("cookie");
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|(id, _, _)| !cookie.contains(id.as_str()));
    }
}

#[cfg(test)]
pub(super) fn access(readers: &[&str], operators: &[&str]) -> Access {
    let hashes = |tokens: &[&str]| tokens.iter().map(|token| Sha256::digest(token.as_bytes()).into()).collect();
    Access { readers: hashes(readers), operators: hashes(operators), ..Access::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::http;

    fn request(lines: &str) -> Request {
        http::read(&mut format!("GET / HTTP/1.1\r\n{lines}\r\n").as_bytes(), &mut Vec::new()).unwrap()
    }

    #[test]
    fn without_tokens_this_machine_may_look_and_pages_of_others_may_not() {
        let open = access(&[], &[]);
        for host in ["localhost:7080", "127.0.0.1:7080", "[::1]:7080", "localhost"] {
            assert_eq!(open.role(&request(&format!("Host: {host}\r\n"))), Some(Role::Reader), "{host}");
        }
        assert_eq!(open.role(&request("Host: rebound.example:7080\r\n")), None);
    }

    #[test]
    fn tokens_give_roles_and_sessions_end() {
        let access = access(&["look"], &["change"]);
        assert_eq!(access.role(&request("Host: localhost\r\n")), None);
        assert_eq!(access.role(&request("Authorization: Bearer look\r\n")), Some(Role::Reader));
        assert_eq!(access.role(&request("Authorization: Bearer lookk\r\n")), None);
        assert_eq!(access.log_in("wrong").unwrap(), None);
        let id = access.log_in("change").unwrap().unwrap();
        let cookie = request(&format!("Cookie: a=b; penstock={id}\r\n"));
        assert_eq!(access.role(&cookie), Some(Role::Operator));
        access.log_out(&cookie);
        assert_eq!(access.role(&cookie), None);
    }

    /// Somebody else's wrong token waits for ever: the right one is taken, and further wrong ones find no place to wait.
    #[test]
    fn who_guesses_delays_nobody_who_knows() {
        let access = access(&["look"], &[]);
        let _turn = access.trying.lock().unwrap();
        access.waiting.store(MOST_WAITING, Ordering::Relaxed);
        assert_eq!(access.role(&request("Authorization: Bearer look\r\n")), Some(Role::Reader));
        assert!(access.log_in("look").unwrap().is_some() && access.log_in("guess").unwrap().is_none());
        assert_eq!(access.waiting.load(Ordering::Relaxed), MOST_WAITING);
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let access = access(&["look"], &[]);
        (0..100).for_each(|_| assert!(access.log_in("look").unwrap().is_some()));
        assert_eq!(access.sessions.lock().unwrap().len(), MOST);
    }

    #[test]
    fn who_logs_out_ends_no_session_of_another() {
        let access = access(&["look"], &["change"]);
        let cookies = ["look", "change"].map(|token| {
            let id = access.log_in(token).unwrap().unwrap();
            request(&format!("Cookie: penstock={id}\r\n"))
        });
        access.log_out(&cookies[0]);
        assert_eq!(cookies.map(|cookie| access.role(&cookie)), [None, Some(Role::Operator)]);
    }
}
