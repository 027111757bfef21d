//! Rust source as tokens: without comments, and without the unit tests at the end of a file.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// What a file contains above its unit tests; nothing of a text that is not Rust.
pub(crate) fn production(text: &str) -> Vec<TokenTree> {
    let file: TokenStream = text.parse().unwrap_or_default();
    let mut trees: Vec<TokenTree> = file.into_iter().collect();
    let tests = trees.windows(4).position(|at| {
        let named = matches!(&at[3], TokenTree::Ident(name) if name == "tests");
        named && words(at.iter().cloned()) == TESTS
    });
    trees.truncate(tests.unwrap_or(trees.len()));
    trees
}

const TESTS: [&str; 9] = ["#", "[", "cfg", "(", "test", ")", "]", "mod", "tests"];

/// Identifiers and punctuation, without literals; `::` is one word.
pub(crate) fn words(trees: impl IntoIterator<Item = TokenTree>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut joined = false;
    for tree in trees {
        let second_colon = joined;
        joined = false;
        match tree {
            TokenTree::Punct(_) if second_colon => all.push("::".to_owned()),
            TokenTree::Punct(mark) if mark.as_char() == ':' && mark.spacing() == Spacing::Joint => {
                joined = true;
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace | Delimiter::None => ("{", "}"),
                };
                all.push(open.to_owned());
                all.extend(words(group.stream()));
                all.push(close.to_owned());
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => all.push(tree.to_string()),
            TokenTree::Literal(_) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> String {
        words(production(text)).join(" ")
    }

    #[test]
    fn comments_literals_and_tests_are_left_out() {
        for (text, expected) in [
            ("a // b \"c\"\nd", "a d"),
            ("a /* b */ c", "a c"),
            (r#"f("a\"b", 'x', b'\n')"#, "f ( , , )"),
            (r##"for r#"x"y"# in"##, "for in"),
            ("fn f<'a>(x: &'a str)", "fn f < ' a > ( x : & ' a str )"),
            ("'ä' x", "x"),
            ("a\n#[cfg(test)]\nmod tests { b }\nc", "a"),
            ("#[cfg(test)]\nmod made; a", "# [ cfg ( test ) ] mod made ; a"),
        ] {
            assert_eq!(words_of(text), expected, "{text}");
        }
    }

    #[test]
    fn paths_are_split_into_words() {
        assert_eq!(words_of("use a::{b, c};"), "use a :: { b , c } ;");
    }
}
