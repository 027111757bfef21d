//! Live sessions by the token in their URLs.
//!
//! A token is the only credential of a session, so it is 128 random bits. The engine's session
//! numbers are not accepted from clients. HTTP threads look tokens up; the core inserts and removes
//! them.

use crate::access::Permit;
use crate::clients::ClientAddress;
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::player_reports::SessionReports;
use crate::presentation::Presentation;
use crate::telemetry::SessionTrace;
use engine::SessionId;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// A session's credential: 128 random bits, 32 hexadecimal digits in URLs.
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
        // `from_str_radix` would accept a sign.
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(());
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| ())
    }
}

/// One player's admitted session, as the HTTP threads see it.
#[derive(Clone, Debug)]
pub(crate) struct PlayerSession {
    pub(crate) id: SessionId,
    /// `None`: a fill of a cache, which no address names.
    pub(crate) token: Option<Token>,
    pub(crate) title: Arc<OpenTitle>,
    /// The part of the title that it plays, and at which speed.
    pub(crate) presentation: Arc<Presentation>,
    /// The title's name at admission: the one in this session's URLs.
    pub(crate) name: String,
    /// The format that was admitted.
    pub(crate) format: DeliveryFormat,
    /// Index of the admitted offer in [`Presentation::offers`] of this format.
    pub(crate) offer: usize,
    /// What the token that began it permits, and the operator's service.
    pub(crate) permit: Permit,
    /// The client that began it.
    pub(crate) client: ClientAddress,
    /// Where it is sent, if an operator has named an address.
    pub(crate) sent_to: Option<SocketAddr>,
    /// The number by which operators know it, where that is of an earlier session.
    pub(crate) listed_as: Option<SessionId>,
    /// Whether it is read as a file of a mount.
    pub(crate) in_mount: bool,
    /// Whether a director asked for it: its player comes with its token at once.
    pub(crate) is_directed: bool,
    /// Where it may go on, if this node is lost; `None`: nowhere.
    pub(crate) failover: Option<Arc<FailoverNodes>>,
    pub(crate) admitted: Instant,
    /// What is known of its span; `None`: there is no collector.
    pub(crate) trace: Option<SessionTrace>,
    /// How much later than requested it begins.
    pub(crate) wait: Duration,
    /// Whether media has been delivered.
    pub(crate) started: Arc<AtomicBool>,
    /// What its player reports of itself.
    pub(crate) reported: Arc<SessionReports>,
}

impl PlayerSession {
    /// The session, with more of its title.
    pub(crate) fn extended(&self, title: &Arc<OpenTitle>) -> Self {
        Self { presentation: Arc::clone(&title.whole), title: Arc::clone(title), ..self.clone() }
    }

    /// The tracks of the admitted offer.
    pub(crate) fn tracks(&self) -> &[u16] {
        &self.presentation.offers(self.format)[self.offer]
    }

    /// What names it in addresses: `?s=TOKEN`.
    pub(crate) fn query(&self) -> String {
        self.token.map_or_else(String::new, |token| format!("?s={token}"))
    }

    /// The time until the start that it was promised; `None` once it has started.
    pub(crate) fn starts_in(&self) -> Option<Duration> {
        let left = self.wait.saturating_sub(self.admitted.elapsed());
        (!left.is_zero()).then_some(left)
    }

    /// Whether it is a fill of a cache or of another node.
    pub(crate) fn is_fill(&self) -> bool {
        self.token.is_none()
    }

    /// Whether media has been delivered.
    pub(crate) fn has_played(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// True at the first call, which the core makes when it delivers media.
    pub(crate) fn is_first_delivery(&self) -> bool {
        !self.started.swap(true, Ordering::Relaxed)
    }
}

/// Nodes with the title of a session beside this one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FailoverNodes {
    /// The address of the steering server.
    pub(crate) steering: String,
    /// Names and addresses.
    pub(crate) nodes: Vec<(String, String)>,
}

/// The result of looking up a token.
#[derive(Debug)]
pub(crate) enum TokenLookup {
    /// The token of a live session.
    Live(Arc<PlayerSession>),
    /// The token of a session that has ended recently.
    Ended,
    /// Not a token, or a token that was never valid or ended long ago.
    Unknown,
}

/// All live sessions, and the tokens of those that ended recently.
#[derive(Debug)]
pub(crate) struct SessionTable {
    live: RwLock<HashMap<Token, Arc<PlayerSession>>>,
    ended: Mutex<EndedTokens>,
    random: File,
}

#[derive(Debug, Default)]
struct EndedTokens {
    known: HashSet<Token>,
    order: VecDeque<Token>,
}

impl SessionTable {
    /// An empty table. Fails where `/dev/urandom` cannot be opened.
    pub(crate) fn new() -> io::Result<Self> {
        let random = File::open("/dev/urandom")?;
        Ok(Self { live: RwLock::default(), ended: Mutex::default(), random })
    }

    /// A new token of random bits.
    pub(crate) fn new_token(&self) -> io::Result<Token> {
        let mut bytes = [0; 16];
        (&self.random).read_exact(&mut bytes)?;
        Ok(Token(u128::from_le_bytes(bytes)))
    }

    /// Makes a session's token valid.
    pub(crate) fn insert(&self, session: &Arc<PlayerSession>) {
        let Some(token) = session.token else { return };
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.insert(token, Arc::clone(session));
    }

    /// Makes a token invalid; it is found as `Ended` from now on.
    pub(crate) fn remove(&self, token: Token) {
        // Before it is no longer live: otherwise a request in between would find it unknown.
        self.note_ended(token);
        self.live.write().unwrap_or_else(PoisonError::into_inner).remove(&token);
    }

    fn note_ended(&self, token: Token) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.order.len() == ENDED_TOKENS
            && let Some(oldest) = ended.order.pop_front()
        {
            ended.known.remove(&oldest);
        }
        ended.order.push_back(token);
        ended.known.insert(token);
    }

    /// Whether a session that a token names has not ended.
    pub(crate) fn is_live(&self, session: &PlayerSession) -> bool {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        session.token.is_some_and(|token| live.contains_key(&token))
    }

    /// The live session with a token.
    pub(crate) fn live(&self, token: Token) -> Option<Arc<PlayerSession>> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.get(&token).map(Arc::clone)
    }

    /// Looks up a token as it stands in a URL. Costs a read lock and one hash.
    pub(crate) fn find(&self, token: &str) -> TokenLookup {
        let Ok(token) = token.parse::<Token>() else { return TokenLookup::Unknown };
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = live.get(&token) {
            return TokenLookup::Live(Arc::clone(session));
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.known.contains(&token) { TokenLookup::Ended } else { TokenLookup::Unknown }
    }
}

/// Tokens of ended sessions that are kept, so that a late request is answered with 410 and the
/// reason rather than with 404.
const ENDED_TOKENS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_parsed_from_32_hexadecimal_digits_only() {
        let sessions = SessionTable::new().unwrap();
        let (first, second) = (sessions.new_token().unwrap(), sessions.new_token().unwrap());
        assert_ne!(first, second);
        assert_eq!(first.to_string().parse(), Ok(first));
        for wrong in ["", "1", "+0000000000000000000000000000000", &"g".repeat(32), &"0".repeat(33)]
        {
            assert_eq!(wrong.parse::<Token>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn the_number_of_remembered_tokens_is_limited() {
        let sessions = SessionTable::new().unwrap();
        let first = sessions.new_token().unwrap();
        sessions.remove(first);
        assert!(matches!(sessions.find(&first.to_string()), TokenLookup::Ended));
        for _ in 0..ENDED_TOKENS {
            sessions.remove(sessions.new_token().unwrap());
        }
        assert!(matches!(sessions.find(&first.to_string()), TokenLookup::Unknown));
        assert!(matches!(sessions.find("../../etc/passwd"), TokenLookup::Unknown));
    }
}
