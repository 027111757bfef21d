//! Names of a cluster, of its nodes and titles, the number of a disk within its node, and the
//! number of a title's content.

use crate::chance::hash_of;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a node, given by whoever runs it: letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct NodeId(String);

/// The name of a cluster: letters, digits, `-`, `_` and `.`. Clusters of different names may share
/// a store of records.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ClusterName(String);

/// The name of a title in the cluster: the name that viewers ask for. It may have folders (`a/b`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct TitleName(String);

/// The number of a disk within its node, from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NodeDisk(pub u16);

/// The content of a title as a number: copies with the same number are copies of each other. A text
/// of 16 hexadecimal digits in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentTag(u64);

impl ContentTag {
    /// The number of the content with this identity, as stores and buckets tell it.
    pub fn of(content: &str) -> Self {
        Self(hash_of(content))
    }
}

impl TryFrom<String> for ContentTag {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        let why = "the content of a title has 16 hexadecimal digits";
        let text = checked(text, 16, is_digit, why)?;
        match u64::from_str_radix(&text, 16) {
            Ok(number) if text.len() == 16 => Ok(Self(number)),
            _ => Err(BadName { shown: text, why }),
        }
    }
}

impl From<ContentTag> for String {
    fn from(tag: ContentTag) -> Self {
        tag.to_string()
    }
}

impl fmt::Display for ContentTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A text that cannot be the name of a node, a cluster or a title.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{shown}' is not a name: {why}")]
pub struct BadName {
    shown: String,
    why: &'static str,
}

impl NodeId {
    /// Checks a name.
    ///
    /// # Errors
    /// A text that is empty, too long, or has other characters.
    pub fn new(name: impl Into<String>) -> Result<Self, BadName> {
        let why = "a node's name has 1 to 64 letters, digits, '-', '_' and '.'";
        checked(name.into(), LONGEST_NODE, is_plain, why).map(Self)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ClusterName {
    /// Checks a name.
    ///
    /// # Errors
    /// A text that is empty, too long, or has other characters.
    pub fn new(name: impl Into<String>) -> Result<Self, BadName> {
        let why = "a cluster's name has 1 to 64 letters, digits, '-', '_' and '.'";
        checked(name.into(), LONGEST_NODE, is_plain, why).map(Self)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TitleName {
    /// Checks a name.
    ///
    /// # Errors
    /// A text that is empty, too long, or has control characters.
    pub fn new(name: impl Into<String>) -> Result<Self, BadName> {
        let why = "a title's name has 1 to 255 bytes, without control characters";
        checked(name.into(), LONGEST_TITLE, |c| !c.is_control(), why).map(Self)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

fn checked(
    name: String,
    longest: usize,
    allowed: impl Fn(char) -> bool,
    why: &'static str,
) -> Result<String, BadName> {
    if (1..=longest).contains(&name.len()) && name.chars().all(allowed) {
        return Ok(name);
    }
    // The text comes from outside and may have any length.
    let shown = name.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
    Err(BadName { shown, why })
}

impl TryFrom<String> for NodeId {
    type Error = BadName;
    fn try_from(name: String) -> Result<Self, BadName> {
        Self::new(name)
    }
}

impl TryFrom<String> for ClusterName {
    type Error = BadName;
    fn try_from(name: String) -> Result<Self, BadName> {
        Self::new(name)
    }
}

impl TryFrom<String> for TitleName {
    type Error = BadName;
    fn try_from(name: String) -> Result<Self, BadName> {
        Self::new(name)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TitleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Longest name of a node or a cluster: it is part of host names and of every key.
const LONGEST_NODE: usize = 64;
/// Longest name of a title: the length of a file name.
const LONGEST_TITLE: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_have_no_separators() {
        for bad in ["", "a/b", "a b", "\u{7f}", &"x".repeat(65)] {
            assert!(NodeId::new(bad).is_err(), "{bad:?}");
            assert!(ClusterName::new(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "a\nb", &"x".repeat(256)] {
            assert!(TitleName::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(NodeId::new("n-1.west_2").unwrap().as_str(), "n-1.west_2");
        assert_eq!(TitleName::new("Metropolis (1927)").unwrap().to_string(), "Metropolis (1927)");
        assert_eq!(TitleName::new("hall/20261128").unwrap().as_str(), "hall/20261128");
        assert!(serde_json::from_str::<NodeId>("\"a/b\"").is_err());
    }
}
