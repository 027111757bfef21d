//! Tickets: what lets a viewer who was admitted go on at another node.
//!
//! ```text
//!   node n1 ──manifest, with a ticket in its addresses──▶ player
//!   n1 is lost
//!   player ──GET /t/film/0/17.m4s?s=SESSION&ticket=...──▶ node n2: admits, under the same session
//! ```
//!
//! A ticket says what the first node has admitted: the title in this version, its part and form,
//! and what the access token of the viewer permitted. It is signed with the secret of the cluster,
//! so that another node need not know the access token. It reserves nothing: the other node decides
//! as for any viewer, and admits a session once.
//!
//! As text: JSON in base64url, a dot, and the first half of an HMAC-SHA-256 in base64url.

use crate::secret::ClusterSecret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;

/// The session of a viewer, for another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The token of the session.
    #[serde(rename = "s")]
    pub session: String,
    /// The name of the title.
    #[serde(rename = "t")]
    pub title: String,
    /// What the title has, and how it is packaged. Addresses of another version differ.
    #[serde(rename = "v")]
    pub version: String,
    /// The second of Unix time from which on the ticket is not valid.
    #[serde(rename = "e")]
    pub expires: u64,
    /// The form in which the title is sent: a word of the node's.
    #[serde(rename = "f")]
    pub form: String,
    /// The part of the title and the speed, as the query of a manifest.
    #[serde(rename = "q", default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// The greatest height of pictures that the viewer may see.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub max_height: Option<u32>,
    /// The priority of the viewer: a word of the node's.
    #[serde(rename = "p")]
    pub priority: String,
    /// The address of the viewer, where the access token is for it alone.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// Whose access token it is, as that says.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The own name of the access token.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    /// The second of Unix time at which the session ends; `None`: when the viewer leaves.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// A ticket that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// The text is no ticket, or the ticket of another cluster, or was changed.
    #[error("this is no ticket of this cluster")]
    Forged,
    /// The ticket is from earlier.
    #[error(
        "the ticket expired {} s ago by the clock of this node, which may differ from that of \
         the node before",
        .ago.as_secs()
    )]
    Expired {
        /// Time since it has expired.
        ago: Duration,
    },
}

impl Ticket {
    /// The ticket as text, with letters that an address may have.
    pub fn sign(&self, secret: &ClusterSecret) -> String {
        let json = serde_json::to_vec(self).expect("a ticket has text keys only");
        let payload = URL_SAFE_NO_PAD.encode(json);
        let tag = secret.tag(&signed(&payload));
        format!("{payload}.{}", URL_SAFE_NO_PAD.encode(&tag.as_ref()[..TAG]))
    }

    /// The ticket in a text, at this second of Unix time.
    ///
    /// # Errors
    /// A ticket that was not signed with this secret, or has expired.
    pub fn verify(text: &str, secret: &ClusterSecret, now: u64) -> Result<Self, TicketError> {
        let (payload, tag) = text.split_once('.').ok_or(TicketError::Forged)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| TicketError::Forged)?;
        if !secret.has_tag(&signed(payload), &tag, TAG) {
            return Err(TicketError::Forged);
        }
        let json = URL_SAFE_NO_PAD.decode(payload).map_err(|_| TicketError::Forged)?;
        let ticket: Self = serde_json::from_slice(&json).map_err(|_| TicketError::Forged)?;
        match now.checked_sub(ticket.expires) {
            Some(ago) => Err(TicketError::Expired { ago: Duration::from_secs(ago) }),
            None => Ok(ticket),
        }
    }
}

/// The text that is signed: no question has the same.
fn signed(payload: &str) -> String {
    format!("ticket\n{payload}\n")
}

/// Bytes of the signature that a ticket has: 128 bits, so that addresses stay short.
const TAG: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::SignedText;

    #[test]
    fn a_ticket_is_valid_until_it_expires_and_as_it_was_signed() {
        let secret = ClusterSecret::from_bytes(&[b'a'; 32]).unwrap();
        let other = ClusterSecret::from_bytes(&[b'b'; 32]).unwrap();
        let ticket = Ticket {
            session: "0".repeat(32),
            title: "Metropolis (1927)".to_owned(),
            version: "v".to_owned(),
            expires: 100,
            form: "segmented".to_owned(),
            part: String::new(),
            max_height: Some(1080),
            priority: "normal".to_owned(),
            client: Some("192.0.2.7".parse().unwrap()),
            subject: Some("customer 17".to_owned()),
            token_id: None,
            until: Some(200),
        };
        let text = ticket.sign(&secret);
        let url = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        assert!(text.chars().all(url), "{text}");
        assert_eq!(Ticket::verify(&text, &secret, 99), Ok(ticket));
        assert_eq!(
            Ticket::verify(&text, &secret, 100),
            Err(TicketError::Expired { ago: <_>::default() })
        );
        let (payload, tag) = text.split_once('.').unwrap();
        let changed = payload.replacen('e', "f", 1);
        for wrong in [
            String::new(),
            ".".to_owned(),
            payload.to_owned(),
            format!("{payload}."),
            format!("{payload}.{}", &tag[..20]),
            format!("{changed}.{tag}"),
            other.sign(SignedText::default()),
        ] {
            assert_eq!(Ticket::verify(&wrong, &secret, 0), Err(TicketError::Forged), "{wrong}");
        }
        assert_eq!(Ticket::verify(&text, &other, 0), Err(TicketError::Forged));
    }
}
