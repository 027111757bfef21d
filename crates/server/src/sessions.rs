//! Live sessions by the token in their URLs.
//!
//! A token is all a viewer needs, so it is 128 random bits; the engine's own session numbers never
//! leave the server. Threads that speak HTTP only look up; the core enters and removes.

use crate::engine::SessionId;
use crate::library::OpenTitle;
use crate::showing::Showing;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

/// 128 random bits, 32 hexadecimal digits in URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token(u128);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Token {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(());
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| ())
    }
}

/// One viewer's player, admitted.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) token: Token,
    pub(crate) title: Arc<OpenTitle>,
    /// What it sees of it.
    pub(crate) showing: Arc<Showing>,
    /// The title's name when it was asked for: the one in this session's URLs.
    pub(crate) name: String,
    /// The admitted offer's number.
    pub(crate) offer: usize,
    pub(crate) admitted: Instant,
    // Whether media has come already.
    started: AtomicBool,
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        token: Token,
        (title, showing): (Arc<OpenTitle>, Arc<Showing>),
        name: String,
        offer: usize,
    ) -> Self {
        let (admitted, started) = (Instant::now(), AtomicBool::new(false));
        Self { id, token, title, showing, name, offer, admitted, started }
    }

    /// The tracks that it was admitted for.
    pub(crate) fn tracks(&self) -> &[u16] {
        &self.showing.offers()[self.offer]
    }

    /// True the first time that media comes.
    pub(crate) fn starts(&self) -> bool {
        !self.started.swap(true, Ordering::Relaxed)
    }
}

/// What a token stands for.
#[derive(Debug)]
pub(crate) enum Found {
    /// A session.
    Live(Arc<Session>),
    /// One that has ended, not long ago.
    Ended,
    /// Nothing known.
    Unknown,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    live: RwLock<HashMap<Token, Arc<Session>>>,
    ended: Mutex<Ended>,
    random: File,
}

#[derive(Debug, Default)]
struct Ended {
    known: HashSet<Token>,
    order: VecDeque<Token>,
}

impl Sessions {
    /// None yet.
    pub(crate) fn new() -> io::Result<Self> {
        let random = File::open("/dev/urandom")?;
        Ok(Self { live: RwLock::default(), ended: Mutex::default(), random })
    }

    /// A token that nobody can guess.
    pub(crate) fn token(&self) -> io::Result<Token> {
        let mut bytes = [0; 16];
        (&self.random).read_exact(&mut bytes)?;
        Ok(Token(u128::from_le_bytes(bytes)))
    }

    pub(crate) fn enter(&self, session: Arc<Session>) {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.insert(session.token, session);
    }

    pub(crate) fn remove(&self, token: Token) {
        self.live.write().unwrap_or_else(PoisonError::into_inner).remove(&token);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.order.len() == REMEMBERED
            && let Some(oldest) = ended.order.pop_front()
        {
            ended.known.remove(&oldest);
        }
        ended.order.push_back(token);
        ended.known.insert(token);
    }

    /// What a token in a URL stands for.
    pub(crate) fn find(&self, token: &str) -> Found {
        let Ok(token) = token.parse::<Token>() else { return Found::Unknown };
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = live.get(&token) {
            return Found::Live(Arc::clone(session));
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.known.contains(&token) { Found::Ended } else { Found::Unknown }
    }
}

/// Ended sessions whose tokens are remembered, so that a late request is told 410 and why, rather
/// than 404. Beyond that many it does not matter.
const REMEMBERED: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_as_text() {
        let sessions = Sessions::new().unwrap();
        let (one, two) = (sessions.token().unwrap(), sessions.token().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.to_string().parse(), Ok(one));
        for wrong in ["", "1", "+0000000000000000000000000000000", &"g".repeat(32), &"0".repeat(33)]
        {
            assert_eq!(wrong.parse::<Token>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn only_so_many_ended_sessions_are_remembered() {
        let sessions = Sessions::new().unwrap();
        let first = sessions.token().unwrap();
        sessions.remove(first);
        assert!(matches!(sessions.find(&first.to_string()), Found::Ended));
        for _ in 0..REMEMBERED {
            sessions.remove(sessions.token().unwrap());
        }
        assert!(matches!(sessions.find(&first.to_string()), Found::Unknown));
        assert!(matches!(sessions.find("../../etc/passwd"), Found::Unknown));
    }
}
