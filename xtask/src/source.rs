//! A Rust file as the checks look at it: its production code with comments and text blanked out,
//! split into tokens. No full parser: a check needs paths, item names and doc comments only.

/// Blanks comments, string and character literals; line breaks stay, so line numbers do too.
pub(crate) fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if let Some(end) = end {
            for byte in &mut out[at..end.min(bytes.len())] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        at = end.unwrap_or(at + 1);
    }
    // Only ASCII was changed within literals that were blanked whole.
    String::from_utf8(out).unwrap_or_default()
}

/// The end of the comment or literal that begins at `at`; `None` where code goes on.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let find = |what: &[u8], from: usize| {
        let found = rest[from..].windows(what.len()).position(|window| window == what);
        at + from + found.map_or(rest.len() - from, |position| position + what.len())
    };
    if rest.starts_with(b"//") {
        return Some(at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(find(b"*/", 2));
    }
    // An identifier that ends in r, such as `for`, is no raw string.
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let raw = rest.strip_prefix(b"b").unwrap_or(rest);
    if !in_word && raw.starts_with(b"r") {
        let hashes = raw[1..].iter().take_while(|byte| **byte == b'#').count();
        if raw.get(1 + hashes) == Some(&b'"') {
            let close: Vec<u8> = std::iter::once(b'"').chain([b'#'].repeat(hashes)).collect();
            return Some(find(&close, rest.len() - raw.len() + hashes + 2));
        }
    }
    match rest {
        [b'"', ..] => Some(at + quoted_end(rest, b'"')),
        // A lifetime has no closing quote after one character.
        [b'\'', b'\\', ..] => Some(at + quoted_end(rest, b'\'')),
        [b'\'', ..] => {
            // Six bytes may end within a later character, which is cut off.
            let text = std::str::from_utf8(&rest[1..rest.len().min(6)])
                .or_else(|error| std::str::from_utf8(&rest[1..=error.valid_up_to()]));
            let width = text.ok()?.chars().next()?.len_utf8();
            (rest.get(1 + width) == Some(&b'\'')).then_some(at + width + 2)
        }
        _ => None,
    }
}

/// The length of a literal with escapes that begins with its quote.
fn quoted_end(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if *byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Blanked production code: everything before a test module at the file's end.
pub(crate) fn production(text: &str) -> String {
    let code = blanked(text);
    let tests = code.find("#[cfg(test)]\nmod tests").unwrap_or(code.len());
    code[..tests].to_owned()
}

/// Identifiers and punctuation; `::` is one token.
pub(crate) fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let len = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        for (text, expected) in [
            ("a // b \"c\"\nd", "a         \nd"),
            ("a /* b */ c", "a         c"),
            (r#"f("a\"b", 'x', b'\n')"#, "f(      ,    , b    )"),
            (r##"for r#"x"y"# in"##, "for          in"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("'ä' x", "     x"),
        ] {
            assert_eq!(blanked(text), expected, "{text}");
        }
    }

    #[test]
    fn paths_are_split_into_words() {
        assert_eq!(tokens("use a::{b, c};"), ["use", "a", "::", "{", "b", ",", "c", "}", ";"]);
    }
}
