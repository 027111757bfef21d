//! Keys from a key server: SPEKE 2.0, in which the question and the answer are CPIX 2.3 documents.
//!
//! ```text
//!   title, content ─▶ number of each key (SHA-256)
//!                       │ POST: contentId, the numbers, scheme, which systems, which tracks
//!                       ▼
//!                   key server ──▶ each key in the clear, `pssh` and HLS attributes by system
//! ```
//!
//! The numbers follow from the title's name and content, so that each node and each restart asks
//! for the same keys. Keys come in the clear: the address is `https`, or of this machine. A server
//! that does not answer is not asked again for [`PAUSE`], since the thread that waits for it opens
//! titles for all; a title for which it gives no keys neither.
//!
//! Sources: AWS, "SPEKE API v2" (headers, constraints); DASH-IF, "CPIX 2.3". AWS, "Signature
//! Version 4" (requests to its API Gateway). Left out: keys that are encrypted in the document, and
//! rotation.

use super::system;
use crate::outgoing;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use media::{ContentKey, DrmSystem, EncryptionScheme, HlsSignaling, KeyAccess, uuid};
use ring::digest::{Context, SHA256};
use roxmltree::{Document, Node};
use s3::Signer;
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use ureq::Agent;
use ureq::http::Uri;

/// A key server, and what it said.
pub(super) struct KeyServer {
    uri: Uri,
    access: KeyServerAccess,
    systems: Vec<[u8; 16]>,
    agent: Agent,
    said: Mutex<Said>,
}

/// How a key server knows who asks.
pub(super) enum KeyServerAccess {
    /// Everybody may ask.
    Open,
    /// By the value of the `Authorization` field.
    Authorization(String),
    /// By the signature of each question, as a service of AWS wants it.
    Signature {
        /// The credentials.
        signer: Signer,
        /// The service's name: `execute-api` for the API Gateway.
        service: String,
    },
}

/// What a key server gives for a title.
#[derive(Clone, Debug)]
pub(super) struct GivenKeys {
    pub(super) video: ContentKey,
    pub(super) audio: ContentKey,
    pub(super) systems: Vec<DrmSystem>,
}

#[derive(Default)]
struct Said {
    /// The last answers, the newest last; a failure counts until its time.
    answers: VecDeque<(KeyRequest, KeyAnswer)>,
    /// Until when the server is not asked, since it did not answer, and why.
    silent: Option<(Instant, String)>,
}

type KeyAnswer = Result<GivenKeys, (Instant, String)>;

/// What a server is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyRequest {
    title: String,
    /// The numbers of the keys of video and of sound.
    ids: [[u8; 16]; 2],
}

/// Why there are no keys.
enum NoKeys {
    /// The server did not answer.
    Silent(String),
    /// The server answered otherwise.
    Refused(String),
}

impl KeyServer {
    /// A server at this address; the error says what is wrong with the address, after its text.
    pub(super) fn new(
        url: &str,
        access: KeyServerAccess,
        systems: Vec<[u8; 16]>,
    ) -> Result<Self, String> {
        let uri = outgoing::parse_address(url)?;
        let is_here = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if uri.scheme_str() != Some("https") && !is_here {
            return Err("is not https: keys would cross the network in the clear".to_owned());
        }
        match &access {
            KeyServerAccess::Authorization(text) if !text.chars().all(is_of_a_field) => {
                return Err("has an authorization that is not one line of ASCII".to_owned());
            }
            KeyServerAccess::Signature { .. } if !uri.path().chars().all(is_signed_as_it_is) => {
                return Err("has a path with other characters than A-Z a-z 0-9 / - . _ ~, which \
                            cannot be signed"
                    .to_owned());
            }
            _ => {}
        }
        let agent = outgoing::agent(url, PATIENCE)?;
        Ok(Self { uri, access, systems, agent, said: Mutex::default() })
    }

    /// The keys of a title with this content. May wait for [`PATIENCE`].
    pub(super) fn keys(
        &self,
        scheme: EncryptionScheme,
        title: &str,
        content: &str,
    ) -> Result<GivenKeys, String> {
        let ids = ["VIDEO", "AUDIO"].map(|kind| key_id(title, content, kind));
        self.answer(KeyRequest { title: title.to_owned(), ids }, Instant::now(), |asked| {
            let answer = self.ask(&question(scheme, asked, &self.systems))?;
            read(&answer, scheme, asked).map_err(NoKeys::Refused)
        })
    }

    /// What is known at `now`, or what `ask` says.
    fn answer(
        &self,
        asked: KeyRequest,
        now: Instant,
        ask: impl FnOnce(&KeyRequest) -> Result<GivenKeys, NoKeys>,
    ) -> Result<GivenKeys, String> {
        {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.answers.retain(|(_, answer)| !matches!(answer, Err((until, _)) if *until <= now));
            if let Some((_, answer)) = said.answers.iter().find(|(other, _)| *other == asked) {
                return answer.clone().map_err(|(_, why)| why);
            }
            if said.silent.as_ref().is_some_and(|(until, _)| *until <= now) {
                said.silent = None;
            }
            if let Some((_, why)) = &said.silent {
                return Err(why.clone());
            }
        }
        // Titles are opened by one thread, so that nobody asks for the same meanwhile.
        let answer = ask(&asked);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let until = now + PAUSE;
        let (kept, result) = match answer {
            Ok(given) => (Ok(given.clone()), Ok(given)),
            Err(NoKeys::Refused(why)) => (Err((until, why.clone())), Err(why)),
            Err(NoKeys::Silent(why)) => {
                said.silent = Some((until, why.clone()));
                return Err(why);
            }
        };
        if said.answers.len() >= MOST_ANSWERS {
            said.answers.pop_front();
        }
        said.answers.push_back((asked, kept));
        result
    }

    fn ask(&self, question: &str) -> Result<String, NoKeys> {
        let mut request = self
            .agent
            .post(self.uri.clone())
            .header("Content-Type", XML)
            .header("X-Speke-Version", SPEKE);
        let fields = match &self.access {
            KeyServerAccess::Open => Vec::new(),
            KeyServerAccess::Authorization(value) => vec![("authorization", value.clone())],
            KeyServerAccess::Signature { signer, service } => {
                let body = (XML, question.as_bytes());
                signer.headers_of_post(service, &self.uri, body, SystemTime::now())
            }
        };
        for (name, value) in fields {
            request = request.header(name, value);
        }
        let silent = |error: ureq::Error| NoKeys::Silent(format!("no answer: {error}"));
        let mut answer = request.send(question).map_err(silent)?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string();
        match body {
            Ok(body) if status.is_success() => Ok(body),
            Ok(body) => {
                let text: String = body.chars().take(SHOWN).collect();
                Err(NoKeys::Refused(format!("{status}: {}", text.escape_debug())))
            }
            Err(error) => Err(silent(error)),
        }
    }
}

/// Whether a field of HTTP may have a character in its value.
fn is_of_a_field(c: char) -> bool {
    c.is_ascii_graphic() || c == ' '
}

/// Whether a character of a path is the same in what is signed, whatever the service.
fn is_signed_as_it_is(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/-._~".contains(c)
}

/// The number of a key: a UUID of version 8 (RFC 9562), which says nothing of the key.
fn key_id(title: &str, content: &str, kind: &str) -> [u8; 16] {
    let mut hash = Context::new(&SHA256);
    for part in ["tenuto", title, content, kind] {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finish().as_ref()[..16]);
    id[6] = 0x80 | id[6] & 0x0f;
    id[8] = 0x80 | id[8] & 0x3f;
    id
}

/// The document that asks for the keys of a title and for what these systems say of them.
fn question(scheme: EncryptionScheme, asked: &KeyRequest, systems: &[[u8; 16]]) -> String {
    let [video, audio] = asked.ids.map(|id| uuid(&id));
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <cpix:CPIX contentId=\"{}\" version=\"2.3\" xmlns:cpix=\"{CPIX}\" xmlns:pskc=\"{PSKC}\">\n\
         <cpix:ContentKeyList>\n",
        escaped(&asked.title)
    );
    // Writing to a string cannot fail.
    for id in [&video, &audio] {
        let scheme = scheme.name();
        let _ = writeln!(
            text,
            "<cpix:ContentKey kid=\"{id}\" commonEncryptionScheme=\"{scheme}\"></cpix:ContentKey>"
        );
    }
    text.push_str("</cpix:ContentKeyList>\n<cpix:DRMSystemList>\n");
    for system in systems {
        let pssh = if *system == FAIRPLAY { "" } else { "<cpix:PSSH></cpix:PSSH>" };
        for id in [&video, &audio] {
            let _ = writeln!(
                text,
                "<cpix:DRMSystem kid=\"{id}\" systemId=\"{}\">{pssh}\
                 <cpix:HLSSignalingData playlist=\"media\"></cpix:HLSSignalingData>\
                 <cpix:HLSSignalingData playlist=\"master\"></cpix:HLSSignalingData>\
                 </cpix:DRMSystem>",
                uuid(system)
            );
        }
    }
    text.push_str("</cpix:DRMSystemList>\n<cpix:ContentKeyUsageRuleList>\n");
    for (id, kind, filter) in [(&video, "VIDEO", "Video"), (&audio, "AUDIO", "Audio")] {
        let _ = writeln!(
            text,
            "<cpix:ContentKeyUsageRule kid=\"{id}\" intendedTrackType=\"{kind}\">\
             <cpix:{filter}Filter></cpix:{filter}Filter></cpix:ContentKeyUsageRule>"
        );
    }
    text.push_str("</cpix:ContentKeyUsageRuleList>\n</cpix:CPIX>\n");
    text
}

/// A text as the value of an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 has no form for other control characters.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The keys and systems of an answer.
fn read(answer: &str, scheme: EncryptionScheme, asked: &KeyRequest) -> Result<GivenKeys, String> {
    let document = Document::parse(answer)
        .map_err(|error| format!("the answer is no XML document: {error}"))?;
    let root = document.root_element();
    if !root.has_tag_name((CPIX, "CPIX")) {
        return Err("the answer is no CPIX document".to_owned());
    }
    let key = |number: usize| {
        let id = asked.ids[number];
        let key = content_key(&root, scheme, &id)?;
        Ok::<_, String>(ContentKey { id, key, access: KeyAccess::Systems })
    };
    let (video, audio) = (key(0)?, key(1)?);
    let mut systems = Vec::new();
    for node in elements(&root, "DRMSystem") {
        let id = attribute(&node, "systemId")?;
        let key_id = attribute(&node, "kid")?;
        let named = |why: &str| format!("DRM system {}: {why}", uuid(&id));
        if !asked.ids.contains(&key_id) {
            return Err(named("it is about a key that was not asked for"));
        }
        let pssh = match child_text(&node, "PSSH") {
            Some(text) => {
                let given = system(&text).map_err(|why| named(&why))?;
                if given.id != id {
                    return Err(named("its pssh box is of another system"));
                }
                given.pssh
            }
            None => Vec::new(),
        };
        let hls = signaling(&node, scheme).map_err(|why| named(&why))?;
        if pssh.is_empty() && hls.is_none() {
            return Err(named("it has neither a pssh box nor attributes for HLS"));
        }
        systems.push(DrmSystem { id, key_id: Some(key_id), pssh, hls });
    }
    Ok(GivenKeys { video, audio, systems })
}

fn content_key(
    root: &Node<'_, '_>,
    scheme: EncryptionScheme,
    id: &[u8; 16],
) -> Result<[u8; 16], String> {
    let shown = uuid(id);
    let node = elements(root, "ContentKey")
        .find(|node| attribute(node, "kid").is_ok_and(|kid| kid == *id))
        .ok_or_else(|| format!("the answer has no key {shown}"))?;
    let given = node.attribute("commonEncryptionScheme").unwrap_or(scheme.name());
    if given != scheme.name() {
        return Err(format!("key {shown} is for the scheme '{}'", given.escape_debug()));
    }
    let value = node.descendants().find(|node| node.has_tag_name((PSKC, "PlainValue")));
    let Some(value) = value else {
        let is_encrypted =
            node.descendants().any(|node| node.has_tag_name((PSKC, "EncryptedValue")));
        return Err(match is_encrypted {
            true => format!("key {shown} is encrypted in the answer, which is not understood"),
            false => format!("the answer has no value of key {shown}"),
        });
    };
    let bytes = BASE64_STANDARD.decode(value.text().unwrap_or_default().trim()).ok();
    let key: Option<[u8; 16]> = bytes.and_then(|bytes| bytes.try_into().ok());
    let key = key.ok_or_else(|| format!("the value of key {shown} is not 16 bytes in base64"))?;
    // Everybody sees the number.
    if key == *id { Err(format!("key {shown} is its number")) } else { Ok(key) }
}

/// What a system says for HLS, if it says something.
fn signaling(
    node: &Node<'_, '_>,
    scheme: EncryptionScheme,
) -> Result<Option<HlsSignaling>, String> {
    let of = |playlist: &str| {
        let is_it = |it: &Node<'_, '_>| {
            it.has_tag_name((CPIX, "HLSSignalingData"))
                && it.attribute("playlist").unwrap_or("media") == playlist
        };
        node.children().find(is_it).and_then(|it| text_of(&it))
    };
    let Some(media) = of("media") else { return Ok(None) };
    let media = attributes(&media, "#EXT-X-KEY:", scheme)?;
    let multivariant = match of("master") {
        Some(text) => attributes(&text, "#EXT-X-SESSION-KEY:", scheme)?,
        None => media.clone(),
    };
    Ok(Some(HlsSignaling { media, multivariant }))
}

/// The attributes of a tag in base64.
fn attributes(base64: &str, tag: &str, scheme: EncryptionScheme) -> Result<String, String> {
    let bytes = BASE64_STANDARD.decode(base64).ok().and_then(|it| String::from_utf8(it).ok());
    let text = bytes.ok_or("its HLSSignalingData is no text in base64")?;
    let given = text.lines().find_map(|line| line.trim().strip_prefix(tag));
    let given = given.ok_or_else(|| format!("its HLSSignalingData has no {tag}"))?;
    let method = match scheme {
        EncryptionScheme::Cenc => "METHOD=SAMPLE-AES-CTR",
        EncryptionScheme::Cbcs => "METHOD=SAMPLE-AES",
    };
    if !given.split(',').any(|it| it == method) {
        return Err(format!("its HLSSignalingData has not {method}"));
    }
    let is_plain = given.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    if !is_plain || given.len() > LONGEST_TAG || !given.contains("URI=\"") {
        return Err("its HLSSignalingData has no URI, or is no tag".to_owned());
    }
    if !given.contains("KEYFORMAT=\"") || given.contains("KEYFORMAT=\"identity\"") {
        return Err("its HLSSignalingData names no system in KEYFORMAT".to_owned());
    }
    Ok(given.to_owned())
}

fn elements<'a, 'i>(
    root: &Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> + use<'a, 'i> {
    root.descendants().filter(move |node| node.has_tag_name((CPIX, name)))
}

/// An attribute that is a UUID.
fn attribute(node: &Node<'_, '_>, name: &str) -> Result<[u8; 16], String> {
    let given = node.attribute(name).and_then(super::bytes);
    given.ok_or_else(|| format!("{} has no {name} that is a UUID", node.tag_name().name()))
}

fn child_text(node: &Node<'_, '_>, name: &str) -> Option<String> {
    node.children().find(|it| it.has_tag_name((CPIX, name))).and_then(|it| text_of(&it))
}

/// The text of an element without white space; `None` for an empty one.
fn text_of(node: &Node<'_, '_>) -> Option<String> {
    let text: String = node.text().unwrap_or_default().split_whitespace().collect();
    Some(text).filter(|text| !text.is_empty())
}

const SPEKE: &str = "2.0";
const XML: &str = "application/xml";
const CPIX: &str = "urn:dashif:org:cpix";
const PSKC: &str = "urn:ietf:params:xml:ns:keyprov:pskc";

/// Apple's, which has no `pssh` box.
const FAIRPLAY: [u8; 16] = 0x94ce_86fb_07ff_4f43_adb8_93d2_fa96_8ca2_u128.to_be_bytes();

/// Time for one question.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time for which a server that does not answer, or a title without keys, is not asked for again.
const PAUSE: Duration = Duration::from_secs(10);
/// Answers that are kept.
const MOST_ANSWERS: usize = 1024;
/// Bytes of an answer, at most.
const LONGEST_ANSWER: u64 = 256 << 10;
/// Characters of a refusal that are shown.
const SHOWN: usize = 200;
/// Characters of the attributes of a tag, at most.
const LONGEST_TAG: usize = 8 << 10;

#[cfg(test)]
mod tests;
