//! How a director asks a node: the viewer's own request, with more headers.
//!
//! ```text
//!   viewer ──GET /t/film/master.m3u8──▶ director ──the same, and more headers─▶ node
//!                                          │        Tenuto-Client: 192.0.2.7
//!                                          │        Tenuto-Elsewhere: n2=http://10.0.0.2:80
//!                                          │        Tenuto-Steering: http://d/steer/film?node=n1
//!                                          │        Tenuto-Director: 5f2c..   HMAC of the question
//!   viewer ◀──302, Location──────────── director ◀──201, Location: ..?s=SESSION── node
//! ```
//!
//! The node reserves and answers 201 with the address of the session, or answers what it would
//! answer the viewer. The signature shows that the question comes from a director that has the
//! secret of the cluster, so that a node may believe the address of the viewer in it.
//!
//! Nodes ask each other for parts of titles in the same way (`Tenuto-Peer`), with the target alone
//! signed.
//!
//! A question that is recorded and sent again reserves again, as any request of a viewer does; the
//! limits of the node per client hold for it.

/// Header with the address of the viewer, as the director saw it.
pub const CLIENT_HEADER: &str = "Tenuto-Client";

/// Header with the address of the steering server that the manifest is to name.
pub const STEERING_HEADER: &str = "Tenuto-Steering";

/// Header with other nodes that have the title: `NAME=ADDRESS`, separated by commas.
pub const ELSEWHERE_HEADER: &str = "Tenuto-Elsewhere";

/// Header with the signature: HMAC-SHA-256 of the question in hexadecimal.
pub const SIGNATURE_HEADER: &str = "Tenuto-Director";

/// Header with the signature of a node that asks another one for a part of a title: HMAC-SHA-256 in
/// hexadecimal.
pub const PEER_HEADER: &str = "Tenuto-Peer";

/// The text that a node signs: path and query of its request for a part of a title. No question of
/// a director has the same text.
pub(crate) fn text_of_peer(target: &str) -> String {
    format!("part\n{target}\n")
}

/// A question as it is signed, with the headers and the target as the node received them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignedText<'a> {
    /// The address of the viewer.
    pub client: &'a str,
    /// Path and query, as sent to the node.
    pub target: &'a str,
    /// The address of the steering server; empty without the header.
    pub steering: &'a str,
    /// Other nodes that have the title; empty without the header.
    pub elsewhere: &'a str,
}

impl SignedText<'_> {
    /// The text that is signed. Headers and targets have no line ends, so that no two questions
    /// have the same text.
    pub(crate) fn text(&self) -> String {
        let Self { client, target, steering, elsewhere } = self;
        format!("admission\n{client}\n{target}\n{steering}\n{elsewhere}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::ClusterSecret;

    const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn a_signature_is_valid_for_its_client_target_and_secret() {
        let secret = ClusterSecret::from_bytes(SECRET).unwrap();
        let asked = SignedText {
            client: "192.0.2.7",
            target: "/t/film/master.m3u8?start=3",
            steering: "http://d/steer/film?node=n1",
            elsewhere: "n2=http://n2",
        };
        let signature = secret.sign(asked);
        // Of openssl: printf 'admission\n192.0.2.7\n/t/film/master.m3u8?start=3\n\
        // http://d/steer/film?node=n1\nn2=http://n2\n' |
        // openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
        assert_eq!(signature, OF_OPENSSL);
        let other = ClusterSecret::from_bytes(&[b'x'; 32]).unwrap();
        let changed = signature.replace('3', "4");
        let rows = [
            (&secret, asked, &*signature, true),
            (&other, asked, &signature, false),
            (&secret, SignedText { client: "192.0.2.8", ..asked }, &signature, false),
            (&secret, SignedText { target: "/t/film/master.m3u8", ..asked }, &signature, false),
            (&secret, SignedText { steering: "http://e/", ..asked }, &signature, false),
            (&secret, SignedText { elsewhere: "", ..asked }, &signature, false),
            (&secret, asked, &signature[2..], false),
            (&secret, asked, &changed, false),
            (&secret, asked, "", false),
            (&secret, asked, "no hex", false),
        ];
        for (secret, asked, signature, valid) in rows {
            assert_eq!(secret.verify(asked, signature), valid, "{asked:?}");
        }
    }

    const OF_OPENSSL: &str = "6bd20c498b24e14ea8c31acf874f3b4f567230aee959c9f8908cf8e77d2baf40";
}
