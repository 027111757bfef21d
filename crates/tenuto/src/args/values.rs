//! Parsers of option values. Each gives a typed value; its error names the possible values, or is a
//! [`Reason`] with its own hint.

use clap::builder::{
    NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser,
};
use clap::error::ErrorKind;
use cluster::{BadName, ClusterName, NodeId};
use disk::DiskModel;
use server::ServerConfig;
use std::ffi::OsStr;
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::time::Duration;
use store::{ReservedRate, SubtitleFile};
use units::{BitRate, Reason, parse_duration, show_duration};

/// Parses any text but the empty one.
pub(crate) fn text() -> NonEmptyStringValueParser {
    // An empty text is nearly always a shell variable without a value.
    NonEmptyStringValueParser::new()
}

/// Parses the subject of an access token.
pub(crate) fn token_subject(text: &str) -> Result<String, String> {
    let most = server::access::LONGEST_NAME;
    match text.len() {
        0 => Err("a subject has a letter at least".to_owned()),
        len if len > most => Err(format!("a subject has at most {most} bytes, not {len}")),
        _ => Ok(text.to_owned()),
    }
}

/// Parses the name of a cluster.
pub(crate) fn cluster_name(text: &str) -> Result<ClusterName, BadName> {
    ClusterName::new(text)
}

/// Parses the name of a node of a cluster.
pub(crate) fn node_name(text: &str) -> Result<NodeId, BadName> {
    NodeId::new(text)
}

/// Parses where viewers reach a node: the beginning of its addresses.
pub(crate) fn node_address(text: &str) -> Result<String, String> {
    address_of(text, ["http", "https"], "https://n1.example:8443")
}

/// Parses where viewers reach a node over RTSP.
pub(crate) fn node_rtsp_address(text: &str) -> Result<String, String> {
    address_of(text, ["rtsp", "rtsps"], "rtsp://n1.example:8554")
}

fn address_of(text: &str, schemes: [&str; 2], example: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is no address such as {example}");
    let (scheme, host) = text.split_once("://").ok_or_else(wrong)?;
    let host = host.strip_suffix('/').unwrap_or(host);
    if !schemes.contains(&scheme) || !is_host_and_port(host) {
        let hint = match host.parse::<Ipv6Addr>() {
            Ok(address) => format!("; an address of IPv6 has brackets: {scheme}://[{address}]"),
            Err(_) => String::new(),
        };
        return Err(format!("{}{hint}", wrong()));
    }
    Ok(format!("{scheme}://{host}"))
}

/// Whether it is a host as addresses name it, and perhaps a port.
fn is_host_and_port(text: &str) -> bool {
    let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|it| it.split_once(']')) {
        let is_address = address.parse::<Ipv6Addr>().is_ok();
        return is_address && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = text.split_once(':').map_or((text, None), |(host, it)| (host, Some(it)));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    !host.is_empty() && host.chars().all(is_name) && port.is_none_or(is_port)
}

/// Parses a language and a file of subtitles: `en=film.srt`, `en,forced=signs.srt`.
pub(crate) fn subtitle_file(text: &str) -> Result<SubtitleFile, String> {
    let wrong = || format!("'{text}' is not a language and a file such as en=film.srt");
    let (before, file) = text.split_once('=').ok_or_else(wrong)?;
    let mut marks = before.split(',');
    let language = marks.next().unwrap_or_default();
    let is_tag = language.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !(2..=35).contains(&language.len()) || !is_tag || file.is_empty() {
        return Err(wrong());
    }
    let (file, language) = (file.into(), language.to_owned());
    let mut subtitles = SubtitleFile { file, language, forced: false, hearing_impaired: false };
    for mark in marks {
        match mark {
            "forced" => subtitles.forced = true,
            "sdh" => subtitles.hearing_impaired = true,
            _ => return Err(format!("'{mark}' is neither forced nor sdh")),
        }
    }
    Ok(subtitles)
}

/// Parses the time from one thumbnail to the next, in seconds.
pub(crate) fn interval(text: &str) -> Result<u32, String> {
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    let seconds = u32::try_from(interval.as_secs()).ok();
    let whole =
        seconds.filter(|seconds| interval.subsec_nanos() == 0 && (1..=600).contains(seconds));
    whole.ok_or_else(|| format!("'{text}' is not a number of whole seconds from 1s to 600s"))
}

/// Parses a time that is not zero.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err(format!("'{text}' is no time at all")) } else { Ok(time) }
}

/// Parses a whole number within these bounds.
pub(crate) fn whole<T>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: TryFrom<u64>,
{
    move |text| {
        let within = text.parse().ok().filter(|number| (least..=most).contains(number));
        let number = within.and_then(|number: u64| T::try_from(number).ok());
        number.ok_or_else(|| format!("'{text}' is not a whole number from {least} to {most}"))
    }
}

/// Parses the time that players wait for admission.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    let wait = parse_duration(text).map_err(|error| error.to_string())?;
    let most = ServerConfig::LONGEST_WAIT;
    if wait > most {
        return Err(format!("players give up before {text}: at most {}", show_duration(most)));
    }
    Ok(wait)
}

/// Parses the time that viewers wait for a service that decides on them.
pub(crate) fn auth_request_timeout(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    // No service answers in less, and no player waits longer for a manifest.
    if time < Duration::from_millis(100) || time > ServerConfig::LONGEST_WAIT {
        return Err(format!("'{text}' is not a time from 100 ms to 30 s"));
    }
    Ok(time)
}

/// Parses a rate that is not zero.
pub(crate) fn some_rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error| format!("{error}"))?;
    if rate.0 == 0 { Err("a rate of 0 reserves nothing".to_owned()) } else { Ok(rate) }
}

/// Parses a rate at which files of a mount are read.
pub(crate) fn reserved_rate(text: &str) -> Result<ReservedRate, String> {
    let rate: ReservedRate = text.parse().map_err(|error| format!("{error}, or `title`"))?;
    match rate {
        ReservedRate::Constant(BitRate(0)) => Err("a rate of 0 reserves nothing".to_owned()),
        rate => Ok(rate),
    }
}

/// Parses the rate of a viewer's access.
pub(crate) fn bandwidth(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error| format!("{error}"))?;
    match rate.0 {
        0..8_000 => Err(format!("at {text} nobody watches: at least 8kbps")),
        _ => Ok(rate),
    }
}

/// Parses a playing speed.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| (1.0 / 64.0..=64.0).contains(&speed.abs()));
    speed.ok_or_else(|| {
        format!("'{text}' is not a speed such as 2, 0.5 or -1 (backwards), at most 64")
    })
}

/// Parses the name of a disk model, or reads its parameter file.
pub(crate) fn model(text: &str) -> Result<DiskModel, Reason> {
    // The value is the model itself, so that a wrong file is found before anything runs.
    device::disk_model(text).map_err(|Reason { message, hint }| {
        Reason::new(message, hint.unwrap_or_else(|| "give a file that you may read".to_owned()))
    })
}

/// A list with commas between its items.
#[derive(Clone, Debug)]
pub(crate) struct CommaList<T>(pub(crate) Vec<T>);

impl<T: FromStr> FromStr for CommaList<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// A parser of words, each of which stands for a value.
#[derive(Clone)]
pub(crate) struct Words<T>(Vec<(PossibleValue, T)>);

/// Parses one of these words: the word, its meaning in a few words, and its value.
pub(crate) fn words<T>(all: impl IntoIterator<Item = (&'static str, &'static str, T)>) -> Words<T> {
    let named = all.into_iter().map(|(word, about, value)| {
        let possible = PossibleValue::new(word);
        (if about.is_empty() { possible } else { possible.help(about) }, value)
    });
    Words(named.collect())
}

/// Parses one of these names; `about` describes a value in a few words.
pub(crate) fn described<T: Copy>(
    names: impl IntoIterator<Item = (&'static str, T)>,
    about: impl Fn(T) -> &'static str,
) -> Words<T> {
    words(names.into_iter().map(|(name, value)| (name, about(value), value)))
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Words<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        // clap's own parser makes the error, with a suggestion for a misspelt word.
        let names = PossibleValuesParser::new(self.0.iter().map(|(word, _)| word.clone()));
        let word = names.parse_ref(command, arg, value)?;
        let named = self.0.iter().find(|(possible, _)| possible.matches(&word, false));
        named.map(|(_, value)| value.clone()).ok_or_else(|| {
            clap::Error::raw(ErrorKind::InvalidValue, "the word has no value").with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(|(word, _)| word.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_nodes_are_a_scheme_a_host_and_perhaps_a_port() {
        for (text, expected) in [
            ("http://n1.example:8443", Ok("http://n1.example:8443")),
            ("https://10.1.2.3/", Ok("https://10.1.2.3")),
            ("http://[fd00::1]:8080", Ok("http://[fd00::1]:8080")),
            ("http://[fd00::1]", Ok("http://[fd00::1]")),
            ("http://fd00::1", Err("brackets: http://[fd00::1]")),
            ("http://fd00::1:8080", Err("brackets")),
            ("http://[fd00::zz]:8080", Err("no address")),
            ("http://a:b:8080", Err("no address")),
            ("http://a:0", Err("no address")),
            ("http://a:70000", Err("no address")),
            ("rtsp://a", Err("no address")),
            ("http://", Err("no address")),
            ("a:80", Err("no address")),
        ] {
            match (node_address(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(says)) => assert!(found.contains(says), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
