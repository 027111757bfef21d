//! Identifiers in the address templates of segments, such as `$Number%05d$` (5.3.9.4.4).

use std::fmt::Write;

/// The values of the identifiers of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) id: &'a str,
    pub(super) bandwidth: u64,
    pub(super) number: u64,
    pub(super) time: u64,
}

/// The template with the values in place of the identifiers.
pub(super) fn fill(template: &str, names: Names<'_>) -> Result<String, String> {
    let mut filled = String::with_capacity(template.len() + 8);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        let Some((name, after)) = after.split_once('$') else {
            return Err(format!("'{template}' has a $ without an end"));
        };
        rest = after;
        let (name, width) = match name.split_once('%') {
            None => (name, 1),
            Some((name, format)) => {
                let digits = format.strip_prefix('0').and_then(|format| format.strip_suffix('d'));
                let width = digits
                    .and_then(|digits| digits.parse::<usize>().ok())
                    .filter(|width| *width <= WIDEST);
                (name, width.ok_or_else(|| format!("'{template}' has a format that is none"))?)
            }
        };
        let number = match name {
            // `$$` stands for the character itself.
            "" => {
                filled.push('$');
                continue;
            }
            "RepresentationID" => {
                filled.push_str(names.id);
                continue;
            }
            "Number" => names.number,
            "Time" => names.time,
            "Bandwidth" => names.bandwidth,
            other => return Err(format!("'{template}' has ${other}$, which is not known here")),
        };
        let _ = write!(filled, "{number:0width$}");
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The largest width of a number; real manifests use less.
const WIDEST: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_replaced() {
        let names = Names { id: "v1", bandwidth: 5000, number: 7, time: 90_000 };
        let cases = [
            ("seg-$RepresentationID$-$Number%05d$.m4s", Ok("seg-v1-00007.m4s")),
            ("$Bandwidth$/$Time$.mp4?a=$$", Ok("5000/90000.mp4?a=$")),
            ("plain.m4s", Ok("plain.m4s")),
            ("$Number%d$", Err("a format that is none")),
            ("$Number%099d$", Err("a format that is none")),
            ("$SubNumber$.m4s", Err("$SubNumber$, which is not known")),
            ("a$Number.m4s", Err("a $ without an end")),
        ];
        for (template, wanted) in cases {
            match (fill(template, names), wanted) {
                (Ok(filled), Ok(wanted)) => assert_eq!(filled, wanted),
                (Err(told), Err(wanted)) => assert!(told.contains(wanted), "{told}"),
                other => panic!("{template}: {other:?}"),
            }
        }
    }
}
