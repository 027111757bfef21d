//! Content steering in a multivariant playlist (RFC 8216bis, 4.4.6.6): where the title is
//! also, and the names by which a steering server gives the addresses there.
//!
//! ```text
//!   #EXT-X-CONTENT-STEERING:SERVER-URI="..&names=1,0",PATHWAY-ID="n1"
//!   #EXT-X-MEDIA:...,URI="1.m3u8?s=T"            ,STABLE-RENDITION-ID="1"
//!   #EXT-X-STREAM-INF:...                        ,PATHWAY-ID="n1",STABLE-VARIANT-ID="0"
//!   0.m3u8?s=T
//! ```
//!
//! A name is the path of a media playlist in the folder of the title, without its extension, so
//! that a steering server knows the address at another server from it. Addresses are given one by
//! one and not by another host: servers may have other ports.

use super::ContentSteering;
use std::fmt::Write;

/// A multivariant playlist with what steering needs; `folder` is before all its addresses.
pub(super) fn with_steering(playlist: &str, folder: &str, steering: ContentSteering<'_>) -> String {
    let own = steering.own_pathway();
    let (mut head, mut body, mut names) = (String::new(), String::new(), Vec::new());
    let mut lines = playlist.lines().peekable();
    while let Some(line) = lines.next() {
        let (is_variant, has_address) = match line.split(':').next() {
            Some("#EXT-X-STREAM-INF") => (true, false),
            Some("#EXT-X-I-FRAME-STREAM-INF" | "#EXT-X-IMAGE-STREAM-INF") => (true, true),
            Some("#EXT-X-MEDIA") => (false, true),
            _ => {
                let of_head = names.is_empty() && body.is_empty();
                let to = if of_head { &mut head } else { &mut body };
                to.push_str(line);
                to.push('\n');
                continue;
            }
        };
        let address = match has_address {
            true => line.split_once("URI=\"").and_then(|(_, rest)| rest.split('"').next()),
            false => lines.peek().copied(),
        };
        body.push_str(line);
        let name = address.and_then(|address| name_of(address, folder));
        let kind = if is_variant { "VARIANT" } else { "RENDITION" };
        if is_variant {
            let _ = write!(body, ",PATHWAY-ID=\"{own}\"");
        }
        if let Some(name) = name {
            let _ = write!(body, ",STABLE-{kind}-ID=\"{name}\"");
            if !names.contains(&name) {
                names.push(name);
            }
        }
        body.push('\n');
    }
    let (server, names) = (steering.server_uri, names.join(","));
    format!(
        "{head}#EXT-X-CONTENT-STEERING:SERVER-URI=\"{server}{names}\",PATHWAY-ID=\"{own}\"\n\
         {body}"
    )
}

/// The name of a media playlist at an address.
fn name_of<'a>(address: &'a str, folder: &str) -> Option<&'a str> {
    let path = address.split('?').next()?;
    path.strip_prefix(folder)?.strip_suffix(".m3u8")
}
