//! A key server of SPEKE 2.0, by the text of its specification ("SPEKE API v2 — Customizations and
//! constraints to the DASH-IF specification") and of CPIX 2.3.
//!
//! What a question lacks is answered with 422 and the reason, as the specification has it. Keys
//! follow from their numbers ([`key_of`]), so that a test knows them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use roxmltree::{Document, Node};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A key server on an address of this machine, until the end of the test.
#[derive(Debug)]
pub struct KeyServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl KeyServer {
    /// Starts one that wants an `Authorization` field that begins so, and has keys for contents of
    /// these names. What is signed by AWS's Signature Version 4 has all fields that are signed; the
    /// signature is not verified.
    ///
    /// # Panics
    /// No address is free.
    pub fn start(authorization: &'static str, contents: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free address");
        let address = listener.local_addr().expect("bound");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&asked);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let _ = answer(connection, authorization, contents, &list);
            }
        });
        Self { address, asked }
    }

    /// The address that questions go to.
    pub fn url(&self) -> String {
        format!("http://{}/speke/v2.0/copyProtection", self.address)
    }

    /// The contents whose keys were asked for, in the order of the questions.
    ///
    /// # Panics
    /// The server's thread has panicked.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("the server runs").clone()
    }
}

/// The key of this number (32 hexadecimal digits or a UUID), in hexadecimal digits.
///
/// # Panics
/// It is no such number.
pub fn key_of(kid: &str) -> String {
    let digits: Vec<u8> = kid.bytes().filter(|byte| *byte != b'-').collect();
    assert_eq!(digits.len(), 32, "{kid}");
    String::from_utf8(digits.into_iter().rev().collect()).expect("digits")
}

fn answer(
    connection: TcpStream,
    authorization: &str,
    contents: &[&str],
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut input = BufReader::new(connection.try_clone()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? <= 2 {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let field = |name: &str| {
        let found = head.iter().skip(1).filter_map(|line| line.split_once(": "));
        found.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    };
    let length = field("Content-Length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    let question = String::from_utf8_lossy(&body);
    let (status, text) = if !head.first().is_some_and(|line| line.starts_with("POST ")) {
        (405, "POST alone".to_owned())
    } else if !field("Authorization").is_some_and(|it| it.starts_with(authorization)) {
        (401, "Authorization".to_owned())
    } else if let Some(missing) = field("Authorization").and_then(|it| unsent(it, &field)) {
        (403, format!("{missing} is signed and not sent"))
    } else if field("Content-Type") != Some("application/xml") {
        (415, "Content-Type".to_owned())
    } else if field("X-Speke-Version") != Some("2.0") {
        (422, "Unsupported SPEKE version".to_owned())
    } else {
        match keys(&question, contents, asked) {
            Ok(text) => (200, text),
            Err(why) => (422, why),
        }
    };
    let mut output = connection;
    write!(
        output,
        "HTTP/1.1 {status} -\r\nContent-Type: application/xml\r\nX-Speke-Version: 2.0\r\n\
         X-Speke-User-Agent: testkit\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// A field that an `Authorization` says to be signed, and that is not there.
fn unsent<'a>(authorization: &str, field: &impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let (_, rest) = authorization.split_once("SignedHeaders=")?;
    let names = rest.split(',').next().unwrap_or_default().split(';');
    names.map(str::to_owned).find(|name| field(name).is_none())
}

/// The answer to a question, or what the question lacks.
fn keys(question: &str, contents: &[&str], asked: &Mutex<Vec<String>>) -> Result<String, String> {
    let document = Document::parse(question).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if !root.has_tag_name((CPIX, "CPIX")) || root.attribute("version") != Some("2.3") {
        return Err("Unsupported CPIX@version".to_owned());
    }
    let content = root.attribute("contentId").ok_or("Missing CPIX@contentId")?;
    asked.lock().map_err(|_| "poisoned")?.push(content.to_owned());
    if !contents.contains(&content) {
        return Err(format!("no content {content}"));
    }
    let of = |list: &str, name: &'static str| -> Result<Vec<Node<'_, '_>>, String> {
        let mut lists = root.children().filter(|node| node.has_tag_name((CPIX, list)));
        let only = lists.next().ok_or_else(|| format!("Missing {list}"))?;
        if lists.next().is_some() {
            return Err(format!("several {list}"));
        }
        Ok(only.children().filter(|node| node.has_tag_name((CPIX, name))).collect())
    };
    let keys = of("ContentKeyList", "ContentKey")?;
    let systems = of("DRMSystemList", "DRMSystem")?;
    let rules = of("ContentKeyUsageRuleList", "ContentKeyUsageRule")?;
    let kid = |node: &Node<'_, '_>| {
        let kid = node.attribute("kid").filter(|kid| {
            let parts: Vec<usize> = kid.split('-').map(str::len).collect();
            parts == [8, 4, 4, 4, 12]
        });
        kid.map(str::to_owned).ok_or_else(|| format!("no kid in {node:?}"))
    };
    let mut out = format!(
        "<cpix:CPIX contentId=\"\" version=\"2.3\" xmlns:cpix=\"{CPIX}\" xmlns:pskc=\"{PSKC}\">\
         <cpix:ContentKeyList>"
    );
    let mut kids = Vec::new();
    for key in &keys {
        let scheme = key.attribute("commonEncryptionScheme").ok_or("no commonEncryptionScheme")?;
        let kid = kid(key)?;
        let value = BASE64_STANDARD.encode(bytes(&key_of(&kid)));
        let _ = write!(
            out,
            "<cpix:ContentKey kid=\"{kid}\" commonEncryptionScheme=\"{scheme}\"><cpix:Data>\
             <pskc:Secret><pskc:PlainValue>{value}</pskc:PlainValue></pskc:Secret></cpix:Data>\
             </cpix:ContentKey>"
        );
        kids.push(kid);
    }
    out.push_str("</cpix:ContentKeyList><cpix:DRMSystemList>");
    for system in &systems {
        let (kid, id) = (kid(system)?, system.attribute("systemId").ok_or("no systemId")?);
        if !kids.contains(&kid) {
            return Err(format!("DRMSystem of {kid}, which is no key"));
        }
        let _ = write!(out, "<cpix:DRMSystem kid=\"{kid}\" systemId=\"{id}\">");
        for child in system.children().filter(Node::is_element) {
            let _ = match (child.tag_name().name(), child.attribute("playlist")) {
                ("PSSH", None) if id == FAIRPLAY => return Err("FairPlay has no PSSH".to_owned()),
                ("PSSH", None) => {
                    let pssh = BASE64_STANDARD.encode(pssh(id, &kid));
                    write!(out, "<cpix:PSSH>{pssh}</cpix:PSSH>")
                }
                ("HLSSignalingData", Some(list @ ("media" | "master"))) => {
                    let tag = BASE64_STANDARD.encode(signaling(list, id, &kid));
                    write!(
                        out,
                        "<cpix:HLSSignalingData playlist=\"{list}\">{tag}</cpix:HLSSignalingData>"
                    )
                }
                (name, _) => return Err(format!("{name} in a DRMSystem")),
            };
        }
        out.push_str("</cpix:DRMSystem>");
    }
    out.push_str("</cpix:DRMSystemList><cpix:ContentKeyUsageRuleList>");
    for rule in &rules {
        let kind = rule.attribute("intendedTrackType").ok_or("no intendedTrackType")?;
        let filter = rule.children().find(Node::is_element).map(|node| node.tag_name().name());
        let is_right = match kind {
            "VIDEO" => filter == Some("VideoFilter"),
            "AUDIO" => filter == Some("AudioFilter"),
            _ => false,
        };
        if !is_right || !kids.contains(&kid(rule)?) {
            return Err(format!("the rule of {kind}"));
        }
    }
    if rules.len() != kids.len() {
        return Err("not one rule for each key".to_owned());
    }
    out.push_str("</cpix:ContentKeyUsageRuleList></cpix:CPIX>");
    Ok(out)
}

/// A `pssh` box of version 0 (ISO/IEC 23001-7, 8.1), whose data is the number of the key.
fn pssh(system: &str, kid: &str) -> Vec<u8> {
    let body = [&[0; 4], bytes(system).as_slice(), &16_u32.to_be_bytes(), &bytes(kid)].concat();
    let length = u32::try_from(8 + body.len()).expect("a small box");
    [&length.to_be_bytes(), b"pssh".as_slice(), &body].concat()
}

/// The tag of a key in a playlist.
fn signaling(list: &str, system: &str, kid: &str) -> String {
    let tag = if list == "media" { "#EXT-X-KEY" } else { "#EXT-X-SESSION-KEY" };
    let (address, format) = match system {
        FAIRPLAY => (format!("skd://{kid}"), "com.apple.streamingkeydelivery".to_owned()),
        _ => (format!("data:text/plain;base64,{kid}"), format!("urn:uuid:{system}")),
    };
    format!(
        "{tag}:METHOD=SAMPLE-AES,URI=\"{address}\",KEYFORMAT=\"{format}\",KEYFORMATVERSIONS=\"1\"\n"
    )
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| *byte != b'-').collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal digits")).collect()
}

const CPIX: &str = "urn:dashif:org:cpix";
const PSKC: &str = "urn:ietf:params:xml:ns:keyprov:pskc";
const FAIRPLAY: &str = "94ce86fb-07ff-4f43-adb8-93d2fa968ca2";
