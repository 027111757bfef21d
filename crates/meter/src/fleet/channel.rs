//! Authenticated frames, and the handshake that makes their key.

use super::messages::{About, Hello, Prove, VERSION, Welcome};
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use units::{Hinted, Reason, from_hex, to_hex};

/// The secret that controller and agent share.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// An error that ends a connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The connection failed.
    #[error("the connection is gone: {}", why_gone(.0))]
    Io(#[from] io::Error),
    /// The peer refused, or is not what it must be.
    #[error("{0}")]
    Refused(Reason),
}

/// The error of a connection, in words.
fn why_gone(error: &io::Error) -> String {
    match error.kind() {
        // The standard library's words are about a buffer.
        io::ErrorKind::UnexpectedEof => "the other side closed it, or has ended".to_owned(),
        _ => error.to_string(),
    }
}

impl Hinted for WireError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Io(error) => error.hint(),
            Self::Refused(reason) => reason.hint.clone(),
        }
    }
}

type Hash = Hmac<Sha256>;

/// The largest message: summaries with every second of a day take a few megabytes.
const LARGEST: usize = 64 << 20;
/// The largest message before the peer has proven that it knows the token.
const LARGEST_UNPROVEN: usize = 4096;
const MAC: usize = 32;
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

impl Token {
    /// The token in a file's content, without white space at its ends.
    pub fn new(text: &[u8]) -> Result<Self, Reason> {
        let text = text.trim_ascii();
        if text.len() < 16 {
            let hint = "`openssl rand -hex 32 > FILE` makes one";
            return Err(Reason::new("a token has 16 bytes or more", hint));
        }
        Ok(Self(text.to_vec()))
    }

    /// Whether a text is this token. The time that this takes tells nothing of where they differ.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        Sha256::digest(&self.0) == Sha256::digest(text)
    }

    /// A new random token, as text of one line.
    ///
    /// # Errors
    /// Fails when the operating system provides no random bytes.
    pub fn fresh() -> io::Result<(Self, String)> {
        let text = nonce()?;
        Ok((Self(text.clone().into_bytes()), text))
    }

    fn mac(&self, what: &str, hello: &str, prove: &str) -> Hash {
        let mut mac = hash(&self.0);
        [what, "\n", hello, "\n", prove].iter().for_each(|part| mac.update(part.as_bytes()));
        mac
    }

    fn keys(&self, hello: &str, prove: &str) -> [Vec<u8>; 2] {
        ["to agent", "to controller"]
            .map(|way| self.mac(way, hello, prove).finalize().into_bytes().to_vec())
    }
}

fn hash(key: &[u8]) -> Hash {
    Hash::new_from_slice(key).expect("any length will do")
}

/// 32 random bytes in hexadecimal.
fn nonce() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(to_hex(&bytes))
}

/// Whether `given` is this MAC in hexadecimal; the comparison takes constant time.
fn proves(mac: Hash, given: &str) -> bool {
    from_hex(given).is_some_and(|given| mac.verify_slice(&given).is_ok())
}

/// The sending end of a connection.
pub(super) struct Sender<W> {
    to: W,
    key: Vec<u8>,
    number: u64,
}

/// The receiving end of a connection.
pub(super) struct Receiver<R> {
    from: R,
    key: Vec<u8>,
    number: u64,
}

fn seal(key: &[u8], number: u64, body: &[u8]) -> Hash {
    let mut mac = hash(key);
    mac.update(&number.to_be_bytes());
    mac.update(body);
    mac
}

impl<W: Write> Sender<W> {
    pub(super) fn send(&mut self, what: &impl Serialize) -> Result<(), WireError> {
        let body = serde_json::to_vec(what).expect("messages have text keys only");
        let mac = seal(&self.key, self.number, &body).finalize().into_bytes();
        self.number += 1;
        write_frame(&mut self.to, &mac, &body)
    }
}

impl<R: Read> Receiver<R> {
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<T, WireError> {
        let frame = frame(&mut self.from, LARGEST)?;
        let (mac, body) = frame.split_at_checked(MAC).ok_or_else(|| nonsense("a short frame"))?;
        seal(&self.key, self.number, body)
            .verify_slice(mac)
            .map_err(|_| not_proven("a frame's seal is wrong"))?;
        self.number += 1;
        parsed(body)
    }
}

/// The peer does not know the token.
fn not_proven(what: &str) -> WireError {
    WireError::Refused(Reason::new(what, "both sides need the same --token-file"))
}

/// The peer uses another protocol.
fn nonsense(what: &str) -> WireError {
    WireError::Refused(format!("what came is not of a tenuto agent: {what}").into())
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(body).map_err(|error| nonsense(&error.to_string()))
}

fn frame(from: &mut impl Read, largest: usize) -> Result<Vec<u8>, WireError> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let length = usize::try_from(u32::from_be_bytes(head)).unwrap_or(usize::MAX);
    // Before the memory is reserved: the length comes from a peer that may not have proven itself.
    if length > largest {
        return Err(nonsense("a frame that is too long"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(body)
}

fn plain(to: &mut impl Write, what: &impl Serialize) -> Result<(), WireError> {
    let body = serde_json::to_vec(what).expect("messages have text keys only");
    write_frame(to, &[], &body)
}

fn write_frame(to: &mut impl Write, mac: &[u8], body: &[u8]) -> Result<(), WireError> {
    let length = u32::try_from(mac.len() + body.len()).expect("far smaller");
    to.write_all(&length.to_be_bytes())?;
    to.write_all(mac)?;
    to.write_all(body)?;
    Ok(to.flush()?)
}

fn same(version: u32, program: &str) -> Result<(), WireError> {
    if version == VERSION && program == PROGRAM {
        return Ok(());
    }
    // The text comes from an unproven peer and goes to a terminal.
    let theirs: String = program.chars().filter(|c| !c.is_control()).take(40).collect();
    let message = format!(
        "the other side is tenuto {theirs} (protocol {version}), this is {PROGRAM} (protocol \
         {VERSION})"
    );
    Err(WireError::Refused(Reason::new(message, "use the same on both")))
}

type Ends<R, W> = (Receiver<R>, Sender<W>);

/// The agent's side of the handshake.
pub(super) fn accept<R: Read, W: Write>(
    mut from: R,
    mut to: W,
    token: &Token,
    about: About,
) -> Result<Ends<R, W>, WireError> {
    let nonce = nonce()?;
    let hello = Hello { version: VERSION, program: PROGRAM.to_owned(), nonce: nonce.clone() };
    plain(&mut to, &hello)?;
    let prove: Prove = parsed(&frame(&mut from, LARGEST_UNPROVEN)?)?;
    let mut refused = |why: WireError| {
        let _ = plain(&mut to, &Welcome::No(why.reason()));
        why
    };
    same(prove.version, &prove.program).map_err(&mut refused)?;
    if !proves(token.mac("controller", &nonce, &prove.nonce), &prove.mac) {
        return Err(refused(not_proven("the controller does not know the token")));
    }
    let mac = to_hex(&token.mac("agent", &nonce, &prove.nonce).finalize().into_bytes());
    plain(&mut to, &Welcome::Yes { mac, about })?;
    let [inward, outward] = token.keys(&nonce, &prove.nonce);
    Ok((Receiver { from, key: inward, number: 0 }, Sender { to, key: outward, number: 0 }))
}

/// The controller's side of the handshake.
pub(super) fn greet<R: Read, W: Write>(
    mut from: R,
    mut to: W,
    token: &Token,
) -> Result<(Ends<R, W>, About), WireError> {
    let hello: Hello = parsed(&frame(&mut from, LARGEST_UNPROVEN)?)?;
    same(hello.version, &hello.program)?;
    let nonce = nonce()?;
    let mac = to_hex(&token.mac("controller", &hello.nonce, &nonce).finalize().into_bytes());
    let prove = Prove { version: VERSION, program: PROGRAM.to_owned(), nonce: nonce.clone(), mac };
    plain(&mut to, &prove)?;
    let (mac, about) = match parsed(&frame(&mut from, LARGEST_UNPROVEN)?)? {
        Welcome::Yes { mac, about } => (mac, about),
        Welcome::No(why) => return Err(WireError::Refused(why)),
    };
    if !proves(token.mac("agent", &hello.nonce, &nonce), &mac) {
        return Err(not_proven("the agent does not know the token"));
    }
    let [outward, inward] = token.keys(&hello.nonce, &nonce);
    let ends = (Receiver { from, key: inward, number: 0 }, Sender { to, key: outward, number: 0 });
    Ok((ends, about))
}
