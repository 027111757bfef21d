//! Language codes: as packed in media headers and as tags in playlists.
//!
//! Codes are passed on without checks: an unknown one is unchanged.

use crate::language_names;

/// Unpacks the code of `mdhd`: three letters of five bits each, or a Macintosh code in QuickTime
/// files.
pub(crate) fn unpack(code: u16) -> String {
    if code < MACINTOSH_LIMIT || code == MACINTOSH_UNSPECIFIED {
        let known = MACINTOSH.get(usize::from(code)).filter(|name| !name.is_empty());
        return (*known.unwrap_or(&"und")).to_owned();
    }
    [10, 5, 0]
        .map(|shift| {
            // Letters are stored from 1 for `a`; other values must not break the playlist's syntax.
            let letter = u8::try_from(code >> shift & 0x1f).expect("five bits") + 0x60;
            if letter.is_ascii_lowercase() { char::from(letter) } else { '_' }
        })
        .iter()
        .collect()
}

/// Packs a code for `mdhd`; anything but a three-letter code becomes `und`.
pub(crate) fn pack(language: &str) -> u16 {
    let letters = language.as_bytes();
    let fits = letters.len() == 3 && letters.iter().all(u8::is_ascii_lowercase);
    let letters = if fits { letters } else { b"und" };
    letters.iter().fold(0, |code, letter| code << 5 | u16::from(letter - 0x60))
}

/// The shortest tag of BCP 47, as HLS requires: `en` for `eng`; `None` if the code stands for no
/// language.
pub(crate) fn tag(language: &str) -> Option<&str> {
    if matches!(language, "und" | "mis" | "zxx" | "mul" | "") {
        return None;
    }
    Some(language_names::find(language).map_or(language, |found| found.tag))
}

/// The English name of a language; the code itself if the name is unknown; `None` if the code
/// stands for no language.
pub(crate) fn name(language: &str) -> Option<&str> {
    let tag = tag(language)?;
    Some(language_names::find(language).map_or(tag, |found| found.name))
}

/// The ISO 639-2 code of a language that a container names by a tag of BCP 47 or a two-letter code:
/// `por` for `pt-BR`; `None` if it is neither.
pub fn language_code(tag: &str) -> Option<String> {
    let first = tag.trim().split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    let is_code = |code: &str| code.len() == 3 && code.bytes().all(|it| it.is_ascii_lowercase());
    match language_names::find(&first) {
        Some(found) => Some(found.terminology.to_owned()),
        None => is_code(&first).then_some(first),
    }
}

/// Codes below this are Macintosh languages (QuickTime File Format, Language Code Values).
const MACINTOSH_LIMIT: u16 = 0x400;
const MACINTOSH_UNSPECIFIED: u16 = 0x7fff;

#[rustfmt::skip]
const MACINTOSH: [&str; 95] = [
    "eng", "fra", "ger", "ita", "dut", "swe", "spa", "dan", "por", "nor", "heb", "jpn", "ara",
    "fin", "gre", "ice", "mlt", "tur", "hrv", "chi", "urd", "hin", "tha", "kor", "lit", "pol",
    "hun", "est", "lav", "", "fao", "per", "rus", "chi", "dut", "gle", "alb", "rum", "cze", "slo",
    "slv", "yid", "srp", "mac", "bul", "ukr", "bel", "uzb", "kaz", "aze", "aze", "arm", "geo",
    "mol", "kir", "tgk", "tuk", "mon", "mon", "pus", "kur", "kas", "snd", "tib", "nep", "san",
    "mar", "ben", "asm", "guj", "pan", "ori", "mal", "kan", "tam", "tel", "sin", "bur", "khm",
    "lao", "vie", "ind", "tgl", "may", "may", "amh", "tir", "orm", "som", "swa", "kin", "run",
    "nya", "mlg", "epo",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_containers_become_codes() {
        let codes = ["en", "pt", "zh", "iw", "pt-BR", "zh_Hant-TW", "EN", "mul", "gsw", "ger"];
        let codes = codes.map(|tag| language_code(tag).unwrap());
        assert_eq!(codes, ["eng", "por", "zho", "heb", "por", "zho", "eng", "mul", "gsw", "deu"]);
        assert_eq!(["", "english", "x-klingon", "q", "qq"].map(language_code), [const { None }; 5]);
    }

    #[test]
    fn languages_of_both_families_are_converted() {
        assert_eq!(
            [0x55c4, 0x15c7, 0, 11, 0x7fff, 29].map(unpack),
            ["und", "eng", "eng", "jpn", "und", "und"]
        );
        assert_eq!(
            ["eng", "und", "en", "", "éa"].map(pack),
            [0x15c7, 0x55c4, 0x55c4, 0x55c4, 0x55c4]
        );
        assert_eq!(
            ["eng", "deu", "und", "gsw"].map(tag),
            [Some("en"), Some("de"), None, Some("gsw")]
        );
        assert_eq!(
            ["eng", "fre", "und", "qaa"].map(name),
            [Some("English"), Some("French"), None, Some("qaa")]
        );
    }
}
