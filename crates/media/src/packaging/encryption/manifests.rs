//! What manifests state of encryption: tags of HLS (RFC 8216, 4.3.2.4), descriptors of DASH
//! (ISO/IEC 23009-1, 5.8.4.1).
//!
//! Players get keys of the address that the provider states, or of this server at `key/ID` beside
//! the manifest, or of DRM systems alone. DASH has no descriptor for a key at an address: its
//! players are configured with keys, or with the address of a licence server, or use a system of
//! the provider.

use super::boxes::{COMMON_SYSTEM, common_system};
use super::{ContentKey, Encryption, EncryptionScheme, KeyAccess, uuid};
use crate::TrackKind;
use crate::packaging::Links;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::fmt::Write;

/// Writes the tags for tracks of this kind in their media playlist.
pub(in crate::packaging) fn write_hls_keys(
    out: &mut String,
    encryption: &Encryption,
    kind: TrackKind,
    query: &str,
) {
    write_tags(out, PlaylistTag::Key, encryption, encryption.key(kind), query.into());
}

/// Writes the tags of all keys in the multivariant playlist, by which players get them early.
pub(in crate::packaging) fn write_hls_session_keys(
    out: &mut String,
    encryption: &Encryption,
    links: Links<'_>,
) {
    let tag = PlaylistTag::SessionKey;
    encryption.keys().for_each(|key| write_tags(out, tag, encryption, key, links));
}

/// The tag of a key: of media playlists, of multivariant ones.
#[derive(Clone, Copy)]
enum PlaylistTag {
    Key,
    SessionKey,
}

fn write_tags(
    out: &mut String,
    tag: PlaylistTag,
    encryption: &Encryption,
    key: &ContentKey,
    links: Links<'_>,
) {
    let method = match encryption.scheme {
        EncryptionScheme::Cenc => "SAMPLE-AES-CTR",
        EncryptionScheme::Cbcs => "SAMPLE-AES",
    };
    let name = match tag {
        PlaylistTag::Key => "KEY",
        PlaylistTag::SessionKey => "SESSION-KEY",
    };
    // Writing to a string cannot fail.
    if let Some(address) = key_address(key, links) {
        let _ = writeln!(
            out,
            "#EXT-X-{name}:METHOD={method},URI=\"{address}\",KEYFORMAT=\"identity\",\
             KEYFORMATVERSIONS=\"1\""
        );
    }
    for system in encryption.systems_of(key) {
        if let Some(given) = &system.hls {
            let attributes = match tag {
                PlaylistTag::Key => &given.media,
                PlaylistTag::SessionKey => &given.multivariant,
            };
            let _ = writeln!(out, "#EXT-X-{name}:{attributes}");
            continue;
        }
        let (id, pssh) = (uuid(&system.id), BASE64_STANDARD.encode(&system.pssh));
        let _ = writeln!(
            out,
            "#EXT-X-{name}:METHOD={method},URI=\"data:text/plain;base64,{pssh}\",\
             KEYID=0x{},KEYFORMAT=\"urn:uuid:{id}\",KEYFORMATVERSIONS=\"1\"",
            uuid(&key.id).replace('-', "")
        );
    }
}

/// Where players get a key; `None`: from DRM systems alone.
pub(in crate::packaging) fn key_address(key: &ContentKey, links: Links<'_>) -> Option<String> {
    let Links { folder, query, .. } = links;
    match &key.access {
        KeyAccess::Server => Some(format!("{folder}key/{}{query}", uuid(&key.id))),
        KeyAccess::Address(address) => Some(address.clone()),
        KeyAccess::Systems => None,
    }
}

/// Writes the descriptors of a set of tracks of this kind.
pub(in crate::packaging) fn write_dash_protection(
    out: &mut String,
    encryption: &Encryption,
    kind: TrackKind,
) {
    let (key, scheme) = (encryption.key(kind), encryption.scheme.name());
    let _ = writeln!(
        out,
        "<ContentProtection schemeIdUri=\"urn:mpeg:dash:mp4protection:2011\" value=\"{scheme}\" \
         cenc:default_KID=\"{}\"/>",
        uuid(&key.id)
    );
    let common = (COMMON_SYSTEM, common_system(std::iter::once(key)));
    let boxes = encryption.systems_of(key).filter(|system| !system.pssh.is_empty());
    let given = boxes.map(|system| (system.id, system.pssh.clone()));
    for (id, pssh) in std::iter::once(common).chain(given) {
        let (id, pssh) = (uuid(&id), BASE64_STANDARD.encode(pssh));
        let _ = writeln!(
            out,
            "<ContentProtection schemeIdUri=\"urn:uuid:{id}\"><cenc:pssh>{pssh}</cenc:pssh>\
             </ContentProtection>"
        );
    }
}
