//! Who may play and who may look: JSON Web Tokens (RFC 7519), checked before admission.
//!
//! ```text
//!   GET /t/film/master.m3u8?token=JWT ──▶ signature, times ──▶ address, title ──▶ admission
//!                                          no: 401              no: 403
//!   GET /t/film/0/17.m4s?s=SESSION    ──────────────────────────────────────────▶ of the session
//! ```
//!
//! A token opens a manifest or a file. The addresses in it carry the session's own token, which is
//! random and ends with the session, so that a session goes on when the token that began it
//! expires.
//!
//! | claim | meaning |
//! |---|---|
//! | `exp` | the end of its validity, in seconds since 1970; required |
//! | `nbf` | the beginning of its validity |
//! | `aud` | has to be or contain `tenuto`; a token of a secret key (HS) may be without it |
//! | `title` | the title that it opens, or a list of titles; a name that ends with `*` is the beginning of names. Absent: every title |
//! | `ip` | the address of the client that may use it, and the sessions that it begins |
//! | `max_height` | the height of the largest pictures that it opens, in pixels; not for caches |
//! | `priority` | who goes first: `low`, `normal` or `high`; not for caches |
//! | `operator` | if true, it also opens the views of the whole server: its sessions and numbers |
//! | `origin` | if true, it is a cache's: it opens the addresses without sessions (`/origin/`) |
//! | `sub`, `jti` | whose it is, and its own name: shown with the sessions that it begins |

mod crypto;
mod keys;

pub use keys::new_key_file;

use crate::log::Log;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use engine::Priority;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use keys::{KeyFile, KeyFileEvent};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::Reason;

/// What a token allows, until when, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenClaims {
    /// The end of its validity, in seconds since 1970. Of a fraction the second before it is taken.
    #[serde(deserialize_with = "second_before")]
    pub exp: u64,
    /// The beginning of its validity, in seconds since 1970. Of a fraction the second after it is
    /// taken.
    #[serde(default, deserialize_with = "second_after", skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
    /// The titles that it opens; `None`: every title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<TitlePatterns>,
    /// The address of the client that may use it; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpAddr>,
    /// How much it opens of a title, and who goes first.
    #[serde(flatten)]
    pub limits: ViewerLimits,
    /// Whether it opens the views of the whole server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator: bool,
    /// Whether it is that of a cache, which fetches titles for viewers of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub origin: bool,
    /// Whose it is, at most [`LONGEST_NAME`] bytes; `None`: it does not say.
    #[serde(default, deserialize_with = "name", skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// The own name of the token, at most [`LONGEST_NAME`] bytes; `None`: it has none.
    #[serde(default, deserialize_with = "name", skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
}

/// Limits of a viewer, in an access token and in the answer of an operator's service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewerLimits {
    /// The height of the largest pictures that the viewer may play, in pixels; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_height: Option<u32>,
    /// Who goes first where there is not room for all; `None`: as everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// What an operator's service lets a viewer do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Allowance {
    #[serde(flatten)]
    pub(crate) limits: ViewerLimits,
    /// When the session ends, in seconds since 1970. Of a fraction the second before it is taken.
    /// `None`: when its viewer leaves.
    #[serde(default, rename = "exp", deserialize_with = "some_second_before")]
    pub(crate) until: Option<u64>,
}

impl Allowance {
    /// The names of the fields.
    pub(crate) const FIELDS: [&str; 3] = ["max_height", "priority", "exp"];

    /// Whether it has ended, at this second since 1970.
    pub(crate) fn is_over(&self, second: u64) -> bool {
        self.until.is_some_and(|until| until <= second)
    }
}

/// Names of titles; one that ends with `*` is the beginning of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TitlePatterns {
    /// One name.
    One(String),
    /// Several names.
    Several(Vec<String>),
}

/// What a request needs a token for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenNeed<'a> {
    /// To open this title.
    Title(&'a str),
    /// To fetch this title for a cache.
    Origin(&'a str),
    /// To see the names of all titles.
    TitleList,
    /// To see the server's sessions and numbers.
    Server,
}

/// Which token it is that began a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenOwner {
    /// Whose it is: its claim `sub`.
    pub subject: Option<String>,
    /// The own name of the token: its claim `jti`.
    pub token_id: Option<String>,
}

/// How much of a title a viewer may play, who goes first, and by whose token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permit {
    /// The height of the largest pictures, in pixels; `None`: any.
    pub max_height: Option<u32>,
    /// Who goes first where there is not room for all.
    pub priority: Priority,
    /// The address of the client that may play; `None`: any.
    pub client: Option<IpAddr>,
    /// Whose token it is; `None`: there is no token, or it does not say.
    pub owner: Option<Arc<TokenOwner>>,
    /// When the session ends, in seconds since 1970; `None`: when its viewer leaves.
    pub until: Option<u64>,
}

impl TokenOwner {
    /// The owner of a token with these claims, if it has one of them.
    pub(crate) fn of(subject: Option<String>, token_id: Option<String>) -> Option<Arc<Self>> {
        let says = subject.is_some() || token_id.is_some();
        says.then(|| Arc::new(Self { subject, token_id }))
    }
}

impl Permit {
    /// Whose token it is, if that says so.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.owner.as_ref()?.subject.as_deref()
    }

    /// The own name of the token, if it has one.
    pub(crate) fn token_id(&self) -> Option<&str> {
        self.owner.as_ref()?.token_id.as_deref()
    }

    /// Whether a client at this address may play.
    pub(crate) fn is_for(&self, peer: IpAddr) -> bool {
        self.client.is_none_or(|client| client.to_canonical() == peer.to_canonical())
    }

    /// This permit for a viewer that asks for a priority itself: it may only lower its own.
    #[must_use]
    pub(crate) fn lowered_to(&self, priority: Option<Priority>) -> Self {
        let priority = priority.map_or(self.priority, |asked| asked.min(self.priority));
        Self { priority, ..self.clone() }
    }

    /// This permit within what a service allows, which only takes away.
    #[must_use]
    pub(crate) fn within(&self, Allowance { limits, until }: Allowance) -> Self {
        let heights = [self.max_height, limits.max_height];
        let max_height = heights.into_iter().flatten().min();
        Self { max_height, until, ..self.lowered_to(limits.priority) }
    }

    /// Whether pictures of this height may be played; sound has none (0).
    pub(crate) fn allows(&self, height: u32) -> bool {
        self.max_height.is_none_or(|most| height <= most)
    }
}

/// What a request is allowed by its token.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckedToken {
    pub(crate) permit: Permit,
    /// All claims of the token; `None`: none was needed.
    pub(crate) claims: Option<Arc<Map<String, Value>>>,
}

/// Why a request is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The request has no token.
    NoToken,
    /// The token is not valid, and why.
    Invalid(String),
    /// The token is valid and does not allow this, and why.
    NotAllowed(String),
}

/// The check of tokens; without a key file everything is allowed to everybody.
#[derive(Debug, Default)]
pub struct AccessControl {
    keys: Mutex<Option<Arc<KeyFile>>>,
    /// Where it is written that the file has changed; `None`: nowhere.
    log: Option<Log>,
}

impl AccessControl {
    /// Reads the keys of a server.
    ///
    /// # Errors
    /// A file that cannot be read or used, or that other users may read.
    pub fn new(path: Option<&Path>) -> Result<Self, Reason> {
        crypto::install();
        Ok(Self { keys: Mutex::new(Self::read(path)?), log: None })
    }

    /// Writes what becomes of the file to this log.
    pub(crate) fn logged(self, log: Log) -> Self {
        Self { log: Some(log), ..self }
    }

    /// The keys of a file, if there is one, for [`AccessControl::replace`].
    pub(crate) fn read(path: Option<&Path>) -> Result<Option<Arc<KeyFile>>, Reason> {
        path.map(|path| KeyFile::open(path).map(Arc::new)).transpose()
    }

    /// Uses these keys from now on, or none.
    pub(crate) fn replace(&self, keys: Option<Arc<KeyFile>>) {
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// Whether tokens are needed at all.
    pub(crate) fn has_keys(&self) -> bool {
        self.keys().is_some()
    }

    /// Whether there is a file of keys without one: nobody is allowed anything.
    pub(crate) fn opens_nothing(&self) -> bool {
        self.keys().is_some_and(|file| file.is_empty())
    }

    fn keys(&self) -> Option<Arc<KeyFile>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a client at `peer` with this token may play, if it is allowed what it asks for.
    ///
    /// # Errors
    /// No token, one that is not valid, and one that does not allow this.
    pub fn check(
        &self,
        access: TokenNeed<'_>,
        token: Option<&str>,
        peer: IpAddr,
        now: SystemTime,
    ) -> Result<Permit, Denied> {
        self.check_token(access, token, peer, now).map(|checked| checked.permit)
    }

    /// As [`AccessControl::check`], with the claims of the token.
    pub(crate) fn check_token(
        &self,
        access: TokenNeed<'_>,
        token: Option<&str>,
        peer: IpAddr,
        now: SystemTime,
    ) -> Result<CheckedToken, Denied> {
        let Some(file) = self.keys() else { return Ok(CheckedToken::default()) };
        let token = token.ok_or(Denied::NoToken)?;
        let keys = file.keys(now, |event| self.tell(&event));
        let (claims, all) = verified(&keys, token)?;
        claims.is_valid_at(seconds(now))?;
        claims.allows(access, peer)?;
        let TokenClaims { limits: ViewerLimits { max_height, priority }, ip: client, .. } = claims;
        let owner = TokenOwner::of(claims.sub, claims.jti);
        let (priority, until) = (priority.unwrap_or_default(), None);
        let permit = Permit { max_height, priority, client, owner, until };
        Ok(CheckedToken { permit, claims: Some(Arc::new(all)) })
    }

    fn tell(&self, event: &KeyFileEvent<'_>) {
        let Some(log) = &self.log else { return };
        log.line(|| match event {
            KeyFileEvent::Replaced { file, keys } => {
                json!({ "event": "keys-replaced", "file": file.display().to_string(), "keys": keys })
            }
            KeyFileEvent::NotUsable { file, why } => {
                let (file, error) = (file.display().to_string(), why.to_string());
                json!({ "event": "keys-not-usable", "file": file, "error": error })
            }
        });
    }
}

/// The claims of a token whose signature is by one of these keys: those of this server, and all.
fn verified(keys: &[keys::AccessKey], token: &str) -> Result<VerifiedClaims, Denied> {
    let invalid = |why: &str| Denied::Invalid(why.to_owned());
    let header = jsonwebtoken::decode_header(token)
        .map_err(|_| invalid("it is no signed JSON Web Token"))?;
    if has_critical_parameters(token) {
        return Err(invalid("its header has critical parameters (`crit`), of which none is known"));
    }
    let candidates = keys.iter().filter(|key| {
        let named = header.kid.is_none() || key.id.is_none() || key.id == header.kid;
        named && key.algorithms.contains(&header.alg)
    });
    let mut why = invalid("no key of this server has its name and algorithm");
    for key in candidates {
        match decoded(token, &key.key, header.alg) {
            Ok(claims) => return Ok(claims),
            Err(error) => why = Denied::Invalid(error),
        }
    }
    Err(why)
}

type VerifiedClaims = (TokenClaims, Map<String, Value>);

fn decoded(token: &str, key: &DecodingKey, algorithm: Algorithm) -> Result<VerifiedClaims, String> {
    let mut validation = Validation::new(algorithm);
    // The times are checked afterwards, as the numbers that they have to be.
    validation.validate_exp = false;
    validation.required_spec_claims.clear();
    validation.set_audience(&[AUDIENCE]);
    let is_of_secret = matches!(algorithm, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512);
    let decoded = jsonwebtoken::decode::<Map<String, Value>>(token, key, &validation);
    let decoded = decoded.map_err(|error| match error.kind() {
        jsonwebtoken::errors::ErrorKind::InvalidAudience => "it is meant for another service",
        jsonwebtoken::errors::ErrorKind::Json(_) => "its claims are no JSON object",
        _ => "its signature is not by a key of this server",
    })?;
    // Who has the private key of a public one signs for other services, too: an identity provider.
    if !is_of_secret && !decoded.claims.contains_key("aud") {
        return Err(
            "its claim `aud` is missing, which a token of a public key needs: `tenuto`".to_owned()
        );
    }
    Ok((claims(&decoded.claims)?, decoded.claims))
}

/// The claims of this server; an error names the first that has another form.
fn claims(all: &Map<String, Value>) -> Result<TokenClaims, String> {
    if !all.contains_key("exp") {
        return Err("its claim `exp` is missing".to_owned());
    }
    // Whoever has left an empty field in a template wants a limit, and not none.
    if let Some(name) = CLAIMS.iter().find(|name| all.get(**name).is_some_and(Value::is_null)) {
        return Err(format!("its claim `{name}` is null"));
    }
    let is_audience = |aud: &Value| match aud {
        Value::String(_) => true,
        Value::Array(all) => all.iter().all(Value::is_string),
        _ => false,
    };
    if all.get("aud").is_some_and(|aud| !is_audience(aud)) {
        return Err("its claim `aud` is neither a text nor a list of texts".to_owned());
    }
    let of = |claims: Map<String, Value>| serde_json::from_value(Value::Object(claims));
    of(all.clone()).map_err(|_| {
        let alone = |name: &str, value: &Value| {
            let exp = ("exp".to_owned(), Value::from(0));
            of([exp, (name.to_owned(), value.clone())].into_iter().collect())
        };
        let wrong = all.iter().find(|(name, value)| alone(name, value).is_err());
        let name = wrong.map_or("exp", |(name, _)| name);
        format!("its claim `{name}` is not of the form that this server knows")
    })
}

/// Whether the header names extensions that have to be understood (RFC 7515, 4.1.11).
fn has_critical_parameters(token: &str) -> bool {
    let header = token.split('.').next().and_then(|it| BASE64_URL_SAFE_NO_PAD.decode(it).ok());
    let header = header.and_then(|it| serde_json::from_slice::<Map<String, Value>>(&it).ok());
    header.is_none_or(|header| header.contains_key("crit"))
}

/// A time of a token (RFC 7519, 2) may have a fraction.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumericDate {
    Whole(u64),
    Fraction(f64),
}

impl NumericDate {
    fn rounded(self, round: impl Fn(f64) -> f64) -> Option<u64> {
        match self {
            Self::Whole(seconds) => Some(seconds),
            Self::Fraction(seconds) if seconds >= 0.0 && seconds.is_finite() => {
                Some(Duration::try_from_secs_f64(round(seconds)).ok()?.as_secs())
            }
            Self::Fraction(_) => None,
        }
    }
}

/// A claim that names something. Some issuers number what they name.
#[derive(Deserialize)]
#[serde(untagged)]
enum NameClaim {
    Text(String),
    Number(serde_json::Number),
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = match Option::<NameClaim>::deserialize(deserializer)? {
        None => return Ok(None),
        Some(NameClaim::Text(text)) => text,
        Some(NameClaim::Number(number)) => number.to_string(),
    };
    match name.len() <= LONGEST_NAME {
        true => Ok(Some(name)),
        false => Err(D::Error::custom("a name is too long")),
    }
}

fn second_before<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let date = NumericDate::deserialize(deserializer)?.rounded(f64::floor);
    date.ok_or_else(|| D::Error::custom("a time is negative"))
}

fn some_second_before<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    second_before(deserializer).map(Some)
}

fn second_after<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let date = NumericDate::deserialize(deserializer)?.rounded(f64::ceil);
    date.map(Some).ok_or_else(|| D::Error::custom("a time is negative"))
}

impl TokenClaims {
    fn is_valid_at(&self, now: u64) -> Result<(), Denied> {
        if now >= self.exp {
            let ago = units::show::length(whole(now - self.exp));
            return Err(Denied::Invalid(format!("it expired {ago} ago")));
        }
        match self.nbf.filter(|from| now < *from) {
            Some(from) => {
                let wait = units::show::length(whole(from - now));
                Err(Denied::Invalid(format!("it is valid in {wait}")))
            }
            None => Ok(()),
        }
    }

    fn allows(&self, access: TokenNeed<'_>, peer: IpAddr) -> Result<(), Denied> {
        let not = |why: String| Err(Denied::NotAllowed(why));
        let peer = peer.to_canonical();
        if self.ip.is_some_and(|ip| ip.to_canonical() != peer) {
            return not(format!("the token is for another address than {peer}"));
        }
        match access {
            TokenNeed::Title(name) if !self.has_title(name) => {
                not(format!("the token does not open the title '{name}'"))
            }
            TokenNeed::Origin(_) if !self.origin => {
                not("the token is a viewer's; these addresses need a cache's".to_owned())
            }
            TokenNeed::Origin(_) if self.limits.max_height.is_some() => {
                not("the token has a largest height, which is for viewers, not for caches"
                    .to_owned())
            }
            TokenNeed::Origin(_) if self.limits.priority.is_some() => {
                not("the token has a priority, which is for viewers, not for caches".to_owned())
            }
            TokenNeed::Origin(name) if !self.has_title(name) => {
                not(format!("the token does not open the title '{name}'"))
            }
            TokenNeed::TitleList if self.title.is_some() && !self.operator => {
                not("the token opens single titles, not their list".to_owned())
            }
            TokenNeed::Server if !self.operator => {
                not("the token is a viewer's; this view needs an operator's".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn has_title(&self, name: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => pattern == name,
        };
        match &self.title {
            None => true,
            Some(TitlePatterns::One(pattern)) => matches(pattern),
            Some(TitlePatterns::Several(patterns)) => patterns.iter().any(matches),
        }
    }

    /// A token with these claims, signed with the first secret key of a key file.
    pub fn sign(&self, keys: &Path) -> Result<String, Reason> {
        crypto::install();
        let (id, secret) = keys::first_secret(keys)?;
        let header = Header { kid: id, ..Header::new(Algorithm::HS256) };
        jsonwebtoken::encode(&header, self, &EncodingKey::from_secret(&secret))
            .map_err(|error| format!("cannot sign with {}: {error}", keys.display()).into())
    }
}

impl Denied {
    /// The value of `WWW-Authenticate`, with the word of RFC 6750, 3.1, for clients that ask for
    /// another token by themselves.
    pub fn challenge(&self) -> String {
        let word = match self {
            Self::NoToken => "",
            Self::Invalid(_) => ", error=\"invalid_token\"",
            Self::NotAllowed(_) => ", error=\"insufficient_scope\"",
        };
        format!("Bearer realm=\"tenuto\"{word}")
    }

    /// The status and the stable word of the response.
    pub fn status(&self) -> (u16, &'static str) {
        match self {
            Self::NoToken => (401, "token-missing"),
            Self::Invalid(_) => (401, "token-invalid"),
            Self::NotAllowed(_) => (403, "token-not-allowed"),
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str(
                "this server serves viewers who have a token; add ?token=... to the address, or an \
                 Authorization: Bearer field",
            ),
            Self::Invalid(why) => {
                write!(f, "the token is not valid: {why}; ask for a new one where this came from")
            }
            Self::NotAllowed(why) => write!(f, "{why}; ask for one where this came from"),
        }
    }
}

/// Seconds as a number to show.
fn whole(seconds: u64) -> f64 {
    Duration::from_secs(seconds).as_secs_f64()
}

/// Seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The claims that this server knows.
const CLAIMS: [&str; 9] =
    ["exp", "nbf", "aud", "title", "ip", "max_height", "priority", "operator", "origin"];
/// Bytes of the longest name in `sub` or `jti`: the bound of OpenID Connect Core 1.0, 2. What a
/// session holds of its token, and a ticket in addresses has, is bounded by it.
pub const LONGEST_NAME: usize = 255;
/// The audience of tokens for this server.
const AUDIENCE: &str = "tenuto";

#[cfg(test)]
mod tests;
