//! Tickets: what a viewer shows to a node, signed by a director.
//!
//! ```text
//!   t1.KEY.PAYLOAD.TAG
//!      │   │       └─ HMAC-SHA-256 of all before it, in base64url
//!      │   └───────── JSON in base64url: title, nodes, expiry, serial number
//!      └───────────── which key: several are valid while keys are replaced
//! ```
//!
//! A ticket names its title and the nodes that may serve it, the one with the reservation first. It
//! is short-lived and used once on each node; a node remembers the tickets that it has taken until
//! they expire. Times are seconds of Unix time, because director and node have different clocks.

use crate::names::{NodeId, TitleName};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The right of one viewer to one title on a few nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The title.
    pub title: TitleName,
    /// Nodes that may serve it, the one with the reservation first; one to three.
    pub nodes: Vec<NodeId>,
    /// The second of Unix time from which on the ticket is not valid.
    pub expires: u64,
    /// A number that no other ticket of the same second has: drawn at random.
    pub serial: u64,
}

/// The keys that tickets are signed with: one to sign, all to verify.
#[derive(Clone, Default)]
pub struct TicketKeys {
    keys: BTreeMap<String, Vec<u8>>,
    signing: String,
}

/// Tickets that a node has taken and that have not expired.
#[derive(Clone, Debug, Default)]
pub struct UsedTickets(BTreeSet<(u64, u64)>);

/// A ticket that is not accepted, or a key that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// The text is not a ticket.
    #[error("this is not a ticket")]
    Malformed,
    /// The ticket names a key that is not known: never, not yet, or no more.
    #[error("the ticket is signed with an unknown key")]
    UnknownKey,
    /// The tag is not that of the key: the ticket was changed or made up.
    #[error("the signature of the ticket is wrong")]
    Forged,
    /// The ticket is from earlier.
    #[error("the ticket has expired")]
    Expired,
    /// The ticket is for another title.
    #[error("the ticket is for another title")]
    OtherTitle,
    /// The ticket does not name this node.
    #[error("the ticket is for other nodes")]
    OtherNode,
    /// The ticket was used before on this node.
    #[error("the ticket was used before")]
    Replayed,
    /// The node has taken as many tickets as it remembers.
    #[error("too many tickets are in use")]
    TooMany,
    /// A key that is too short, or whose name cannot be part of a ticket.
    #[error("a key has 32 bytes or more, and a name of letters, digits, '-' and '_'")]
    BadKey,
}

impl TicketKeys {
    /// Adds a key, or replaces one. The first one signs; others after [`Self::sign_with`].
    ///
    /// # Errors
    /// A key that is too short, or whose name cannot be part of a ticket.
    pub fn insert(&mut self, id: &str, secret: &[u8]) -> Result<(), TicketError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name_fits = (1..=LONGEST_KEY_NAME).contains(&id.len()) && id.chars().all(allowed);
        if !name_fits || secret.len() < SHORTEST_SECRET {
            return Err(TicketError::BadKey);
        }
        if self.keys.is_empty() {
            id.clone_into(&mut self.signing);
        }
        self.keys.insert(id.to_owned(), secret.to_vec());
        Ok(())
    }

    /// Signs with this key from now on: after every node has it.
    ///
    /// # Errors
    /// A key that is not known.
    pub fn sign_with(&mut self, id: &str) -> Result<(), TicketError> {
        if !self.keys.contains_key(id) {
            return Err(TicketError::UnknownKey);
        }
        id.clone_into(&mut self.signing);
        Ok(())
    }

    /// Removes a key: after the last ticket that it signed has expired.
    pub fn remove(&mut self, id: &str) {
        self.keys.remove(id);
    }

    /// A ticket as the text that a viewer gets.
    ///
    /// # Errors
    /// No key to sign with.
    pub fn sign(&self, ticket: &Ticket) -> Result<String, TicketError> {
        let json = serde_json::to_vec(ticket).expect("tickets have text keys only");
        let signed = format!("{VERSION}.{}.{}", self.signing, URL_SAFE_NO_PAD.encode(json));
        let tag = self.mac(&self.signing, &signed)?.finalize().into_bytes();
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag)))
    }

    /// The ticket of a text, if it is valid for this title on this node at this second of Unix
    /// time. Whether it was used before is another question: [`UsedTickets::take`].
    ///
    /// # Errors
    /// A text that is no such ticket, each with its own error.
    pub fn verify(
        &self,
        text: &str,
        title: &TitleName,
        node: &NodeId,
        now: u64,
    ) -> Result<Ticket, TicketError> {
        if text.len() > LONGEST_TICKET {
            return Err(TicketError::Malformed);
        }
        let (signed, tag) = text.rsplit_once('.').ok_or(TicketError::Malformed)?;
        let mut parts = signed.split('.');
        let (Some(VERSION), Some(key), Some(payload), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TicketError::Malformed);
        };
        let decode = |text| URL_SAFE_NO_PAD.decode(text).map_err(|_| TicketError::Malformed);
        let tag = decode(tag)?;
        // Compared in constant time, and before anything of the payload is looked at.
        self.mac(key, signed)?.verify_slice(&tag).map_err(|_| TicketError::Forged)?;
        let ticket: Ticket =
            serde_json::from_slice(&decode(payload)?).map_err(|_| TicketError::Malformed)?;
        if now >= ticket.expires {
            return Err(TicketError::Expired);
        }
        if ticket.title != *title {
            return Err(TicketError::OtherTitle);
        }
        if !ticket.nodes.contains(node) {
            return Err(TicketError::OtherNode);
        }
        Ok(ticket)
    }

    fn mac(&self, key: &str, signed: &str) -> Result<Hmac<Sha256>, TicketError> {
        let secret = self.keys.get(key).ok_or(TicketError::UnknownKey)?;
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| TicketError::BadKey)?;
        mac.update(signed.as_bytes());
        Ok(mac)
    }
}

/// The names of the keys: a secret is never shown.
impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.keys.keys().collect();
        f.debug_struct("TicketKeys").field("keys", &names).field("signing", &self.signing).finish()
    }
}

impl UsedTickets {
    /// Takes a ticket that was verified, once; forgets those that have expired.
    ///
    /// # Errors
    /// A ticket that was taken before, or more tickets than are remembered.
    pub fn take(&mut self, ticket: &Ticket, now: u64) -> Result<(), TicketError> {
        self.0 = self.0.split_off(&(now.saturating_add(1), 0));
        let used = (ticket.expires, ticket.serial);
        if self.0.contains(&used) {
            return Err(TicketError::Replayed);
        }
        if self.0.len() >= MOST_USED {
            return Err(TicketError::TooMany);
        }
        self.0.insert(used);
        Ok(())
    }
}

/// The form of the text.
const VERSION: &str = "t1";
/// Shortest secret: the length of the hash.
const SHORTEST_SECRET: usize = 32;
/// Longest name of a key.
const LONGEST_KEY_NAME: usize = 32;
/// Longest text: the longest names, escaped and in base64.
const LONGEST_TICKET: usize = 4096;
/// Tickets that a node remembers: as many viewers as come to one node within the life of a ticket.
const MOST_USED: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_000_000;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn title(name: &str) -> TitleName {
        TitleName::new(name).unwrap()
    }

    fn ticket() -> Ticket {
        Ticket {
            title: title("Metropolis"),
            nodes: vec![node("n1"), node("n2")],
            expires: NOW + 30,
            serial: 7,
        }
    }

    fn keys() -> TicketKeys {
        let mut keys = TicketKeys::default();
        keys.insert("a", &[1; 32]).unwrap();
        keys.insert("b", &[2; 32]).unwrap();
        keys
    }

    #[test]
    fn a_ticket_is_valid_for_its_title_nodes_and_time() {
        use TicketError::{Expired, OtherNode, OtherTitle};
        let text = keys().sign(&ticket()).unwrap();
        let verify = |name: &str, at: &str, now| keys().verify(&text, &title(name), &node(at), now);
        assert_eq!(verify("Metropolis", "n1", NOW), Ok(ticket()));
        assert_eq!(verify("Metropolis", "n2", NOW + 29), Ok(ticket()));
        assert_eq!(verify("Metropolis", "n2", NOW + 30), Err(Expired));
        assert_eq!(verify("Nosferatu", "n1", NOW), Err(OtherTitle));
        assert_eq!(verify("Metropolis", "n3", NOW), Err(OtherNode));
    }

    #[test]
    fn a_changed_ticket_is_refused_whatever_was_changed() {
        let text = keys().sign(&ticket()).unwrap();
        let verify = |text: &str| keys().verify(text, &title("Metropolis"), &node("n1"), NOW);
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            let error = verify(&changed).unwrap_err();
            assert_ne!(error, TicketError::Expired, "the payload was used: {changed}");
        }
        // Signed with the other key, under the name of the first.
        let mut other = keys();
        other.sign_with("b").unwrap();
        let forged = other.sign(&ticket()).unwrap().replacen("t1.b.", "t1.a.", 1);
        assert_eq!(verify(&forged), Err(TicketError::Forged));
        let (long, cut) = ("x.".repeat(5000), &text[..text.len() - 7]);
        let rows = [
            ("", TicketError::Malformed),
            ("t1.a", TicketError::Malformed),
            ("t1.a.b.c.d", TicketError::Malformed),
            ("t2.a.e30.e30", TicketError::Malformed),
            ("t1.z.e30.e30", TicketError::UnknownKey),
            ("t1.a.e30.e30", TicketError::Forged),
            (cut, TicketError::Forged),
            (&long, TicketError::Malformed),
        ];
        for (text, error) in rows {
            assert_eq!(verify(text), Err(error), "{text}");
        }
    }

    #[test]
    fn keys_are_replaced_while_their_tickets_are_valid() {
        let mut keys = keys();
        let verify = |keys: &TicketKeys, text: &str| {
            keys.verify(text, &title("Metropolis"), &node("n1"), NOW).map(|_| ())
        };
        let old = keys.sign(&ticket()).unwrap();
        keys.sign_with("b").unwrap();
        let new = keys.sign(&ticket()).unwrap();
        assert_eq!([verify(&keys, &old), verify(&keys, &new)], [Ok(()), Ok(())]);
        keys.remove("a");
        assert_eq!(verify(&keys, &old), Err(TicketError::UnknownKey));
        assert_eq!(keys.sign_with("a"), Err(TicketError::UnknownKey));
        assert_eq!(keys.insert("c", b"short"), Err(TicketError::BadKey));
        assert_eq!(keys.insert("c.d", &[0; 32]), Err(TicketError::BadKey));
        assert_eq!(TicketKeys::default().sign(&ticket()), Err(TicketError::UnknownKey));
        assert!(!format!("{keys:?}").contains('2'), "a secret is shown: {keys:?}");
    }

    #[test]
    fn a_ticket_is_taken_once_and_forgotten_when_it_has_expired() {
        let mut used = UsedTickets::default();
        let other = Ticket { serial: 8, ..ticket() };
        assert_eq!(used.take(&ticket(), NOW), Ok(()));
        assert_eq!(used.take(&other, NOW), Ok(()));
        assert_eq!(used.take(&ticket(), NOW + 29), Err(TicketError::Replayed));
        let late = Ticket { expires: NOW + 99, ..ticket() };
        assert_eq!(used.take(&late, NOW + 30), Ok(()));
        assert_eq!(used.0.len(), 1);
    }
}
