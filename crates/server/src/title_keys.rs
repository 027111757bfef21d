//! Which titles are encrypted for players, and with which keys.
//!
//! A [`KeyProvider`] is asked when a title is opened; whatever it does takes place on the opener
//! thread, so that it may ask another machine. There is one provider, a file ([`TitleKeyFile`]),
//! which has keys, or names a key server that has them ([`speke`]):
//!
//! ```toml
//! [[key]]
//! titles = "films/*"              # `*`: any characters; the first entry that matches counts
//! scheme = "cbcs"                 # or "cenc"
//! key_id = "6f3c...32 digits"
//! key = "0a1b...32 digits"
//! address = "https://..."         # where players get the key; without it from this server
//! audio = { key_id = "...", key = "...", address = "..." }      # where sound has another key
//! systems = [{ pssh = "AAAA...base64" }]                        # of DRM systems
//!
//! [[key]]
//! titles = "series/*"
//! scheme = "cbcs"
//! server = "https://keys.example/speke/v2.0/copyProtection"     # SPEKE 2.0
//! authorization = "Bearer ..."                                  # the field that it wants; or
//! sign = { region = "...", access_key = "...", secret_key = "..." }         # as AWS wants it
//! systems = [{ id = "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed" }]   # of which it is asked
//! ```
//!
//! Keys are in no log line, no error, no status and no metric: errors name the place in the file.

mod speke;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_service::is_exposed;
use media::{ContentKey, DrmSystem, Encryption, EncryptionScheme, HlsSignaling, KeyAccess};
use ring::digest::{Context, SHA256};
use s3::Signer;
use serde::Deserialize;
use speke::{GivenKeys, KeyServer, KeyServerAccess};
use std::fmt;
use std::fs;
use std::path::Path;
use units::Reason;

/// Gives the keys of titles.
pub(crate) trait KeyProvider: fmt::Debug + Send + Sync {
    /// Whether the title `name` is encrypted.
    fn is_encrypted(&self, name: &str) -> bool;

    /// Whether another machine is asked for the keys of the title `name`.
    fn asks_for(&self, name: &str) -> bool;

    /// How the title `name` with this content is encrypted; `None`: it is sent in the clear.
    ///
    /// # Errors
    /// It is to be encrypted, and there are no keys; the reason.
    fn encryption(&self, name: &str, content: &str) -> Result<Option<Encryption>, String>;
}

/// Keys of a file, which is read once.
pub(crate) struct TitleKeyFile {
    entries: Vec<Entry>,
}

impl fmt::Debug for TitleKeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries with keys", self.entries.len())
    }
}

struct Entry {
    titles: String,
    scheme: EncryptionScheme,
    source: KeySource,
}

enum KeySource {
    File(GivenKeys),
    Server(Box<KeyServer>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    #[serde(default)]
    key: Vec<EntryForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryForm {
    titles: String,
    scheme: String,
    key_id: Option<String>,
    key: Option<String>,
    address: Option<String>,
    audio: Option<KeyForm>,
    server: Option<String>,
    authorization: Option<String>,
    sign: Option<SignForm>,
    #[serde(default)]
    systems: Vec<SystemForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyForm {
    key_id: String,
    key: String,
    address: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignForm {
    region: String,
    access_key: String,
    secret_key: String,
    service: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SystemForm {
    pssh: Option<String>,
    id: Option<String>,
}

impl TitleKeyFile {
    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| matches(&entry.titles, name))
    }

    /// Reads a file of keys.
    pub(crate) fn read(path: &Path) -> Result<Self, Reason> {
        let shown = path.display();
        let unreadable = |error| {
            Reason::new(
                format!("the keys of titles could not be read from {shown}: {error}"),
                "name a file that the server may read",
            )
        };
        let about = fs::metadata(path).map_err(unreadable)?;
        if is_exposed(&about) {
            let why = format!("{shown} holds secrets and can be read by other users");
            return Err(Reason::new(why, format!("chmod 600 {shown}")));
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&text).map_err(|why| {
            let hint = "docs/guide/serve.md, \"Encrypted titles\", has an example";
            Reason::new(format!("{shown} is no file of keys: {why}"), hint)
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let form: FileForm = toml::from_str(text).map_err(|error| {
            // The whole message would show the line, which may have a key.
            let line = error.span().map_or(1, |at| 1 + text[..at.start].matches('\n').count());
            format!("line {line}: {}", error.message())
        })?;
        if form.key.is_empty() {
            return Err("it has no [[key]]".to_owned());
        }
        let entries = form.key.into_iter().enumerate().map(|(number, entry)| {
            let named = |why| format!("[[key]] {} ({:?}): {why}", number + 1, entry.titles);
            Entry::of(&entry).map_err(named)
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        one_key_for_each_id(&entries)?;
        Ok(Self { entries })
    }
}

/// Two keys with one number would leave a player with the wrong one.
fn one_key_for_each_id(entries: &[Entry]) -> Result<(), String> {
    let of_file = entries.iter().filter_map(|entry| match &entry.source {
        KeySource::File(given) => Some([&given.video, &given.audio]),
        KeySource::Server(_) => None,
    });
    let keys: Vec<&ContentKey> = of_file.flatten().collect();
    for (i, key) in keys.iter().enumerate() {
        if keys[..i].iter().any(|other| other.id == key.id && other.key != key.key) {
            return Err(format!("key_id {} stands for two keys", media::uuid(&key.id)));
        }
    }
    Ok(())
}

impl KeyProvider for TitleKeyFile {
    fn is_encrypted(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    fn asks_for(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| matches!(entry.source, KeySource::Server(_)))
    }

    fn encryption(&self, name: &str, content: &str) -> Result<Option<Encryption>, String> {
        let Some(entry) = self.entry(name) else { return Ok(None) };
        let GivenKeys { video, audio, systems } = match &entry.source {
            KeySource::File(given) => given.clone(),
            KeySource::Server(server) => server.keys(entry.scheme, name, content)?,
        };
        let (scheme, content) = (entry.scheme, content.to_owned());
        Ok(Some(Encryption { scheme, video, audio, systems, content }))
    }
}

impl Entry {
    fn of(form: &EntryForm) -> Result<Self, String> {
        if form.titles.is_empty() {
            return Err("titles is empty; \"*\" is all titles".to_owned());
        }
        let scheme = match &*form.scheme {
            "cenc" => EncryptionScheme::Cenc,
            "cbcs" => EncryptionScheme::Cbcs,
            _ => return Err("scheme is \"cbcs\" or \"cenc\"".to_owned()),
        };
        let source = match &form.server {
            Some(server) => KeySource::Server(Box::new(form.key_server(server)?)),
            None => KeySource::File(form.keys()?),
        };
        Ok(Self { titles: form.titles.clone(), scheme, source })
    }
}

impl EntryForm {
    fn key_server(&self, url: &str) -> Result<KeyServer, String> {
        let of_keys = [&self.key_id, &self.key, &self.address];
        if of_keys.iter().any(|it| it.is_some()) || self.audio.is_some() {
            return Err("the key server gives key_id, key, address and audio".to_owned());
        }
        let ids = self.systems.iter().map(|form| {
            let id = form.id.as_deref().filter(|_| form.pssh.is_none()).and_then(bytes);
            id.ok_or("systems: of a key server each has an id, a UUID")
        });
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        if ids.is_empty() {
            return Err("systems is missing: players get the keys from these alone".to_owned());
        }
        let access = match (&self.authorization, &self.sign) {
            (Some(_), Some(_)) => {
                return Err("authorization and sign are two ways; give one".to_owned());
            }
            (Some(value), None) => KeyServerAccess::Authorization(value.clone()),
            (None, Some(form)) => form.signature()?,
            (None, None) => KeyServerAccess::Open,
        };
        KeyServer::new(url, access, ids)
            .map_err(|why| format!("server: {} {why}", url.escape_debug()))
    }

    fn keys(&self) -> Result<GivenKeys, String> {
        if self.authorization.is_some() || self.sign.is_some() {
            return Err("authorization and sign are of a server, and none is named".to_owned());
        }
        let given = |name: &str, value: &Option<String>| {
            value.clone().ok_or_else(|| format!("{name} is missing, or a server that gives it"))
        };
        let (id, key) = (given("key_id", &self.key_id)?, given("key", &self.key)?);
        let video = content_key(&id, &key, self.address.as_ref())?;
        let audio = self.audio.as_ref().map_or_else(
            || Ok(video.clone()),
            |it| {
                content_key(&it.key_id, &it.key, it.address.as_ref())
                    .map_err(|why| format!("audio: {why}"))
            },
        )?;
        let systems = self.systems.iter().map(|form| match (&form.pssh, &form.id) {
            (Some(pssh), None) => system(pssh).map_err(|why| format!("systems: {why}")),
            _ => Err("systems: each has a pssh".to_owned()),
        });
        Ok(GivenKeys { video, audio, systems: systems.collect::<Result<_, _>>()? })
    }
}

impl SignForm {
    fn signature(&self) -> Result<KeyServerAccess, String> {
        let service = self.service.as_deref().unwrap_or(API_GATEWAY).to_owned();
        let given = [&self.region, &self.access_key, &service];
        let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        if !given.iter().all(|text| is_word(text)) || self.secret_key.is_empty() {
            return Err("sign: each value is one word of ASCII".to_owned());
        }
        let (key, secret) = (self.access_key.clone(), self.secret_key.clone());
        let signer = Signer::new(self.region.clone(), key, secret);
        Ok(KeyServerAccess::Signature { signer, service })
    }
}

fn content_key(id: &str, key: &str, address: Option<&String>) -> Result<ContentKey, String> {
    let hex = |name: &str, text: &str| {
        bytes(text).ok_or_else(|| format!("{name} is not 16 bytes in hexadecimal digits"))
    };
    let (id, key) = (hex("key_id", id)?, hex("key", key)?);
    if id == key {
        return Err("key_id is the key itself, and everybody sees key_id".to_owned());
    }
    if let Some(address) = address
        && !(address.contains(':')
            && address.chars().all(|c| c.is_ascii_graphic() && !"\"<>&".contains(c)))
    {
        let why = "address is no absolute URL in ASCII without quotes, <, > and &";
        return Err(why.to_owned());
    }
    let access = address.cloned().map_or(KeyAccess::Server, KeyAccess::Address);
    Ok(ContentKey { id, key, access })
}

/// 16 bytes in hexadecimal digits, which may be grouped with `-` as a UUID.
fn bytes(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = is_hex.then(|| u128::from_str_radix(&digits, 16).ok()).flatten()?;
    Some(value.to_be_bytes())
}

/// A system by its `pssh` box (ISO/IEC 23001-7, 8.1).
fn system(pssh: &str) -> Result<DrmSystem, String> {
    let wrong = || "pssh is not one pssh box in base64".to_owned();
    let pssh = BASE64_STANDARD.decode(pssh).map_err(|_| wrong())?;
    let size = u32::try_from(pssh.len()).map_err(|_| wrong())?;
    let is_box = pssh.starts_with(&size.to_be_bytes()) && pssh.get(4..8) == Some(b"pssh");
    let id = pssh.get(12..28).filter(|_| is_box && pssh.len() >= SHORTEST_PSSH);
    let id = id.and_then(|id| id.try_into().ok()).ok_or_else(wrong)?;
    Ok(DrmSystem { id, key_id: None, pssh, hls: None })
}

/// Whether a title's name is what a pattern describes, in which `*` is any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(before) else { return false };
    loop {
        if matches(after, rest) {
            return true;
        }
        let Some(next) = rest.chars().next() else { return false };
        rest = &rest[next.len_utf8()..];
    }
}

/// What distinguishes the bytes of a title that is encrypted in this way; says nothing of the keys.
pub(crate) fn version(encryption: &Encryption) -> String {
    let mut hash = Context::new(&SHA256);
    for key in [&encryption.video, &encryption.audio] {
        hash.update(&key.id);
        hash.update(&key.key);
        if let KeyAccess::Address(address) = &key.access {
            hash.update(address.as_bytes());
        }
        hash.update(&[0]);
    }
    for system in &encryption.systems {
        hash.update(&system.pssh);
        if let Some(HlsSignaling { media, multivariant }) = &system.hls {
            hash.update(format!("{media}\n{multivariant}\n").as_bytes());
        }
    }
    let hash = hash.finish();
    let digits: String = hash.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digits}", encryption.scheme.name())
}

/// The name by which requests to AWS's API Gateway are signed, behind which key servers are.
const API_GATEWAY: &str = "execute-api";
/// Bytes of a `pssh` without keys and data.
const SHORTEST_PSSH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "[[key]]\ntitles = \"film*\"\nscheme = \"cbcs\"\n\
        key_id = \"00000000-0000-0000-0000-0000000000aa\"\n\
        key = \"5ec2e7000000000000000000000000ff\"\n";
    const SYSTEM: &str = "systems = [{ id = \"edef8ba9-79d6-4ace-a3c8-27dcd51d21ed\" }]\n";
    const SIGN: &str =
        "sign = { region = \"eu-west-1\", access_key = \"AKID\", secret_key = \"5ec2e7\" }\n";

    #[test]
    fn the_first_entry_that_matches_counts() {
        let other = ENTRY.replace("film*", "*").replace("cbcs", "cenc").replace("aa\"", "bb\"");
        let keys = TitleKeyFile::parse(&format!("{ENTRY}{other}")).unwrap();
        let scheme = |name| keys.encryption(name, "").unwrap().unwrap().scheme;
        assert_eq!(scheme("film one"), EncryptionScheme::Cbcs);
        assert_eq!(scheme("a film"), EncryptionScheme::Cenc);
        assert!(!TitleKeyFile::parse(ENTRY).unwrap().is_encrypted("a film"));
        let shown = format!("{keys:?} {:?}", keys.encryption("film", ""));
        assert!(!shown.to_lowercase().contains("5ec2"), "{shown}");
        assert!(!shown.contains("94, 194"), "{shown}");
    }

    #[test]
    fn patterns_are_names_with_any_characters_in_places() {
        for (pattern, name, wanted) in [
            ("film", "film", true),
            ("film", "film 2", false),
            ("*", "", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
            ("*ä", "xä", true),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }

    #[test]
    fn the_version_changes_with_each_part_and_shows_no_key() {
        let of = |text: &str| {
            version(&TitleKeyFile::parse(text).unwrap().encryption("film", "").unwrap().unwrap())
        };
        let first = of(ENTRY);
        for (from, to) in [("cbcs", "cenc"), ("aa\"", "ab\""), ("ff\"", "fe\"")] {
            assert_ne!(of(&ENTRY.replace(from, to)), first, "{to}");
        }
        assert_ne!(of(&format!("{ENTRY}address = \"https://a/b\"\n")), first);
        assert!(!first.contains("5ec2"), "{first}");
    }

    #[test]
    fn each_mistake_of_a_file_is_named_without_the_key() {
        let with = |line: &str| format!("{ENTRY}{line}\n");
        let server = |lines: &str| {
            format!("[[key]]\ntitles = \"*\"\nscheme = \"cbcs\"\nserver = \"https://a/b\"\n{lines}")
        };
        let audio = "audio = { key_id = \"00000000-0000-0000-0000-0000000000aa\", \
                     key = \"5ec2e7000000000000000000000000fe\" }";
        let table = [
            (String::new(), "no [[key]]"),
            ("key = 5".to_owned(), "line 1"),
            (ENTRY.replace("scheme", "schema"), "line 3: unknown field `schema`"),
            (ENTRY.replace("cbcs", "cbc1"), "scheme is \"cbcs\" or \"cenc\""),
            (ENTRY.replace("film*", ""), "titles is empty"),
            (ENTRY.replace("ff\"", "f\""), "key is not 16 bytes"),
            (ENTRY.replace("ff\"", "fg\""), "key is not 16 bytes"),
            (ENTRY.replace("ff\"", "ff"), "line 5"),
            (ENTRY.replace("aa\"", "a\""), "key_id is not 16 bytes"),
            (ENTRY.replace("5ec2e7", "000000").replace("ff\"", "aa\""), "everybody sees key_id"),
            (with("address = \"keys\""), "address is no absolute URL"),
            (with("address = \"https://a/\\\"b\""), "address is no absolute URL"),
            (with(audio), "stands for two keys"),
            (with("audio = { key_id = \"1\", key = \"5ec2\" }"), "audio: key_id is not 16 bytes"),
            (with("systems = [{ pssh = \"AAAA\" }]"), "not one pssh box"),
            (with("systems = [{ pssh = \"?\" }]"), "not one pssh box"),
            (with("systems = [{ id = \"?\" }]"), "each has a pssh"),
            (with("authorization = \"5ec2\""), "none is named"),
            (with(SIGN), "none is named"),
            (server(&format!("{SYSTEM}{SIGN}authorization = \"5ec2\"\n")), "give one"),
            (server(&format!("{SYSTEM}{SIGN}")).replace("a/b", "a/%62"), "cannot be signed"),
            (server(&format!("{SYSTEM}{SIGN}")).replace("AKID", "AK ID"), "one word of ASCII"),
            (with("server = \"https://a/\""), "the key server gives key_id"),
            (ENTRY.replace("key = ", "#"), "key is missing"),
            (server(""), "systems is missing"),
            (server("systems = [{ pssh = \"AAAA\" }]"), "each has an id"),
            (server(SYSTEM).replace("https", "http"), "is not https"),
            (server(SYSTEM).replace("https:", "mailto:"), "begins neither with"),
            (server(&format!("{SYSTEM}authorization = \"5ec2\\n\"\n")), "not one line of ASCII"),
        ];
        for (text, wanted) in table {
            let said = TitleKeyFile::parse(&text).unwrap_err();
            assert!(said.contains(wanted), "{text}\n{said}");
            assert!(!said.contains("5ec2"), "{said}");
        }
    }
}
