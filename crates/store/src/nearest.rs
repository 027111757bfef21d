//! The title whose name is most like one that does not exist, for "did you mean".

/// The name of `titles` that is most like `name`, whatever its case; `None` where none is alike.
pub fn nearest(name: &str, titles: impl IntoIterator<Item = String>) -> Option<String> {
    let wanted = name.to_lowercase();
    let likeness = |title: &str| strsim::jaro_winkler(&wanted, &title.to_lowercase());
    titles
        .into_iter()
        .map(|title| (likeness(&title), title))
        .filter(|(alike, _)| *alike >= ALIKE)
        // The first of equals, so that the answer does not depend on the order of stores.
        .max_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| other.cmp(one)))
        .map(|(_, title)| title)
}

/// The least likeness: one letter too many, missing or wrong in a name of five has more.
const ALIKE: f64 = 0.85;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_title_and_another_name_none() {
        let titles = || ["caligari", "nosferatu", "the-lodger"].map(str::to_owned);
        for wrong in ["Nosferatu", "nosfratu", "nosferatu.mkv", "nosferatu2"] {
            assert_eq!(nearest(wrong, titles()).as_deref(), Some("nosferatu"), "{wrong}");
        }
        for other in ["metropolis", "x", ""] {
            assert_eq!(nearest(other, titles()), None, "{other}");
        }
    }
}
