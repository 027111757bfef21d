//! The names of languages: ISO 639-2 codes, their two-letter codes and their English names.
//!
//! It has the languages of ISO 639-1 and others that films have. Other codes are passed on without
//! a name.

/// A language of ISO 639.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Language {
    /// The ISO 639-1 code if there is one, else the terminology code of ISO 639-2: the shortest
    /// code, as BCP 47 requires.
    pub(crate) tag: &'static str,
    /// The terminology code of ISO 639-2.
    pub(crate) terminology: &'static str,
    /// The English name.
    pub(crate) name: &'static str,
}

/// The language of an ISO 639-2 code, terminology or bibliographic, or of a two-letter code.
pub(crate) fn find(code: &str) -> Option<Language> {
    // Withdrawn codes that files still have.
    let code = match code {
        "mol" => "ron",
        "iw" => "heb",
        "in" => "ind",
        "ji" => "yid",
        code => code,
    };
    let known = |codes: &[&str; 3]| !code.is_empty() && codes.contains(&code);
    let row = LANGUAGES.iter().find(|(a, b, c, _)| known(&[a, b, c]))?;
    let (terminology, _, short, name) = *row;
    Some(Language { tag: if short.is_empty() { terminology } else { short }, terminology, name })
}

/// Terminology code, bibliographic code where it differs, two-letter code, name.
#[rustfmt::skip]
const LANGUAGES: [(&str, &str, &str, &str); 239] = [
    ("aar", "", "aa", "Afar"), ("abk", "", "ab", "Abkhazian"), ("afr", "", "af", "Afrikaans"),
    ("aka", "", "ak", "Akan"), ("amh", "", "am", "Amharic"), ("ang", "", "", "Old English"),
    ("ara", "", "ar", "Arabic"), ("arc", "", "", "Aramaic"), ("arg", "", "an", "Aragonese"),
    ("ase", "", "", "American Sign Language"), ("asm", "", "as", "Assamese"),
    ("ast", "", "", "Asturian"), ("ava", "", "av", "Avaric"), ("ave", "", "ae", "Avestan"),
    ("aym", "", "ay", "Aymara"), ("aze", "", "az", "Azerbaijani"), ("bak", "", "ba", "Bashkir"),
    ("bam", "", "bm", "Bambara"), ("bel", "", "be", "Belarusian"), ("ben", "", "bn", "Bengali"),
    ("ber", "", "", "Berber"), ("bfi", "", "", "British Sign Language"),
    ("bgc", "", "", "Haryanvi"), ("bho", "", "", "Bhojpuri"), ("bis", "", "bi", "Bislama"),
    ("bod", "tib", "bo", "Tibetan"), ("bos", "", "bs", "Bosnian"), ("bre", "", "br", "Breton"),
    ("bul", "", "bg", "Bulgarian"), ("cat", "", "ca", "Catalan"), ("ceb", "", "", "Cebuano"),
    ("ces", "cze", "cs", "Czech"), ("cha", "", "ch", "Chamorro"), ("che", "", "ce", "Chechen"),
    ("chr", "", "", "Cherokee"), ("chu", "", "cu", "Church Slavonic"),
    ("chv", "", "cv", "Chuvash"), ("cmn", "", "", "Mandarin Chinese"),
    ("cnr", "", "", "Montenegrin"), ("cor", "", "kw", "Cornish"), ("cos", "", "co", "Corsican"),
    ("cre", "", "cr", "Cree"), ("crh", "", "", "Crimean Tatar"), ("csb", "", "", "Kashubian"),
    ("cym", "wel", "cy", "Welsh"), ("dan", "", "da", "Danish"), ("deu", "ger", "de", "German"),
    ("div", "", "dv", "Divehi"), ("doi", "", "", "Dogri"), ("dsb", "", "", "Lower Sorbian"),
    ("dzo", "", "dz", "Dzongkha"), ("ell", "gre", "el", "Greek"), ("eng", "", "en", "English"),
    ("enm", "", "", "Middle English"), ("epo", "", "eo", "Esperanto"),
    ("est", "", "et", "Estonian"), ("eus", "baq", "eu", "Basque"), ("ewe", "", "ee", "Ewe"),
    ("fao", "", "fo", "Faroese"), ("fas", "per", "fa", "Persian"), ("fij", "", "fj", "Fijian"),
    ("fil", "", "", "Filipino"), ("fin", "", "fi", "Finnish"), ("fra", "fre", "fr", "French"),
    ("frr", "", "", "Northern Frisian"), ("fry", "", "fy", "West Frisian"),
    ("ful", "", "ff", "Fulah"), ("fur", "", "", "Friulian"), ("gla", "", "gd", "Scottish Gaelic"),
    ("gle", "", "ga", "Irish"), ("glg", "", "gl", "Galician"), ("glv", "", "gv", "Manx"),
    ("grc", "", "", "Ancient Greek"), ("grn", "", "gn", "Guarani"),
    ("gsw", "", "", "Swiss German"), ("guj", "", "gu", "Gujarati"),
    ("hat", "", "ht", "Haitian Creole"), ("hau", "", "ha", "Hausa"), ("haw", "", "", "Hawaiian"),
    ("heb", "", "he", "Hebrew"), ("her", "", "hz", "Herero"), ("hil", "", "", "Hiligaynon"),
    ("hin", "", "hi", "Hindi"), ("hmn", "", "", "Hmong"), ("hmo", "", "ho", "Hiri Motu"),
    ("hrv", "", "hr", "Croatian"), ("hsb", "", "", "Upper Sorbian"),
    ("hun", "", "hu", "Hungarian"), ("hye", "arm", "hy", "Armenian"), ("ibo", "", "ig", "Igbo"),
    ("ido", "", "io", "Ido"), ("iii", "", "ii", "Nuosu"), ("iku", "", "iu", "Inuktitut"),
    ("ile", "", "ie", "Interlingue"), ("ilo", "", "", "Iloko"), ("ina", "", "ia", "Interlingua"),
    ("ind", "", "id", "Indonesian"), ("ipk", "", "ik", "Inupiaq"),
    ("isl", "ice", "is", "Icelandic"), ("ita", "", "it", "Italian"), ("jav", "", "jv", "Javanese"),
    ("jpn", "", "ja", "Japanese"), ("kab", "", "", "Kabyle"), ("kal", "", "kl", "Greenlandic"),
    ("kan", "", "kn", "Kannada"), ("kas", "", "ks", "Kashmiri"), ("kat", "geo", "ka", "Georgian"),
    ("kau", "", "kr", "Kanuri"), ("kaz", "", "kk", "Kazakh"), ("khm", "", "km", "Khmer"),
    ("kik", "", "ki", "Kikuyu"), ("kin", "", "rw", "Kinyarwanda"), ("kir", "", "ky", "Kyrgyz"),
    ("kok", "", "", "Konkani"), ("kom", "", "kv", "Komi"), ("kon", "", "kg", "Kongo"),
    ("kor", "", "ko", "Korean"), ("kua", "", "kj", "Kuanyama"), ("kur", "", "ku", "Kurdish"),
    ("lad", "", "", "Ladino"), ("lao", "", "lo", "Lao"), ("lat", "", "la", "Latin"),
    ("lav", "", "lv", "Latvian"), ("lim", "", "li", "Limburgish"), ("lin", "", "ln", "Lingala"),
    ("lit", "", "lt", "Lithuanian"), ("ltz", "", "lb", "Luxembourgish"),
    ("lub", "", "lu", "Luba-Katanga"), ("lug", "", "lg", "Ganda"),
    ("mah", "", "mh", "Marshallese"), ("mai", "", "", "Maithili"), ("mal", "", "ml", "Malayalam"),
    ("mar", "", "mr", "Marathi"), ("mkd", "mac", "mk", "Macedonian"),
    ("mlg", "", "mg", "Malagasy"), ("mlt", "", "mt", "Maltese"), ("mni", "", "", "Manipuri"),
    ("mon", "", "mn", "Mongolian"), ("mri", "mao", "mi", "Maori"), ("msa", "may", "ms", "Malay"),
    ("mya", "bur", "my", "Burmese"), ("nan", "", "", "Min Nan Chinese"),
    ("nap", "", "", "Neapolitan"), ("nau", "", "na", "Nauruan"), ("nav", "", "nv", "Navajo"),
    ("nbl", "", "nr", "South Ndebele"), ("nde", "", "nd", "North Ndebele"),
    ("ndo", "", "ng", "Ndonga"), ("nds", "", "", "Low German"), ("nep", "", "ne", "Nepali"),
    ("nld", "dut", "nl", "Dutch"), ("nno", "", "nn", "Norwegian Nynorsk"),
    ("nob", "", "nb", "Norwegian Bokmål"), ("nor", "", "no", "Norwegian"),
    ("nso", "", "", "Northern Sotho"), ("nya", "", "ny", "Chichewa"), ("oci", "", "oc", "Occitan"),
    ("oji", "", "oj", "Ojibwa"), ("ori", "", "or", "Odia"), ("orm", "", "om", "Oromo"),
    ("oss", "", "os", "Ossetian"), ("pan", "", "pa", "Punjabi"), ("pap", "", "", "Papiamento"),
    ("pli", "", "pi", "Pali"), ("pol", "", "pl", "Polish"), ("por", "", "pt", "Portuguese"),
    ("pus", "", "ps", "Pashto"), ("que", "", "qu", "Quechua"), ("raj", "", "", "Rajasthani"),
    ("roh", "", "rm", "Romansh"), ("rom", "", "", "Romany"), ("ron", "rum", "ro", "Romanian"),
    ("run", "", "rn", "Rundi"), ("rus", "", "ru", "Russian"), ("sag", "", "sg", "Sango"),
    ("sah", "", "", "Yakut"), ("san", "", "sa", "Sanskrit"), ("sat", "", "", "Santali"),
    ("scn", "", "", "Sicilian"), ("sco", "", "", "Scots"), ("sgn", "", "", "Sign language"),
    ("sin", "", "si", "Sinhala"), ("slk", "slo", "sk", "Slovak"), ("slv", "", "sl", "Slovenian"),
    ("sma", "", "", "Southern Sami"), ("sme", "", "se", "Northern Sami"),
    ("smj", "", "", "Lule Sami"), ("smn", "", "", "Inari Sami"), ("smo", "", "sm", "Samoan"),
    ("sms", "", "", "Skolt Sami"), ("sna", "", "sn", "Shona"), ("snd", "", "sd", "Sindhi"),
    ("som", "", "so", "Somali"), ("sot", "", "st", "Southern Sotho"), ("spa", "", "es", "Spanish"),
    ("sqi", "alb", "sq", "Albanian"), ("srd", "", "sc", "Sardinian"), ("srp", "", "sr", "Serbian"),
    ("ssw", "", "ss", "Swazi"), ("sun", "", "su", "Sundanese"), ("swa", "", "sw", "Swahili"),
    ("swe", "", "sv", "Swedish"), ("syr", "", "", "Syriac"), ("tah", "", "ty", "Tahitian"),
    ("tam", "", "ta", "Tamil"), ("tat", "", "tt", "Tatar"), ("tel", "", "te", "Telugu"),
    ("tgk", "", "tg", "Tajik"), ("tgl", "", "tl", "Tagalog"), ("tha", "", "th", "Thai"),
    ("tir", "", "ti", "Tigrinya"), ("tlh", "", "", "Klingon"), ("ton", "", "to", "Tongan"),
    ("tpi", "", "", "Tok Pisin"), ("tsn", "", "tn", "Tswana"), ("tso", "", "ts", "Tsonga"),
    ("tuk", "", "tk", "Turkmen"), ("tur", "", "tr", "Turkish"), ("twi", "", "tw", "Twi"),
    ("tyv", "", "", "Tuvinian"), ("udm", "", "", "Udmurt"), ("uig", "", "ug", "Uyghur"),
    ("ukr", "", "uk", "Ukrainian"), ("urd", "", "ur", "Urdu"), ("uzb", "", "uz", "Uzbek"),
    ("ven", "", "ve", "Venda"), ("vie", "", "vi", "Vietnamese"), ("vol", "", "vo", "Volapük"),
    ("war", "", "", "Waray"), ("wln", "", "wa", "Walloon"), ("wol", "", "wo", "Wolof"),
    ("xho", "", "xh", "Xhosa"), ("yid", "", "yi", "Yiddish"), ("yor", "", "yo", "Yoruba"),
    ("yue", "", "", "Cantonese"), ("zgh", "", "", "Moroccan Tamazight"),
    ("zha", "", "za", "Zhuang"), ("zho", "chi", "zh", "Chinese"), ("zul", "", "zu", "Zulu"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_names_one_language() {
        let mut codes = BTreeSet::new();
        for (a, b, c, name) in LANGUAGES {
            assert!(a.len() == 3 && matches!(b.len(), 0 | 3) && matches!(c.len(), 0 | 2), "{a}");
            assert!(!name.is_empty() && !name.contains([';', ',', '(']), "{name}");
            for code in [a, b, c].into_iter().filter(|code| !code.is_empty()) {
                assert!(code.bytes().all(|byte| byte.is_ascii_lowercase()), "{code}");
                assert!(codes.insert(code), "{code} twice");
            }
        }
    }

    #[test]
    fn languages_are_found_by_all_their_codes() {
        // (code, tag, name)
        for (code, tag, name) in [
            ("eng", "en", "English"),
            ("en", "en", "English"),
            ("ger", "de", "German"),
            ("deu", "de", "German"),
            ("alb", "sq", "Albanian"),
            ("mol", "ro", "Romanian"),
            ("iw", "he", "Hebrew"),
            ("ell", "el", "Greek"),
            ("nob", "nb", "Norwegian Bokmål"),
            ("gsw", "gsw", "Swiss German"),
            ("yue", "yue", "Cantonese"),
        ] {
            let found = find(code).map(|found| (found.tag, found.name));
            assert_eq!(found, Some((tag, name)), "{code}");
        }
        for unknown in ["", "und", "qaa", "english"] {
            assert_eq!(find(unknown), None, "{unknown}");
        }
    }
}
